"""Pairs as Arrow tables of what is known of them but for their sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Direction, Pairs

if TYPE_CHECKING:
    import pyarrow as pa

# The index of a name is the value of its direction.
_DIRECTIONS = ("", *(direction.name.lower() for direction in Direction))


def numbers_schema() -> pa.Schema:
    """The Arrow schema of the numbers of pairs."""
    import pyarrow as pa

    return pa.schema(
        {
            "score": pa.float64(),
            "source_row": pa.int64(),
            "target_row": pa.int64(),
            "cosine": pa.float32(),
            "source_mean": pa.float64(),
            "target_mean": pa.float64(),
            "rank": pa.int32(),
            "direction": pa.string(),
        }
    )


def table_of(pairs: Pairs) -> pa.Table:
    """A table of ``numbers_schema`` with the pairs in their order."""
    import pyarrow as pa

    columns = [
        *(pairs.score, pairs.source, pairs.target, pairs.cosine),
        *(pairs.source_mean, pairs.target_mean, pairs.rank),
        pa.array(_DIRECTIONS).take(pa.array(pairs.direction)),
    ]
    return pa.table(columns, schema=numbers_schema())


def pairs_of(table: pa.Table) -> Pairs:
    """The pairs of a table that has the columns of ``numbers_schema``, in its order."""
    directions = [_DIRECTIONS.index(name) for name in table["direction"].to_pylist()]
    return Pairs(
        source=table["source_row"].to_numpy(),
        target=table["target_row"].to_numpy(),
        score=table["score"].to_numpy(),
        cosine=table["cosine"].to_numpy(),
        source_mean=table["source_mean"].to_numpy(),
        target_mean=table["target_mean"].to_numpy(),
        rank=table["rank"].to_numpy(),
        direction=np.array(directions, dtype=np.int8),
    )
