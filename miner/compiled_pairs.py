"""The inner loops of selection, compiled by Numba."""

from typing import Any

from miner.compiling import compiled


@compiled()
def look_up(own: Any, found: Any, ids: Any, lists: Any, means: Any, mean: Any, rank: Any) -> None:
    """Enter what some rows of the other side say of those whose neighbours they are.

    Args:
        own: int64 (Q,), the rows of this side.
        found: int64 (Q, K), the neighbours of each, rows of the other side.
        ids: int64 (R,), some rows of the other side, ascending; one at least.
        lists: int64 (R, K), the neighbours of these.
        means: float64 (R,), their means.
        mean: float64 (Q, K), which gets the mean of each neighbour that is among ``ids``.
        rank: int32 (Q, K), which gets our place in its list, from 1; left as it is where it has
            none.
    """
    first, last = ids[0], ids[-1]
    for row in range(len(own)):
        for place in range(found.shape[1]):
            wanted = found[row, place]
            if wanted < first or wanted > last:
                continue
            # Rows ascend by 1 or more, which leaves as many places as there are gaps.
            low = max(0, len(ids) - 1 - (last - wanted))
            high = min(len(ids) - 1, wanted - first)
            while low < high:
                middle = (low + high) // 2
                if ids[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            mean[row, place] = means[low]
            for other in range(lists.shape[1]):
                if lists[low, other] == own[row]:
                    rank[row, place] = other + 1
                    break
