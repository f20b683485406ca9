"""The share stage: the encoded corpora of a run, as both sides of each pair that is mined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from miner.storage.layout import SIDES
from pipelines.context import RunContext
from pipelines.job import Of
from pipelines.references import EmbeddedShard


def share_corpora(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[Of]:
    """Return the shards of each pair of corpora; those of a corpus go to all its pairs."""
    return [Of(pair, _both_sides(run.of(pair), shards)) for pair in run.job.pairs]


def _both_sides(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[EmbeddedShard]:
    return [
        replace(embedded, shard=replace(embedded.shard, side=side))
        for side in SIDES
        for embedded in shards
        if embedded.shard.corpus.folder.name == run.folder.corpus(side)
    ]
