"""The exact search of sides whose similarities fit a table: no candidates, no compiled loops."""

import numpy as np

from miner.arrays import Matrix, Neighbours
from miner.threads import blocks

# Similarities up to which a table is soonest searched: past it, loading Numba (half a second) pays.
MAX_SIMILARITIES = 1 << 22
BLOCK_ROWS = 1024


def search_table(source: Matrix, target: Matrix, *, k: int) -> tuple[Neighbours, Neighbours]:
    """Return what ``miner.knn.exact.search_unit_rows`` does, from a table (N, M) of all cosines.

    They are sums of float64, which are exact (``miner.knn.core.rescore``).
    """
    table = np.empty((len(source), len(target)), dtype=np.float32)
    for columns in blocks(len(target), BLOCK_ROWS):
        others = target[columns].astype(np.float64).T
        for rows in blocks(len(source), BLOCK_ROWS):
            table[rows, columns] = source[rows].astype(np.float64) @ others
    return _best_of_rows(table, k), _best_of_rows(np.ascontiguousarray(table.T), k)


def _best_of_rows(table: Matrix, k: int) -> Neighbours:
    """Return the k largest numbers of each row, ties to the lower column."""
    rows, columns = table.shape
    k = min(k, columns)
    if not table.size:
        return Neighbours.none(rows, k)
    least = np.partition(table, columns - k, axis=1)[:, columns - k]
    row, column = np.nonzero(table >= least[:, None])  # with all that are equal to the k-th
    order = np.lexsort((column, -table[row, column], row))
    start = np.searchsorted(row, np.arange(rows))
    ids = column[order[start[:, None] + np.arange(k)]]
    return Neighbours(ids=ids, cosines=np.take_along_axis(table, ids, axis=1))
