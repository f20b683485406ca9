"""A corpus of one file or many: a folder's files are read one after the other, as if joined."""

import os
import re
from collections.abc import Iterator, Sequence

from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError, Records, Rejection, checked_records
from miner.storage.places import Place

SHOWN = 5  # names in a line

# Files that come with a corpus, and are none of it.
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice)(\.(md|txt|rst|html))?", re.IGNORECASE)


def may_hold_corpus(entry: Place) -> bool:
    """Return whether a file or folder is neither hidden nor about the corpus."""
    return not (entry.name.startswith(".") or ABOUT.fullmatch(entry.name))


def folder_files(folder: Place) -> tuple[list[Place], list[Place]]:
    """Return the files of a folder that are the corpus, and what is not; both by name."""
    entries: list[Place] = sorted(folder.iterdir(), key=lambda entry: entry.name)
    taken = [entry for entry in entries if may_hold_corpus(entry) and entry.is_file()]
    return taken, [entry for entry in entries if entry not in taken]


def describe_folder(folder: Place) -> str:
    """Return a line that names what of a folder is read, and what is left out."""
    taken, left_out = folder_files(folder)
    names = [entry.name + ("/" if entry.is_dir() else "") for entry in left_out]
    line = f"{folder}: reads {named([entry.name for entry in taken])} as sentences"
    return line + (f"; leaves out {named(names)}" if names else "")


def named(names: Sequence[str]) -> str:
    """Return how many names there are, and the first of them."""
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return f"{len(names):,} ({shown})"


def corpus_files(path: Place, *, input_format: str = "auto") -> list[Place]:
    """Return the files of a corpus: ``path``, or what is in this folder, or else a CorpusError.

    They are in order of the id of their first records, shorter ids first, then of their names. So
    records that have ids of their own come in the same order whatever their files are called.
    """
    if not path.is_dir():
        return [path]
    files, _ = folder_files(path)
    if not files:
        raise CorpusError(f"{path}: no file of a corpus in this folder; put its files there")

    def place(file: Place) -> tuple[bool, int, str, str]:
        try:
            first = next(open_corpus(file, input_format=input_format)).ids()[0]
        except CorpusError:  # reported by whoever reads it
            return True, 0, "", file.name
        return False, len(first), first, file.name

    return sorted(files, key=place)


class CorpusReader:
    """Iterates over the records of files as over those of one; rows count through all of them.

    Of several files, one that cannot be read, or not to its end, is a rejected record from there
    on; a single one raises. ``starts`` are the rows at which the ``files``, by their ``names``,
    begin, as far as was read.
    """

    def __init__(self, files: Sequence[Place], *, input_format: str = "auto") -> None:
        self.files, self.input_format = files, input_format
        self.names = [file.name for file in files]
        self.starts: list[int] = []

    def __iter__(self) -> Iterator[Records]:
        self.starts.clear()
        row = 0
        for file in self.files:
            self.starts.append(row)
            try:
                for records in open_corpus(file, input_format=self.input_format, first_row=row):
                    yield records
                    row = records.first_row + len(records)
            except CorpusError as error:
                if len(self.files) == 1:
                    raise
                why, found = {0: Rejection.UNREADABLE}, [os.fsencode(str(error))]
                yield checked_records(row, [""], [""], [""], why, found.__getitem__)
                row += 1
