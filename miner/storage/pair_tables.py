"""Pairs as Arrow tables of what is known of them but for their sentences, and merged sentences."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from miner.arrays import Direction, JudgedPairs, Pairs
from miner.monotone.blocks import joined
from miner.storage.pairs import pairs_schema

# Merged sentences: the side, the first row, all rows.
MERGE_FIELDS = pa.schema({"side": pa.string(), "row": pa.int64(), "rows": pa.list_(pa.int64())})

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
    """Return the pairs, ``JudgedPairs`` or not, of a table that ``table_of`` made, in its order."""
    directions = [_DIRECTIONS.index(name) for name in table["direction"].to_pylist()]
    judged = "margin" in table.schema.names
    names = numbers_schema(judged=judged).names
    numbers = {_FIELDS.get(name, name): table[name].to_numpy() for name in names}
    numbers["direction"] = np.array(directions, dtype=np.int8)
    return (JudgedPairs if judged else Pairs)(**numbers)


class Merges:
    """The merged sentences of a side, by their first rows, from a table of ``MERGE_FIELDS``."""

    def __init__(self, path: Path, side: str) -> None:
        table = pq.read_table(path, filters=pc.field("side") == side).sort_by("row")
        self._first = table["row"].to_numpy()
        self._rows = table["rows"].combine_chunks()

    def rows_of(self, rows: pa.Array) -> pa.ListArray:
        """Return the rows that each of some rows stands for, itself the first."""
        wanted = rows.to_numpy()
        places = np.searchsorted(self._first, wanted)
        merged = places < len(self._first)
        merged[merged] = self._first[places[merged]] == wanted[merged]
        found = self._rows.take(pa.array(np.where(merged, places, 0), mask=~merged))
        alone = pa.ListArray.from_arrays(pa.array(range(len(wanted) + 1), pa.int32()), rows)
        return pc.coalesce(found, alone)


def list_offsets(lists: pa.ListArray) -> np.ndarray:
    """Return where each list begins among the values of all, and where the last ends."""
    sizes = pc.list_value_length(lists).to_numpy()
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def joined_texts(texts: list[str], offsets: np.ndarray) -> list[str]:
    """Return the texts between two offsets as one, for each two."""
    return [joined(texts[first:last]) for first, last in pairwise(offsets.tolist())]
