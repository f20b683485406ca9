"""Mine sentence pairs by their vectors.

The public names load on first use, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from miner.arrays import Neighbours as Neighbours
    from miner.arrays import Pairs as Pairs
    from miner.knn.exact import search_both as search_both
    from miner.margin import margin_scores as margin_scores
    from miner.mining import mine as mine
    from miner.selection import candidate_pairs as candidate_pairs
    from miner.selection import select as select

_HOMES = {
    "Neighbours": "miner.arrays",
    "Pairs": "miner.arrays",
    "candidate_pairs": "miner.selection",
    "margin_scores": "miner.margin",
    "mine": "miner.mining",
    "search_both": "miner.knn.exact",
    "select": "miner.selection",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
