"""Read a corpus into shards of unique sentences, and count all records."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.atomic import atomic_file
from miner.storage.corpus.filesets import CorpusReader
from miner.storage.corpus.records import CorpusError, place_of
from miner.storage.corpus.repeats import Repeats, find_repeats
from miner.storage.corpus.sentences import (
    DUPLICATE_FIELDS,
    REJECTED_FIELDS,
    SENTENCE_FIELDS,
    CorpusCounts,
    unique_sentences,
)
from miner.storage.corpus.unique_ids import UniqueIds
from miner.storage.documents.sentences import repeat_key
from miner.storage.documents.split import is_documents, open_side
from miner.storage.layout import DOCUMENT, DROPPED, DUPLICATES, INPUTS, REJECTED, shard_file
from miner.storage.places import Place, PlaceError
from miner.storage.streams import split_compression
from miner.wording import counted
from pipelines.context import RunContext
from pipelines.references import EmbeddedShard, Shard
from pipelines.stages.reading.cut import HASH_BYTES, digest_of, remember_cut, shard_sizes
from pipelines.stages.reading.documents import check_documents
from pipelines.stages.reading.split import SPLITTER, SplitCorpus

Corpus: TypeAlias = CorpusReader | SplitCorpus
# A rejected record: its file, line from 1, row, reason and text.
PLACED = pa.schema([("file", pa.string()), ("line", pa.int64()), *REJECTED_FIELDS])


def read_side(run: RunContext, side: str) -> list[Shard]:
    """Read and clean the side "source" or "target", and save ordered shards.

    Duplicates (in scope "document", within documents) are dropped unless ``options.keeps_repeats``.
    ValueError says that the corpus cannot be read, an id recurs, or no sentence is usable. OSError
    says that a remote file cannot be read, ModuleNotFoundError that documents need the extra
    ``documents``. In scope "document", errors of ``check_documents`` are also raised.
    """
    options, corpus = run.options, run.options.side(side)
    source, digests, lines = _open(run, side)
    key = content_key(
        "read",
        files=[list(file) for file in zip(source.names, digests, strict=True)],
        input_format=corpus.input_format,
        keep_duplicates=options.keeps_repeats,
        scope=options.scope,
        ids="unique",  # earlier versions read ids that repeat or end in spaces
        rows_per_shard=options.rows_per_shard,
        shards=options.shards,
        **({"escapes": corpus.escapes} if corpus.escapes else {}),
        **({"splitter": SPLITTER} if isinstance(source, SplitCorpus) else {}),
    )
    write = partial(_write_side, run, side, source, lines)
    artefact = produce(run.folder.sentences(side), key=key, write=write)
    remember_cut(run, side, source.files, digests, artefact.facts["shards"])
    shards = [
        Shard(side=side, index=index, rows=rows, corpus=_shard_artefact(artefact, index))
        for index, rows in enumerate(artefact.facts["shards"])
    ]
    if options.scope == DOCUMENT:
        check_documents(run, side, shards)
    return shards


def _shard_artefact(corpus: Artefact, index: int) -> Artefact:
    names, sizes = (shard_file(index), DUPLICATES, REJECTED, INPUTS), corpus.facts["shards"]
    facts = {**corpus.facts, "unique": sum(sizes), "shards": len(sizes)}
    return replace(corpus, files={name: corpus.files[name] for name in names}, facts=facts)


def _open(run: RunContext, side: str) -> tuple[Corpus, list[str], int | None]:
    corpus = run.options.side(side)
    if is_documents(corpus.path, corpus.input_format):
        documents = SplitCorpus(run, side)
        return documents, [digest_of(file) for file in documents.files], None
    reader = open_side(corpus.path, corpus.input_format, escapes=corpus.escapes)
    fingerprints = [_fingerprint(file) for file in reader.files]
    lines = [count for _, count in fingerprints if count is not None]
    total = sum(lines) if len(lines) == len(fingerprints) else None
    return reader, [digest for digest, _ in fingerprints], total


def _fingerprint(path: Place) -> tuple[str, int | None]:
    suffix, compression = split_compression(path)
    digest, lines = hashlib.sha256(), 0
    try:
        with path.open("rb") as stream:
            while block := stream.read(HASH_BYTES):
                digest.update(block)
                lines += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
    except PlaceError:
        raise
    except OSError:
        return "", None  # open_corpus reports the error
    return digest.hexdigest(), None if compression or suffix == ".parquet" else lines


def _write_side(
    run: RunContext, side: str, reader: Corpus, lines: int | None, draft: Draft
) -> Mapping[str, Any]:
    names, path = reader.names, run.options.side(side).path
    counts = CorpusCounts()
    with (
        draft.file(DUPLICATES) as duplicates_path,
        draft.file(REJECTED) as rejected_path,
        pq.ParquetWriter(duplicates_path, DUPLICATE_FIELDS) as duplicates,
        pq.ParquetWriter(rejected_path, PLACED) as rejected,
        run.monitor.stage("read", lines, "lines", "" if run.part else side) as meter,
        draft.scratch() as scratch,
        _repeats(run, reader, scratch) as repeats,
        closing(UniqueIds(reader, scratch)) as identified,
    ):

        def count_kept() -> int:
            if repeats:
                return repeats.unique
            return sum(len(records) - len(records.rejected) for records in reader)

        def kept_tables() -> Iterator[pa.Table]:
            for sentences in unique_sentences(identified, repeats):
                duplicates.write_table(sentences.duplicates)
                if len(sentences.rejected):
                    rejected.write_table(_add_places(sentences.rejected, names, reader.starts))
                counts.add(sentences)
                meter.advance(sum(map(len, sentences)))
                yield sentences.kept

        sizes = shard_sizes(run, side, reader.files, count_kept)
        shards = _write_shards(kept_tables(), sizes, draft)
        starts = [*reader.starts]
        identified.check(path)
    facts = counts.facts()
    if len(names) > 1:
        first = facts["first_rejected"].items()
        facts["first_places"] = {why: place_of(row, names, starts) for why, row in first}
    if not facts["read"]:
        raise CorpusError(
            f"{path}: contains no documents with text; check its format "
            "(.xml is read as a dump of MediaWiki)"
        )
    if not counts.kept:
        why = ", ".join(f"{count} {reason}" for reason, count in facts["rejected"].items())
        read = counted(facts["read"], "sentences")
        raise CorpusError(f"{path}: {read} read, none usable ({why}); check it and --input-format")
    with draft.file(INPUTS) as inputs:
        inputs.write_text(json.dumps([names, starts]), encoding="utf-8")
    return {**facts, "shards": shards, "unique_ids": True}


def _repeats(
    run: RunContext, reader: Corpus, scratch: Path
) -> AbstractContextManager[Repeats | None]:
    if run.options.keeps_repeats:
        return nullcontext()
    key = repeat_key if isinstance(reader, SplitCorpus) else str
    return find_repeats(reader, scratch, within_documents=run.options.scope == DOCUMENT, key=key)


def _write_shards(tables: Iterable[pa.Table], sizes: Iterator[int], draft: Draft) -> list[int]:
    shards: list[int] = []
    for index, pieces in groupby(_cut(tables, sizes), key=itemgetter(0)):
        shards.append(0)
        with (
            draft.file(shard_file(index)) as path,
            # Ids and texts hardly repeat; a dictionary of them takes a third of the time.
            pq.ParquetWriter(path, SENTENCE_FIELDS, use_dictionary=["doc"]) as shard,
        ):
            for _, piece in pieces:
                shard.write_table(piece)
                shards[index] += len(piece)
    return shards


def _cut(tables: Iterable[pa.Table], sizes: Iterator[int]) -> Iterator[tuple[int, pa.Table]]:
    index, room = -1, 0
    for table in tables:
        while len(table):
            if not room:
                index, room = index + 1, next(sizes)
            piece = table.slice(0, room)
            yield index, piece
            room -= len(piece)
            table = table.slice(len(piece))


def _add_places(rejected: pa.Table, files: Sequence[str], starts: Sequence[int]) -> pa.Table:
    rows = rejected["row"].to_numpy()
    number = np.searchsorted(starts, rows, side="right") - 1
    names, lines = np.array(files, object)[number], rows - np.array(starts)[number] + 1
    return pa.table([names, lines, *rejected.columns], schema=PLACED)


def collect_rejected(run: RunContext, sides: Mapping[str, Sequence[EmbeddedShard]]) -> None:
    """Write each side's rejected records to ``rejected/SIDE.parquet``.

    They are the records that reading rejected, and sentences without a vector. ``sides`` are both.

    Raises:
        ValueError: The files together have more than ``options.max_rejected`` records.
        OSError: A file cannot be written.
    """
    counts = [_write_rejected(run, side, shards) for side, shards in sides.items()]
    total, maximum = sum(counts), run.options.max_rejected
    if maximum is not None and total > maximum:
        raise ValueError(
            f"--max-rejected {maximum}: {total:,} sentences were rejected (source {counts[0]:,}, "
            f"target {counts[1]:,}); to list them, add --work-dir DIR and see DIR/rejected"
        )


def _write_rejected(run: RunContext, side: str, shards: Sequence[EmbeddedShard]) -> int:
    corpus = shards[0].shard.corpus
    path = run.folder.rejected(side)
    path.parent.mkdir(parents=True, exist_ok=True)
    total = sum(corpus.facts["rejected"].values())
    with (
        atomic_file(path) as temporary,
        pq.ParquetWriter(temporary, PLACED) as writer,
        pq.ParquetFile(corpus.file(REJECTED)) as read,
    ):
        for batch in read.iter_batches():
            writer.write_batch(batch)
        files, starts = json.loads(corpus.file(INPUTS).read_text(encoding="utf-8"))
        for embedded in shards:
            if dropped := embedded.shard.rows - len(embedded):
                writer.write_table(_add_places(_dropped_texts(embedded), files, starts))
                total += dropped
    return total


def _dropped_texts(embedded: EmbeddedShard) -> pa.Table:
    dropped = pq.read_table(embedded.vectors.file(DROPPED))
    texts = []
    for batch in embedded.shard.batches(["row", "text"]):
        texts += batch.filter(pc.is_in(batch["row"], dropped["row"]))["text"].to_pylist()
    return dropped.append_column("text", [texts])
