"""Split files of documents into sentences, in groups for all workers."""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.storage.artefacts import Artefact, Draft, content_key, find, open_artefact, produce
from miner.storage.corpus.entities import unescape_records
from miner.storage.corpus.filesets import NamedPlace
from miner.storage.corpus.records import BATCH_ROWS, Records
from miner.storage.documents.records import AnyDocument, Document, extract
from miner.storage.documents.sentences import PLACE, SENTENCE_TABLE, sentence_tables, table_records
from miner.storage.documents.split import document_files, find_documents, is_documents
from miner.storage.layout import SENTENCES, shard_name
from miner.storage.places import Place
from miner.wording import counted
from pipelines.context import RunContext
from pipelines.stages.reading.cut import digest_of
from pipelines.stages.reading.language import only_language

logger = logging.getLogger(__name__)

SPLITTER = 4  # version of the splitter; raise it when its output changes
GROUP_BYTES = 64 << 20  # most bytes of a group of several files
GROUP_FILES = 4096  # most files of a group
PART_DOCUMENTS = 4096  # documents of a sealed part


@dataclass(frozen=True, kw_only=True)
class DocumentFiles:
    """A group of files of documents of a side, number ``index`` from 0.

    ``files`` has each file's name in the corpus and path, and is empty if the side has no
    documents. ``is_only_file`` says that the corpus has only one file.
    """

    side: str
    index: int
    files: Sequence[NamedPlace]
    is_only_file: bool

    @property
    def name(self) -> str:
        """The name of the group, such as ``source/00001``."""
        return shard_name(self.side, self.index)


def group_files(run: RunContext, side: str) -> list[DocumentFiles]:
    """Divide the files of the side "source" or "target" into groups, in order.

    A large file is a group, and small files share one. A side without raw documents is one group
    without files. Errors of ``is_documents`` and ``document_files`` are raised.
    """
    corpus = run.options.side(side)
    if not is_documents(corpus.path, corpus.input_format):
        return [DocumentFiles(side=side, index=0, files=(), is_only_file=False)]
    files = document_files(corpus.path)
    groups: list[list[NamedPlace]] = []
    size = 0
    for file in files:
        file_size = file[1].stat().st_size
        if not groups or size + file_size > GROUP_BYTES or len(groups[-1]) == GROUP_FILES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file_size
    return [
        DocumentFiles(side=side, index=index, files=group, is_only_file=len(files) == 1)
        for index, group in enumerate(groups)
    ]


def split_group(run: RunContext, group: DocumentFiles) -> DocumentFiles:
    """Split a group's documents, save the sentences, and return the group.

    The artefact is ``split/SIDE/NNNNN``, none without files. Errors are of ``find_documents``.
    """
    if group.files:
        _split(run, group)
    return group


def join_side(run: RunContext, groups: Sequence[DocumentFiles]) -> str:
    """Return the side of groups that have been split."""
    return groups[0].side


class SplitCorpus:
    """An iterable over a side's sentences and broken documents, as records.

    Construction splits raw documents that are not split yet, with the errors of ``group_files`` and
    ``split_group``. A document with the name of an earlier one gets a number, as in ``NAME (2)``.
    ``names`` and ``files`` are each file's name in the corpus and path. ``starts`` are the rows at
    which files begin, complete after an iteration.
    """

    def __init__(self, run: RunContext, side: str) -> None:
        groups = group_files(run, side)
        self.names = [name for group in groups for name, _ in group.files]
        self.files = [path for group in groups for _, path in group.files]
        self.starts: list[int] = []
        self._escapes = run.options.side(side).escapes
        self._groups = [(len(group.files), _split(run, group)) for group in groups]
        self._path, self._has_warned = run.options.side(side).path, False

    def __iter__(self) -> Iterator[Records]:
        return unescape_records(self._number_repeats(self._records()), self._escapes)

    def _records(self) -> Iterator[Records]:
        self.starts.clear()
        row = 0
        for first_file, batch in self._batches():
            numbers = first_file + batch["file"].to_numpy()
            for number, position in zip(*np.unique(numbers, return_index=True), strict=True):
                self.starts += [row + int(position)] * (int(number) + 1 - len(self.starts))
            yield table_records(batch, row)
            row += len(batch)
        self.starts += [row] * (len(self.names) - len(self.starts))

    def _batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        first_file = 0
        for files, whole in self._groups:
            for number in range(whole.facts["parts"]):
                part = open_artefact(whole.folder / f"{number:05d}")
                with pq.ParquetFile(part.checked(SENTENCES)) as file:
                    for batch in file.iter_batches(batch_size=BATCH_ROWS):
                        yield first_file, batch
            first_file += files

    def _number_repeats(self, batches: Iterable[Records]) -> Iterator[Records]:
        counts: Counter[int] = Counter()  # by hashes of names, which take less memory
        repeated: list[str] = []
        previous, end, number = "", 0, 1
        for records in batches:
            for i, (name, own_id) in enumerate(zip(records.docs, records.own_ids, strict=True)):
                if i in records.rejected and own_id == name:  # a broken document has no offsets
                    previous = ""
                    continue
                offsets = own_id.rpartition(PLACE)[2]
                first, _, last = offsets.partition(",")
                if name != previous or int(first) < end:
                    number = counts[hash(name)] = counts[hash(name)] + 1
                    repeated += [name] if number > 1 else []
                if number > 1:
                    records.docs[i] = f"{name} ({number})"
                    records.own_ids[i] = f"{records.docs[i]}{PLACE}{offsets}"
                previous, end = name, int(last)
            yield records
        if repeated and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s: %s with the name of an earlier document; each got a number, such as %s (2)",
                *(self._path, counted(len(repeated), "documents"), repeated[0]),
            )


def _split(run: RunContext, group: DocumentFiles) -> Artefact:
    language = only_language(run.options, group.side)
    files = [[name, digest_of(path)] for name, path in group.files]
    key = content_key("split", splitter=SPLITTER, files=files, only=language)
    folder = run.folder.split(group.side, group.index)

    def write(draft: Draft) -> Mapping[str, Any]:
        documents = find_documents(group.files, is_only_file=group.is_only_file)
        digests: list[str] = []
        with run.monitor.stage("split", None, "documents", group.name) as meter:
            count = PART_DOCUMENTS
            while count == PART_DOCUMENTS:
                part = _part(folder / f"{len(digests):05d}", key, documents, language)
                count = part.facts["documents"]
                digests.append(part.files[SENTENCES])
                meter.advance(count)
        return {"parts": len(digests), "digests": digests}

    return produce(folder, key=key, write=write)


def _part(
    folder: Place, key: str, documents: Iterator[tuple[int, AnyDocument]], language: str | None
) -> Artefact:
    part = islice(documents, PART_DOCUMENTS)
    if (sealed := find(folder, key=key)) is not None:
        deque(part, maxlen=0)
        return sealed

    def write(draft: Draft) -> Mapping[str, Any]:
        read = 0

        def read_documents() -> Iterator[tuple[int, Document]]:
            nonlocal read
            for file, document in part:
                read += 1
                yield file, extract(document)

        with (
            draft.file(SENTENCES) as path,
            pq.ParquetWriter(path, SENTENCE_TABLE, compression="zstd") as writer,
        ):
            for table in sentence_tables(read_documents(), only=language):
                writer.write_table(table)
        return {"documents": read}

    return produce(folder, key=key, write=write)
