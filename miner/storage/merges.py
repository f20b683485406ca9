"""What is merged in monotone alignments: the sentences that a pair's row stands for."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from miner.monotone.blocks import joined

# Merged sentences: the side, the first row, all rows.
MERGE_FIELDS = pa.schema({"side": pa.string(), "row": pa.int64(), "rows": pa.list_(pa.int64())})


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
