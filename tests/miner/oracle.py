"""The slow and obvious mining that every fast path is compared with.

Axes: ``N`` source rows, ``M`` target rows, ``D`` dim, ``K`` neighbours.
"""

from typing import NamedTuple

import numpy as np


class Edge(NamedTuple):
    """A pair as the oracle knows it."""

    source: int
    target: int
    score: float
    cosine: float
    source_mean: float
    target_mean: float
    rank: int
    direction: int


def unit_rows(vectors):
    """Each row divided by its length, in float64, then rounded to multiples of 2**-26."""
    units = np.empty(np.shape(vectors), dtype=np.float32)
    for row, vector in enumerate(vectors):
        vector = np.array(vector, dtype=np.float64)
        vector = vector / 2.0 ** np.floor(np.log2(np.abs(vector).max()))
        vector = vector / np.sqrt((vector * vector).sum())
        units[row] = np.round(vector * 2.0**26) / 2.0**26
    return units


def cosines(source, target):
    """Cosines of all pairs of unit rows: summed in float64, rounded to float32 (N, M)."""
    table = np.empty((len(source), len(target)), dtype=np.float32)
    for row, vector in enumerate(source.astype(np.float64)):
        table[row] = (vector * target.astype(np.float64)).sum(axis=1)
    return table


def nearest(table, k):
    """Each row's k best columns by a full sort, ties to the lower column: ids and cosines."""
    ids = [sorted(range(len(row)), key=lambda column: (-row[column], column))[:k] for row in table]
    ids = np.array(ids, dtype=np.int64).reshape(len(table), min(k, table.shape[1]))
    return ids, np.take_along_axis(table, ids, axis=1)


def margin(name, a, sums, k):
    """Artetxe & Schwenk 2019, equations 2 and 3; CSLS by Conneau et al. 2018, equation 2.

    ``sums`` and ``k`` are of the source's neighbours, then of the target's.
    """
    b = sums[0] / (2 * k[0]) + sums[1] / (2 * k[1])
    if name == "absolute":
        return a
    if name == "distance":
        return a - b
    if name == "ratio":
        return a / max(b, 1e-6)
    assert name == "csls"
    return 2 * a - sums[0] / k[0] - sums[1] / k[1]


def candidates(table, k, margin_name):
    """Every pair in the k nearest of either side, in order of source, then target."""
    forward, backward = nearest(table, k)[0].tolist(), nearest(table.T, k)[0].tolist()
    edges = []
    for x in range(len(forward)):
        for y in range(len(backward)):
            direction = (1 if y in forward[x] else 0) + (2 if x in backward[y] else 0)
            if not direction:
                continue
            near_x = [float(table[x, other]) for other in forward[x]]
            near_y = [float(table[other, y]) for other in backward[y]]
            sums, sizes = (sum(near_x), sum(near_y)), (len(near_x), len(near_y))
            edges.append(
                Edge(
                    source=x,
                    target=y,
                    score=margin(margin_name, float(table[x, y]), sums, sizes),
                    cosine=float(table[x, y]),
                    source_mean=sums[0] / sizes[0],
                    target_mean=sums[1] / sizes[1],
                    rank=1 + (forward[x].index(y) if direction & 1 else backward[y].index(x)),
                    direction=direction,
                )
            )
    return edges


def best_first(edge):
    """The key that sorts edges best first."""
    return (-edge.score, edge.source, edge.target)


def best_of_each(edges, side):
    """For each source (or target): the edges in its own list that score best, best first."""
    own = [edge for edge in edges if edge.direction & (1 if side == "source" else 2)]
    best = {}
    for edge in sorted(own, key=best_first):
        ties = best.setdefault(getattr(edge, side), [edge])
        if edge is not ties[0] and edge.score == ties[0].score:
            ties.append(edge)
    return list(best.values())


def select(edges, retrieval, threshold=-np.inf):
    """Pairs that the retrieval chooses, above the threshold, best first."""
    forward = best_of_each(edges, "source")
    backward = best_of_each(edges, "target")
    forward_first = {ties[0] for ties in forward}
    backward_first = {ties[0] for ties in backward}
    if retrieval == "forward":
        chosen = forward_first
    elif retrieval == "backward":
        chosen = backward_first
    elif retrieval == "intersect":
        chosen = forward_first & backward_first
    else:
        assert retrieval == "max"
        mutual = {edge for ties in forward for edge in ties} & {
            edge for ties in backward for edge in ties
        }
        chosen = one_to_one(forward_first | backward_first | mutual)
    return sorted((edge for edge in chosen if edge.score > threshold), key=best_first)


def one_to_one(edges):
    """Greedy: take the best edge whose sentences are both free, until there is none."""
    sources, targets, taken = set(), set(), []
    for edge in sorted(edges, key=best_first):
        if edge.source not in sources and edge.target not in targets:
            sources.add(edge.source)
            targets.add(edge.target)
            taken.append(edge)
    return taken


def mine(source, target, *, k, margin, retrieval, threshold=-np.inf):
    """All of it, from vectors of any length."""
    table = cosines(unit_rows(source), unit_rows(target))
    return select(candidates(table, k, margin), retrieval, threshold)
