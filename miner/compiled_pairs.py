"""The inner loops of selection, compiled by Numba."""

from typing import Any

from miner.compiling import compiled


@compiled()
def fill_reverse_ranks(
    own: Any, found: Any, ids: Any, lists: Any, means: Any, mean: Any, rank: Any
) -> None:
    """Enter what some rows of the other side say of those whose neighbours they are.

    ``own`` (Q,) are rows of this side and ``found`` (Q, K) their neighbours. Of these, ``ids`` (R,)
    are some, ascending, with ``lists`` (R, K) and ``means`` (R,) of their own: ``mean`` (Q, K) gets
    the mean of each, and ``rank`` (Q, K), where it has one, our place in its list, from 1.
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
