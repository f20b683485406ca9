"""Sentences that were left out, for people to look at: ``rejected/SIDE.parquet``."""

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from miner.storage.atomic import atomic_file
from miner.storage.layout import DROPPED, INPUTS, REJECTED
from pipelines.context import RunContext
from pipelines.options import MiningOptions
from pipelines.references import EmbeddedShard
from pipelines.stages.encode import dropped
from pipelines.stages.reading.read import PLACED, with_places

READ_ROWS = 32_768


def collect_rejected(run: RunContext, side: str, shards: Sequence[EmbeddedShard]) -> int:
    """Write what reading and encoding left out of a side, each with its place; return how many.

    The columns are ``file``, ``line`` in it (from 1), ``row``, ``why`` and ``text``.
    """
    corpus = shards[0].shard.corpus
    path = run.folder.rejected(side)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        atomic_file(path) as temporary,
        pq.ParquetWriter(temporary, PLACED) as writer,
        pq.ParquetFile(corpus.file(REJECTED)) as read,
    ):
        for batch in read.iter_batches():
            writer.write_batch(batch)
        files, starts = json.loads(corpus.file(INPUTS).read_text(encoding="utf-8"))
        for embedded in shards:
            if embedded.vectors.facts["dropped"]:
                writer.write_table(with_places(_dropped_texts(embedded), files, starts))
    return sum(corpus.facts["rejected"].values()) + dropped(shards).total()


def _dropped_texts(embedded: EmbeddedShard) -> pa.Table:
    """Return a shard's sentences without a vector, a table of ``REJECTED_FIELDS``."""
    lost = pq.read_table(embedded.vectors.file(DROPPED))
    texts = []
    for batch in embedded.shard.batches(["row", "text"], READ_ROWS):
        texts += batch.filter(pc.is_in(batch["row"], lost["row"]))["text"].to_pylist()
    return lost.append_column("text", [texts])


def check_rejected(options: MiningOptions, counts: Sequence[int]) -> None:
    """Compare the number of what was rejected on each side with ``--max-rejected``.

    Raises:
        ValueError: it is larger.
    """
    total, most = sum(counts), options.max_rejected
    if most is not None and total > most:
        raise ValueError(
            f"--max-rejected {most}: {total:,} sentences were rejected (source {counts[0]:,}, "
            f"target {counts[1]:,}); with --work-dir DIR, DIR/rejected lists them"
        )
