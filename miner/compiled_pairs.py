"""The inner loops of selection, compiled by Numba."""

from typing import Any

from miner.compiling import compiled


@compiled()
def fill_reverse_ranks(
    rows: Any, neighbours: Any, ids: Any, lists: Any, means: Any, mean: Any, rank: Any
) -> None:
    """Fill in the mean cosine and the reverse rank of each neighbour.

    Neighbours that are not among ``ids`` are skipped, so several calls fill the outputs.

    Args:
        rows: ids of rows of one side, int64 (Q,).
        neighbours: ids of the rows' neighbours on the other side, int64 (Q, K), or -1.
        ids: ids of rows of the other side, int64 (R,), ascending, not empty.
        lists: their neighbours, int64 (R, K).
        means: their mean cosines, float64 (R,).
        mean: output, the mean cosine of each of ``neighbours``, float64 (Q, K).
        rank: output, the position of the row in the neighbour's list, from 1, int32 (Q, K).
    """
    first, last = ids[0], ids[-1]
    for row in range(len(rows)):
        for column in range(neighbours.shape[1]):
            neighbour = neighbours[row, column]
            if neighbour < first or neighbour > last:
                continue
            # Ids ascend by at least 1, which bounds the position on both sides.
            low = max(0, len(ids) - 1 - (last - neighbour))
            high = min(len(ids) - 1, neighbour - first)
            while low < high:
                middle = (low + high) // 2
                if ids[middle] < neighbour:
                    low = middle + 1
                else:
                    high = middle
            mean[row, column] = means[low]
            for position in range(lists.shape[1]):
                if lists[low, position] == rows[row]:
                    rank[row, column] = position + 1
                    break
