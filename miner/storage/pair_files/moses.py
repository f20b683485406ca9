"""Read pairs from two files of lines, also in zip files of OPUS."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import IO

from miner.storage.corpus.lines import text_lines
from miner.storage.corpus.records import CorpusError, Rejection, is_encodable
from miner.storage.pair_files.base import BLANK, FilePair, Languages, PairFile
from miner.storage.pair_files.fields import language_of
from miner.storage.places import Place, PlaceError
from miner.storage.streams import DAMAGE_ERRORS, open_binary

_MEMBER = re.compile(r"(.*\.)?([^./]+)-([^./]+)\.([^./]+)")


def open_zip(path: Place, languages: Languages) -> PairFile:
    """Open the two files in a zip archive, where line i of both is a pair.

    The files are ``NAME.XX-YY.XX`` and ``NAME.XX-YY.YY``. The source is ``YY`` if that is the
    language of ``languages[0]``, or else ``XX``. Errors of ``open_binary`` are raised.

    Raises:
        CorpusError: The archive cannot be opened, or does not have exactly one such pair of files.
    """
    with _archive(path) as archive:
        members = archive.namelist()
    matches = [match for name in members if (match := _MEMBER.fullmatch(name))]
    stems = {(f"{match[1] or ''}{match[2]}-{match[3]}", match[2], match[3]) for match in matches}
    file_pairs = [
        (code, other, f"{stem}.{code}", f"{stem}.{other}")
        for stem, code, other in stems
        if {f"{stem}.{code}", f"{stem}.{other}"} <= {*members}
    ]
    if len(file_pairs) != 1:
        raise CorpusError(
            f"{path}: is a zip archive with {len(file_pairs)} pairs of files such as NAME.de-en.de "
            "and NAME.de-en.en, expected 1; unpack it, and pass two of its files"
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
    """Open two files of lines, no archives, where line i of both is a pair.

    Nothing is read yet. A pair's problem is ``BLANK``, or the reason that ``text_lines`` yields.
    Reading raises CorpusError for a missing, shorter or damaged file, and errors of ``text_lines``.
    """
    return PairFile(
        layout=f"lines of {source} and {target}",
        read=lambda: pairs_of_sides((source, target), map(text_lines, (source, target))),
    )


@contextmanager
def _archive(path: Place) -> Iterator[zipfile.ZipFile]:
    try:
        with open_binary(path) as raw, zipfile.ZipFile(raw) as archive:
            yield archive
    except (CorpusError, PlaceError):  # not damage
        raise
    except (zipfile.BadZipFile, *DAMAGE_ERRORS) as error:
        why = str(error) or "it ends too early"
        raise CorpusError(f"{path}: is not a whole zip file ({why}); fetch it again") from error
    except RuntimeError as error:  # encrypted, or of another compression
        raise CorpusError(
            f"{path}: cannot be unpacked here ({error}); unpack it with another program"
        ) from error


def _read(path: Place, first: str, second: str) -> Iterator[FilePair]:
    with _archive(path) as archive, archive.open(first) as source, archive.open(second) as target:
        yield from pairs_of_sides((path / first, path / second), map(_lines, (source, target)))


def _lines(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    for raw in file:
        line = raw.rstrip(b"\r\n").decode(errors="surrogateescape")
        yield line, "" if is_encodable(line) else Rejection.UNDECODABLE.value


def pairs_of_sides(
    files: tuple[Place, Place], sides: Iterable[Iterator[tuple[str, str]]]
) -> Iterator[FilePair]:
    """Yield line i of both sides as a pair, in order.

    ``sides`` iterate over texts, each with the reason to reject it, or "". Blank texts are also a
    problem. All texts are in the pairs. A pair's place is in the source's file of ``files``, or in
    the target's if only that has a problem other than a blank line.

    Raises:
        CorpusError: A side has fewer lines.
    """
    for number, lines in enumerate(zip_longest(*sides), 1):
        if None in lines:
            short, long = files if lines[0] is None else reversed(files)
            raise CorpusError(
                f"{short}: ends after line {number - 1:,}, but {long} has more; pass files with "
                "as many lines, each the translation of the same line of the other file"
            )
        texts = lines[0][0], lines[1][0]
        problems = [(file, why) for file, (_, why) in zip(files, lines, strict=True)]
        problems.append((files[0], "" if all(map(str.strip, texts)) else BLANK))
        file, problem = next((each for each in problems if each[1] not in ("", BLANK)), problems[2])
        yield FilePair(place=f"{file} line {number}", texts=texts, problem=problem)
