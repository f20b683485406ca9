"""Read pairs from two files of lines, also in zip files of OPUS."""

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from typing import IO

from miner.storage.corpus.lines import text_lines
from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.pair_files.base import BLANK, FilePair, Languages, PairFile, is_encodable
from miner.storage.pair_files.fields import language_of
from miner.storage.places import Place
from miner.storage.streams import open_binary

_MEMBER = re.compile(r"(.*\.)?([^./]+)-([^./]+)\.([^./]+)")


def open_zip(path: Place, languages: Languages) -> PairFile:
    """Open a zip archive with two files of lines, line i of both a pair.

    The files are ``NAME.XX-YY.XX`` and ``NAME.XX-YY.YY``. The source is the language of
    ``languages[0]``, if given, or else ``XX``.

    Raises:
        CorpusError: The zip file is damaged, or has no such files, or several.
    """
    with open_binary(path) as raw:
        try:
            with zipfile.ZipFile(raw) as archive:
                members = archive.namelist()
        except zipfile.BadZipFile as error:
            raise CorpusError(
                f"{path}: is not a whole zip file ({error}); fetch it again"
            ) from error
    matches = [match for name in members if (match := _MEMBER.fullmatch(name))]
    stems = {(f"{match[1] or ''}{match[2]}-{match[3]}", match[2], match[3]) for match in matches}
    file_pairs = [
        (code, other, f"{stem}.{code}", f"{stem}.{other}")
        for stem, code, other in stems
        if {f"{stem}.{code}", f"{stem}.{other}"} <= {*members}
    ]
    if len(file_pairs) != 1:
        raise CorpusError(
            f"{path}: is a zip archive without two files such as NAME.de-en.de and NAME.de-en.en; "
            "unpack it"
        )
    [(code, other, first, second)] = file_pairs
    if languages[0] and languages[0] == language_of(other):
        code, other, first, second = other, code, second, first
    return PairFile(
        layout=f"zip, lines of {first} and {second}",
        read=partial(_read, path, first, second),
        languages=(language_of(code), language_of(other)),
    )


def open_moses(source: Place, target: Place) -> PairFile:
    """Open two files of lines, where line i of both is a pair.

    A blank line makes the problem ``BLANK``. Reading raises CorpusError if one is shorter.
    """
    return PairFile(
        layout=f"lines of {source} and {target}",
        read=lambda: pairs_of_sides(
            source, (source.name, target.name), map(text_lines, (source, target))
        ),
    )


def _read(path: Place, first: str, second: str) -> Iterator[FilePair]:
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(open_binary(path))))
        files = [stack.enter_context(archive.open(name)) for name in (first, second)]
        yield from pairs_of_sides(path, (first, second), map(_lines, files))


def _lines(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    for raw in file:
        line = raw.rstrip(b"\r\n").decode(errors="surrogateescape")
        yield line, "" if is_encodable(line) else Rejection.UNDECODABLE.value


def pairs_of_sides(
    path: Place, names: Sequence[str], sides: Iterable[Iterator[tuple[str, str]]]
) -> Iterator[FilePair]:
    """Yield pairs of line i of both sides, in order.

    Args:
        path: The file that the places of pairs name.
        names: Names of both sides.
        sides: Iterators over each side's texts, each with the reason to reject it, or "".

    Raises:
        CorpusError: A side has fewer lines.
    """
    for number, lines in enumerate(zip_longest(*sides), 1):
        if None in lines:
            short, long = names if lines[0] is None else reversed(names)
            raise CorpusError(
                f"{path}: {short} has {number - 1:,} lines, and {long} has more; line i of one "
                "must translate line i of the other"
            )
        (text, problem), (other, other_problem) = lines
        blank = "" if text.strip() and other.strip() else BLANK
        problems = {problem, other_problem} - {"", BLANK}
        problem = next(iter(problems), blank)
        yield FilePair(place=f"{path} line {number}", texts=(text, other), problem=problem)
