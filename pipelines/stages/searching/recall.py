"""The recall of an approximate search: measured on a few rows that are searched exactly, too."""

from collections.abc import Mapping, Sequence

import numpy as np

from miner.arrays import Neighbours
from miner.knn.core.rescore import merge
from miner.knn.exact import search_unit_rows
from pipelines.references import EmbeddedShard

SAMPLE = 256  # rows of a shard: their exact search costs 256 M products, and reads all of M
MAX_SHARDS = 16  # of a side that are measured


def is_measured(embedded: EmbeddedShard) -> bool:
    """Return whether recall is measured on rows of this shard: every one, or each n-th."""
    shard = embedded.shard
    stride = -(-shard.corpus.facts["shards"] // MAX_SHARDS)
    return shard.index % stride == 0


def measure_recall(
    embedded: EmbeddedShard, others: Sequence[EmbeddedShard], found: Neighbours, *, k: int
) -> Mapping[str, int]:
    """Count the true neighbours of some rows of a shard, and those of them that were found.

    A found neighbour counts if it is as near as the last true one: which of equally near ones is
    taken makes no difference to a margin.
    """
    rows = embedded.unit_vectors()
    places = np.arange(min(SAMPLE, len(rows))) * len(rows) // max(1, min(SAMPLE, len(rows)))
    exact = Neighbours.none(len(places), 0)
    start = 0
    for other in others:
        base = other.unit_vectors()
        near, _ = search_unit_rows(rows[places], base, k=k)
        near.ids[:] += start
        start += len(base)
        exact = merge([exact, near], k=k)
    wanted = exact.cosines.size
    kept = (found.cosines[places] >= exact.cosines[:, -1:]).sum() if wanted else 0
    return {"recall_wanted": wanted, "recall_found": int(kept)}
