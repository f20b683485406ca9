"""Command-line options that several tasks share."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from eval.data.bucc import bucc_pairs
from miner.language_codes import parse_option

# The languages of the bundled encoder except English.
LANGUAGES = ("de", "fr", "es", "ru", "zh", "cs", "it", "pt", "nl", "tr", "ja")
ALL = "all"


def add_directory(parser: argparse.ArgumentParser, *, holds: str) -> None:
    """Add ``directory``, a folder's Path, whose files ``holds`` describes."""
    parser.add_argument("directory", type=Path, metavar="DIR", help=f"folder with {holds}")


def add_bucc_data(parser: argparse.ArgumentParser) -> None:
    """Add ``directory``, in BUCC's layout, and ``--pair``, a list or None."""
    holds = "xx-en/xx-en.SPLIT.xx and .en (ID TAB sentence), and .gold (ID TAB ID)"
    add_directory(parser, holds=holds)
    text = "language pair of DIR to measure, such as de-en; repeatable (default: all)"
    parser.add_argument("--pair", action="append", metavar="xx-en", help=text)


def chosen_pairs(args: argparse.Namespace) -> list[str]:
    """Return the distinct language pairs that options ask for.

    ``args`` has the options of ``add_bucc_data``. By default, or for ``all`` alone, these are all
    of ``bucc_pairs``, whose errors are raised. Pairs named by options are not checked.
    """
    is_all = args.pair in (None, [ALL])
    return list(bucc_pairs(args.directory) if is_all else dict.fromkeys(args.pair))


def add_list(
    parser: argparse.ArgumentParser, option: str, metavar: str, text: str, **more: object
) -> None:
    """Add a repeatable option of values, all in one list, by default None."""
    more |= {"nargs": "+", "action": "extend", "metavar": metavar, "help": text}
    parser.add_argument(option, **more)  # type: ignore[arg-type]


def add_languages(parser: argparse.ArgumentParser, *, named: str) -> None:
    """Add ``--lang``, a list or None, to be read by ``chosen_languages``.

    The help begins with ``named``. It adds that ``all`` is allowed, and ``LANGUAGES`` the default.
    """
    add_list(parser, "--lang", "XX", f"{named}, or all (default: {' '.join(LANGUAGES)})")


def chosen_languages(args: argparse.Namespace, known: Iterable[str]) -> list[str]:
    """Return the distinct languages that ``--lang`` asks for, unchecked.

    They are ``known`` for ``all`` alone, and by default ``LANGUAGES``.
    """
    return list(known if args.lang == [ALL] else dict.fromkeys(args.lang or LANGUAGES))


def add_sides(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``--lang``, a list of BCP 47 tags or None, default in the help."""
    text = f"language of both sides, or of each, such as de en (default: {default})"
    add_list(parser, "--lang", "XX", text, type=parse_option)


def languages_of_sides(args: argparse.Namespace) -> tuple[str, str] | None:
    """Return both sides' languages by the ``--lang`` of ``add_sides``.

    One language is that of both sides. Without ``--lang``, the result is None.

    Raises:
        ValueError: More than two languages are passed.
    """
    if args.lang is None:
        return None
    if len(args.lang) > 2:
        raise ValueError(f"--lang {' '.join(args.lang)}: pass one language, or one per side")
    return args.lang[0], args.lang[-1]


def add_files_of_languages(parser: argparse.ArgumentParser, option: str, text: str) -> None:
    """Add an option of values XX=FILE, tuples (language, path), by default []."""
    add_list(parser, option, "XX=FILE", text, type=_language_and_file, default=[])


def _language_and_file(text: str) -> tuple[str, Path]:
    language, _, path = text.partition("=")
    if not (language and path):
        raise argparse.ArgumentTypeError(f"expected XX=FILE, not {text!r}")
    return language, Path(path)


def by_language(
    files: Sequence[tuple[str, Path]], read: Callable[[Path], list[str]]
) -> dict[str, list[str]]:
    """Return each language's lines, read from its files in order."""
    lines: dict[str, list[str]] = {}
    for language, path in files:
        lines.setdefault(language, []).extend(read(path))
    return lines


def positive(text: str) -> int:
    """Parse a whole number above 0.

    Raises:
        ArgumentTypeError: The text is not a whole number above 0.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return int(text)
