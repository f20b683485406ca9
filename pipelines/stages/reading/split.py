"""The split stage: files of documents to sentences, once, in groups that any worker can take.

A large file is a group, small ones are put together. Of each group parts are sealed as they are
done, so that a run which was killed goes on after the last of them.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.storage.artefacts import Artefact, Draft, content_key, find, open_artefact, produce
from miner.storage.corpus.entities import unescape_records
from miner.storage.corpus.filesets import NamedPlace
from miner.storage.corpus.records import BATCH_ROWS, Records
from miner.storage.documents.records import Document, Found, read_found
from miner.storage.documents.sentences import SENTENCE_TABLE, sentence_tables, table_records
from miner.storage.documents.split import document_files, find_documents, is_documents
from miner.storage.layout import SENTENCES
from miner.storage.places import Place
from pipelines.context import RunContext
from pipelines.stages.reading.cut import digest_of

SPLITTER = 2  # raised whenever documents come to be split otherwise
GROUP_BYTES = 64 << 20
GROUP_FILES = 4096
PART_DOCUMENTS = 4096


@dataclass(frozen=True, kw_only=True)
class DocumentFiles:
    """Group ``index`` of a side's files, with their names in the corpus."""

    side: str
    index: int
    files: Sequence[NamedPlace]
    is_only_file: bool

    @property
    def name(self) -> str:
        """Its place in the folder of groups."""
        return f"{self.side}/{self.index:05d}"


def group_files(run: RunContext, side: str) -> list[DocumentFiles]:
    """Return the groups of a side's files of documents; one without files if it has none."""
    corpus = run.options.side(side)
    if not is_documents(corpus.path, corpus.input_format):
        return [DocumentFiles(side=side, index=0, files=(), is_only_file=False)]
    files = document_files(corpus.path)
    groups: list[list[NamedPlace]] = []
    size = 0
    for file in files:
        own = file[1].stat().st_size
        if not groups or size + own > GROUP_BYTES or len(groups[-1]) == GROUP_FILES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += own
    return [
        DocumentFiles(side=side, index=index, files=group, is_only_file=len(files) == 1)
        for index, group in enumerate(groups)
    ]


def split_group(run: RunContext, group: DocumentFiles) -> DocumentFiles:
    """Split a group's documents into sentences; seals ``split/SIDE/NNNNN``."""
    if group.files:
        _split(run, group)
    return group


def join_side(run: RunContext, groups: Sequence[DocumentFiles]) -> str:
    """Return the side whose groups have been split; the next stage splits what an engine lost."""
    return groups[0].side


class SplitCorpus:
    """Iterates over the sentences of a side's documents, and the broken ones, as one corpus.

    What has not been split yet, is. Files called ``names`` begin at the rows ``starts``, when read.
    """

    def __init__(self, run: RunContext, side: str) -> None:
        groups = group_files(run, side)
        self.names = [name for group in groups for name, _ in group.files]
        self.files = [path for group in groups for _, path in group.files]
        self.starts: list[int] = []
        self._escapes = run.options.side(side).escapes
        self._groups = [(len(group.files), _split(run, group)) for group in groups]

    def __iter__(self) -> Iterator[Records]:
        """Batches of records, in order."""
        return unescape_records(self._records(), self._escapes)

    def _records(self) -> Iterator[Records]:
        self.starts.clear()
        row = first_file = 0
        for files, whole in self._groups:
            for number in range(whole.facts["parts"]):
                part = open_artefact(whole.folder / f"{number:05d}")
                with pq.ParquetFile(part.checked(SENTENCES)) as file:
                    for batch in file.iter_batches(batch_size=BATCH_ROWS):
                        self._begin_files(first_file + batch["file"].to_numpy(), row)
                        yield table_records(batch, row)
                        row += len(batch)
            first_file += files
        self.starts += [row] * (len(self.names) - len(self.starts))

    def _begin_files(self, numbers: NDArray[np.int64], row: int) -> None:
        """Note where files begin; those without any record begin where the next one does."""
        for number, place in zip(*np.unique(numbers, return_index=True), strict=True):
            self.starts += [row + int(place)] * (int(number) + 1 - len(self.starts))


def _split(run: RunContext, group: DocumentFiles) -> Artefact:
    key = content_key(
        "split", splitter=SPLITTER, files=[[name, digest_of(path)] for name, path in group.files]
    )
    folder = run.folder.split(group.side, group.index)

    def write(draft: Draft) -> Mapping[str, Any]:
        found = find_documents(group.files, is_only_file=group.is_only_file)
        digests: list[str] = []
        with run.monitor.stage("split", None, "documents", group.name) as meter:
            documents = PART_DOCUMENTS
            while documents == PART_DOCUMENTS:
                part = _part(folder / f"{len(digests):05d}", key, found)
                documents = part.facts["documents"]
                digests.append(part.files[SENTENCES])
                meter.advance(documents)
        return {"parts": len(digests), "digests": digests}

    return produce(folder, key=key, write=write)


def _part(folder: Place, key: str, found: Iterator[tuple[int, Found]]) -> Artefact:
    """Return the artefact of the next documents, which are only passed over if it was sealed."""
    documents = islice(found, PART_DOCUMENTS)
    if (sealed := find(folder, key=key)) is not None:
        deque(documents, maxlen=0)
        return sealed

    def write(draft: Draft) -> Mapping[str, Any]:
        read = 0

        def each() -> Iterator[tuple[int, Document]]:
            nonlocal read
            for file, one in documents:
                read += 1
                yield file, read_found(one)

        with (
            draft.file(SENTENCES) as path,
            pq.ParquetWriter(path, SENTENCE_TABLE, compression="zstd") as writer,
        ):
            for table in sentence_tables(each()):
                writer.write_table(table)
        return {"documents": read}

    return produce(folder, key=key, write=write)
