"""Pairs as Arrow tables of what is known of them but for their sentences."""

import numpy as np
import pyarrow as pa

from miner.arrays import Direction, JudgedPairs, Pairs
from miner.storage.pairs import pairs_schema

# The index of a name is the value of its direction.
_DIRECTIONS = ("", *(direction.name.lower() for direction in Direction))

# The fields of ``Pairs`` by the names of columns, where these differ.
_FIELDS = {"source_row": "source", "target_row": "target"}
_OF_SENTENCES = ("_id", "_doc", "_text", "_duplicates")


def numbers_schema(*, judged: bool = False) -> pa.Schema:
    """Return the Arrow schema of the numbers of pairs."""
    schema = pairs_schema(judged=judged)
    return pa.schema([field for field in schema if not field.name.endswith(_OF_SENTENCES)])


def table_of(pairs: Pairs) -> pa.Table:
    """Return a table of ``numbers_schema`` with the pairs in their order."""
    schema = numbers_schema(judged=isinstance(pairs, JudgedPairs))
    columns = {name: getattr(pairs, _FIELDS.get(name, name)) for name in schema.names}
    columns["direction"] = pa.array(_DIRECTIONS).take(pa.array(pairs.direction))
    return pa.table(columns, schema=schema)


def pairs_of(table: pa.Table) -> Pairs:
    """Return the pairs of a table that has the columns of ``numbers_schema``, in its order.

    They are ``JudgedPairs`` where the table has what those have.
    """
    directions = [_DIRECTIONS.index(name) for name in table["direction"].to_pylist()]
    judged = "margin" in table.schema.names
    names = numbers_schema(judged=judged).names
    numbers = {_FIELDS.get(name, name): table[name].to_numpy() for name in names}
    numbers["direction"] = np.array(directions, dtype=np.int8)
    return (JudgedPairs if judged else Pairs)(**numbers)
