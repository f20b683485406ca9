"""No option that holds several values drops one of them without a word when it is given twice."""

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from eval.cli.encoder import encoder_parser
from eval.tasks import TASKS
from miner.choices import FILTERS
from miner.commandline import command_parser
from pipelines.cli.main import COMMANDS
from pipelines.cli.train import _recipe, add_arguments
from tests.encoder.training.language import write_pairs


class ParsedError(Exception):
    """A command is about to parse its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parsers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    def caught(parser: argparse.ArgumentParser, *rest: object) -> None:
        raise ParsedError(parser)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", caught)
    for name, (_, place) in COMMANDS.items():
        module, _, function = place.partition(":")
        if name != "evaluate":
            with pytest.raises(ParsedError) as found:
                getattr(import_module(module), function)([], name)
            yield name, found.value.parser
    (tasks,) = [
        action
        for action in encoder_parser("evaluate")._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    for name in TASKS:
        yield f"evaluate {name}", tasks.choices[name]
    monkeypatch.undo()


def several(action: argparse.Action) -> bool:
    """Whether an option holds several values, or several can be given with commas."""
    holds = isinstance(action.default, list | tuple) or isinstance(action.nargs, int)
    named = getattr(action.type, "__name__", "") == "parse_names"
    kept = isinstance(action, argparse._AppendAction | argparse._ExtendAction)
    many = action.nargs in ("+", "*") or (action.nargs != 0 and holds)
    return bool(action.option_strings) and (many or named or kept)


TWO = {
    "--filters": FILTERS[:2],
    "--set": ("MR", "CR"),
    "--suite": ("tatoeba", "xsim"),
    "--vocabulary": ("en=a", "de=b"),
    "--corpus-weight": ("a=1", "b=0.5"),
    "--pair-weight": ("a-en=1", "b-en=2"),
    "--more": ("en=a", "de=b"),
    "--idf": ("en=a", "de=b"),
    "--task": ("quick-thought=a", "quick-thought=b"),
}


def parsed(parser: argparse.ArgumentParser, option: str, values: Sequence[str]) -> str:
    required = ["x" for action in parser._actions if not action.option_strings and action.required]
    for action in parser._actions:
        if action.option_strings and action.required and action.option_strings[-1] != option:
            required += [action.option_strings[-1], "x"]
    given = [part for value in values for part in (option, value)]
    args = vars(parser.parse_args([*required, *given]))
    return repr(args[option.lstrip("-").replace("-", "_")])


def test_both_values_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for name, parser in list(parsers(monkeypatch)):
        for option in [action.option_strings[-1] for action in parser._actions if several(action)]:
            values = TWO.get(option, ("aa", "ab"))  # which are codes of languages, too
            if (name, option) == ("evaluate probe", "--set"):
                values = ("WC", "SOMO")
            found = parsed(parser, option, values)
            seen.append(option)
            for part in (part for value in values for part in value.split("=")):
                assert part in found, (name, option)
    assert len(seen) >= 25 and set(TWO) <= set(seen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--corpus-weight a=1 --corpus-weight a=0.5", "--corpus-weight: a is given twice"),
        ("--pair-weight xx-yy=1 --pair-weight zz,xx-yy=2", "--pair-weight: xx-yy is given twice"),
        (
            "--task mlm=a --task mlm=a:2",
            "--task mlm: a is given twice; pass it once, with a weight",
        ),
        ("--objective paths --sources 1:.9,1:.1", "and their shares, each once"),
        ("--objective paths --sources 1:.9 --sources 1:.1", "shares, each once"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, options: str, message: str) -> None:
    write_pairs(tmp_path / "xx-yy.tsv.xz", [("a", "b")])
    args = command_parser(add_arguments, "").parse_args(
        [str(tmp_path), "-o", "out", *options.split()]
    )
    with pytest.raises(ValueError, match=message):
        _recipe(args)


def test_a_task_of_two_languages_has_two_streams(tmp_path: Path) -> None:
    write_pairs(tmp_path / "xx-yy.tsv.xz", [("a", "b")])
    given = ["--task", "quick-thought=one:2", "--task", "mlm=one", "--task", "quick-thought=two"]
    tasks = _recipe(
        command_parser(add_arguments, "").parse_args([str(tmp_path), "-o", "out", *given])
    ).tasks
    assert {name: (each.name, str(each.folder), each.weight) for name, each in tasks.items()} == {
        "quick-thought": ("quick-thought", "one", 2.0),
        "mlm": ("mlm", "one", 1.0),
        "quick-thought-2": ("quick-thought", "two", 1.0),
    }
