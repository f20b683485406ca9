"""Read pairs from zip files of OPUS, with a file of lines per language."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest

from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.pair_files.base import BLANK, FilePair, Languages, PairFile, is_encodable
from miner.storage.pair_files.fields import language_of
from miner.storage.places import Place
from miner.storage.streams import open_binary

_MEMBER = re.compile(r"(.*\.)?([^./]+)-([^./]+)\.([^./]+)")


def open_zip(path: Place, languages: Languages) -> PairFile:
    """Find the two files ``NAME.XX-YY.XX`` and ``NAME.XX-YY.YY``.

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


def _read(path: Place, first: str, second: str) -> Iterator[FilePair]:
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(open_binary(path))))
        files = [stack.enter_context(archive.open(name)) for name in (first, second)]
        for number, lines in enumerate(zip_longest(*files), 1):
            place = f"{path} line {number}"
            if None in lines:
                short, long = (first, second) if lines[0] is None else (second, first)
                raise CorpusError(f"{path}: {short} has fewer lines than {long}")
            source, target = (
                line.rstrip(b"\r\n").decode(errors="surrogateescape") for line in lines
            )
            problem = "" if source.strip() and target.strip() else BLANK
            if not is_encodable(source, target):
                problem = Rejection.UNDECODABLE.value
            yield FilePair(place=place, texts=(source, target), problem=problem)
