"""Arrow tables of pairs without sentences, and of merged sentences."""

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

# The field of ``Pairs`` of each column whose name differs.
_FIELD_OF_COLUMN = {"source_row": "source", "target_row": "target"}
_SENTENCE_COLUMNS = ("_id", "_doc", "_text", "_duplicates")


def numbers_schema(*, judged: bool = False) -> pa.Schema:
    """Return the Arrow schema of pairs without sentences.

    It has ``score``, ``source_row``, ``target_row``, ``cosine``, ``source_mean``, ``target_mean``,
    ``rank`` and ``direction``. ``judged`` adds ``probability`` and ``margin``.
    """
    schema = pairs_schema(judged=judged)
    return pa.schema([field for field in schema if not field.name.endswith(_SENTENCE_COLUMNS)])


def table_of(pairs: Pairs) -> pa.Table:
    """Convert pairs to a table of ``numbers_schema``, in their order.

    Directions become ``forward``, ``backward``, ``both``, or "" for 0.
    """
    schema = numbers_schema(judged=isinstance(pairs, JudgedPairs))
    columns = {name: getattr(pairs, _FIELD_OF_COLUMN.get(name, name)) for name in schema.names}
    columns["direction"] = pa.array(_DIRECTIONS).take(pa.array(pairs.direction))
    return pa.table(columns, schema=schema)


def pairs_of(table: pa.Table) -> Pairs:
    """Undo ``table_of``, with ``JudgedPairs`` if the table has a ``margin``."""
    directions = [_DIRECTIONS.index(name) for name in table["direction"].to_pylist()]
    judged = "margin" in table.schema.names
    names = numbers_schema(judged=judged).names
    numbers = {_FIELD_OF_COLUMN.get(name, name): table[name].to_numpy() for name in names}
    numbers["direction"] = np.array(directions, dtype=np.int8)
    return (JudgedPairs if judged else Pairs)(**numbers)


class Merges:
    """Merged ``source`` or ``target`` rows, read from a ``merges.parquet``."""

    def __init__(self, path: Path, side: str) -> None:
        table = pq.read_table(path, filters=pc.field("side") == side).sort_by("row")
        self._first = table["row"].to_numpy()
        self._rows = table["rows"].combine_chunks()

    def rows_of(self, rows: pa.Array) -> pa.ListArray:
        """Return all rows that are merged into each of some int64 rows, as lists.

        A list begins with the row itself, and has no other if none is merged.
        """
        values = rows.to_numpy()
        positions = np.searchsorted(self._first, values)
        is_merged = positions < len(self._first)
        is_merged[is_merged] = self._first[positions[is_merged]] == values[is_merged]
        merges = self._rows.take(pa.array(np.where(is_merged, positions, 0), mask=~is_merged))
        single = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), rows)
        return pc.coalesce(merges, single)


def list_offsets(lists: pa.ListArray) -> np.ndarray:
    """Return the offsets of N lists in their joined values, int64 (N + 1,)."""
    sizes = pc.list_value_length(lists).to_numpy()
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def joined_texts(texts: list[str], offsets: np.ndarray) -> list[str]:
    """Join the texts from each offset to the next with ``blocks.joined``."""
    return [joined(texts[first:last]) for first, last in pairwise(offsets.tolist())]
