"""The share stage: the encoded corpora of a run, as both sides of each pair that is mined."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from encoder.joined import parse_joined
from miner.arrays import Columns
from miner.storage.layout import SIDES
from pipelines.context import RunContext
from pipelines.options import Of
from pipelines.references import EmbeddedShard


def share_corpora(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[Of]:
    """Return the shards of each pair of corpora; those of a corpus go to all its pairs."""
    return [Of(pair, _both_sides(run.of(pair), shards)) for pair in run.job.pairs]


def _both_sides(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[EmbeddedShard]:
    return [
        replace(
            embedded,
            shard=replace(embedded.shard, side=side),
            columns=_columns(run.options.encoder, embedded.vectors.facts["parts"]),
        )
        for side in SIDES
        for embedded in shards
        if embedded.shard.corpus.folder.name == run.folder.corpus(side)
    ]


def _columns(encoder: str, widths: Mapping[str, int]) -> tuple[Columns, ...]:
    """Return where the parts of a pair's encoder lie in vectors of parts of these dimensions."""
    if not widths:
        return ()
    stops = dict(zip(widths, accumulate(widths.values()), strict=True))
    return tuple(
        Columns(stops[part.spec] - widths[part.spec], stops[part.spec], part.weight)
        for part in parse_joined(encoder)
    )
