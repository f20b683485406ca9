"""Exact k nearest neighbours in both directions from one product.

Forward and backward search need the same matrix of similarities, which is computed once: as a table
where it fits one, else tile by tile (``miner.knn.tiled``). Axes: ``N`` source rows, ``M`` target
rows, ``D`` dimensions.
"""

from collections.abc import Callable

from numpy.typing import ArrayLike

from miner.arrays import Matrix, Neighbours
from miner.choices import check_choice
from miner.knn.core.codes import PRECISIONS, Precision
from miner.knn.core.rescore import (
    MAX_SIMILARITIES,
    check_search,
    checked_vectors,
    search_table,
    unit_rows,
)
from miner.knn.duplicates import Distinct, expand, find_distinct
from miner.knn.tiled import search_tiles

# From this share of repeated rows on, distinct rows are searched; fewer cost less than their copy.
REPEATED = 1 / 20


def search_both(
    source: ArrayLike,
    target: ArrayLike,
    *,
    k: int,
    precision: Precision | None = None,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest targets of each source and the k nearest sources of each target.

    Exact: the result is that of a full sort by (cosine descending, position ascending), whatever
    the threads, the precision and the machine.

    Args:
        source: vectors of any scale, real numbers (N, D); a side may be empty.
        target: vectors (M, D).
        k: neighbours of each row; clipped to the size of the other side.
        precision: of the product; affects speed, never results (default: fastest here). bfloat16
            needs torch, and so does int8 where the processor has no VNNI instructions.
        progress: called with the number of similarities computed so far, in parts.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions.

    Raises:
        ValueError: vectors that are not two-dimensional, not real, not finite or zero, k below 1,
            sides of different dimensions, or an unknown precision.
    """
    sides = [checked_vectors(source, "source"), checked_vectors(target, "target")]
    check_search(*sides, k=k)
    units = [unit_rows(side) for side in sides]
    return search_unit_rows(*units, k=k, precision=precision, progress=progress)


def search_unit_rows(
    source: Matrix,
    target: Matrix,
    *,
    k: int,
    precision: Precision | None = None,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """Do as ``search_both`` with rows as ``miner.knn.core.rescore.unit_rows`` makes them.

    They are not looked at: rows of another length, or that are not finite, give nonsense.
    """
    check_search(source, target, k=k)
    if precision:
        check_choice("precision", precision, PRECISIONS)
    if len(source) * len(target) <= MAX_SIMILARITIES:
        found = search_table(source, target, k=k)
        progress(len(source) * len(target))
        return found
    rows, columns = find_distinct(source), find_distinct(target)
    if not (_repetitive(rows) or _repetitive(columns)):
        return search_tiles(source, target, k=k, precision=precision, progress=progress)
    repeats = len(source) * len(target) / max(1, len(rows.first) * len(columns.first))
    forward, backward = search_tiles(
        source[rows.first],
        target[columns.first],
        k=k,
        precision=precision,
        progress=lambda products: progress(round(products * repeats)),
    )
    return (
        expand(forward, rows, columns, k=min(k, len(target))),
        expand(backward, columns, rows, k=min(k, len(source))),
    )


def _repetitive(rows: Distinct) -> bool:
    return len(rows.first) < (1 - REPEATED) * len(rows.group)
