"""Pairs as Arrow tables of what is known of them but for their sentences."""

from dataclasses import fields

import numpy as np
import pyarrow as pa

from miner.arrays import Direction, JudgedPairs, Pairs
from miner.storage.pairs import JUDGED

# The index of a name is the value of its direction.
_DIRECTIONS = ("", *(direction.name.lower() for direction in Direction))


def numbers_schema(*, judged: bool = False) -> pa.Schema:
    """Return the Arrow schema of the numbers of pairs."""
    return pa.schema(
        {
            "score": pa.float64(),
            **(dict.fromkeys(JUDGED, pa.float64()) if judged else {}),
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
    """Return a table of ``numbers_schema`` with the pairs in their order."""
    judged = isinstance(pairs, JudgedPairs)
    columns = [
        pairs.score,
        *([getattr(pairs, name) for name in JUDGED] if judged else []),
        *(pairs.source, pairs.target, pairs.cosine),
        *(pairs.source_mean, pairs.target_mean, pairs.rank),
        pa.array(_DIRECTIONS).take(pa.array(pairs.direction)),
    ]
    return pa.table(columns, schema=numbers_schema(judged=judged))


def pairs_of(table: pa.Table) -> Pairs:
    """Return the pairs of a table that has the columns of ``numbers_schema``, in its order.

    They are ``JudgedPairs`` where the table has what those have.
    """
    directions = [_DIRECTIONS.index(name) for name in table["direction"].to_pylist()]
    kind = JudgedPairs if "margin" in table.schema.names else Pairs
    columns = {field.name: field.name for field in fields(kind)}
    columns |= {"source": "source_row", "target": "target_row"}
    numbers = {name: table[column].to_numpy() for name, column in columns.items()}
    return kind(**numbers | {"direction": np.array(directions, dtype=np.int8)})
