"""Options of a command in a TOML file.

Keys are ``source``, ``target`` and the long names of the options that are not in ``_NOT_STORED``.
Each table ``[[run]]`` is a run, which also has the keys above the tables.
"""

import argparse
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from miner.storage.places import Place, place

OPTION = "--config"
_NOT_STORED = {"help", "version", "quiet", "verbose", "config", "plan"}


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``, which ``command_lines`` reads and removes."""
    text = (
        "read options from a TOML file: the long names without dashes, such as fdr = 0.05, and "
        "source, target, output; tables [[run]] are several runs; options on the command line come "
        "last and win"
    )
    parser.add_argument(OPTION, metavar="FILE", help=text)


def command_lines(
    argv: Sequence[str], make_parser: Callable[[], argparse.ArgumentParser]
) -> Iterator[Sequence[str]]:
    """Yield the command line of each run in the file of ``--config``.

    A line has the file's options, the file's corpora unless ``argv`` names one, and ``argv``
    without ``--config FILE``, whose options win. Without ``--config``, ``argv`` is the only line.
    ``make_parser`` returns a new parser of the command, which may be changed. ValueError says that
    the file is not TOML, a key is unknown, or a flag or ``run`` has a wrong type. OSError says that
    the file cannot be read, SystemExit that an argument is malformed.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument(OPTION)
    end = argv.index("--") if "--" in argv else len(argv)
    options, rest = finder.parse_known_args(argv[:end])
    if options.config is None:
        yield argv
        return
    given = _positionals_in(rest, make_parser())
    for values in _runs(place(options.config)):
        own, corpora = _arguments(options.config, values, make_parser())
        yield [*own, *(() if given else corpora), *rest, *argv[end:]]


def _positionals_in(argv: Sequence[str], parser: argparse.ArgumentParser) -> bool:
    names = [action.dest for action in parser._actions if not action.option_strings]
    for action in parser._actions:
        action.required = False
        if action.dest in names:
            action.nargs, action.default = "?", None
    values = parser.parse_known_args(list(argv))[0]
    return any(getattr(values, name) is not None for name in names)


def _runs(path: Place) -> Iterator[Mapping[str, Any]]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: is not TOML ({error}); correct it") from error
    runs = values.pop("run", [{}])
    if not (runs and isinstance(runs, list) and all(isinstance(run, dict) for run in runs)):
        raise ValueError(f"{path}: 'run' must be tables; write [[run]]")
    for run in runs:
        yield values | run


def _arguments(
    path: str, values: Mapping[str, Any], parser: argparse.ArgumentParser
) -> tuple[list[str], list[str]]:
    actions = _actions(parser)
    options, positionals = [], {}
    for name, value in values.items():
        action = actions.get(name.replace("_", "-"))
        if action is None:
            raise ValueError(f"{path}: unknown option {name!r}; use one of {', '.join(actions)}")
        if not action.option_strings:
            positionals[action.dest] = str(value)
        elif action.nargs == 0:
            if not isinstance(value, bool):
                raise ValueError(f"{path}: {name} must be true or false, not {value!r}")
            options += [_long(action)] if value else []
        else:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            options.append(f"{_long(action)}={text}")
    return options, [positionals[name] for name in actions if name in positionals]


def _actions(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    actions = (action for action in parser._actions if action.dest not in _NOT_STORED)
    return {_long(action).lstrip("-"): action for action in actions}


def _long(action: argparse.Action) -> str:
    return max(action.option_strings, key=len, default=action.dest)


def config_of(args: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """Return the options of ``set_options`` as TOML text, one per line."""
    values = set_options(args, parser)
    return "".join(f"{name} = {_toml(value)}\n" for name, value in values.items())


def set_options(args: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return arguments with a TOML key, neither empty nor default, by key."""
    values: dict[str, tuple[str, Any]] = {}
    for name, action in _actions(parser).items():
        value = getattr(args, action.dest, None)
        if value not in (action.default, None, (), []):
            values.setdefault(action.dest, (name, value))
    return dict(values.values())


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")  # names of any bytes
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
