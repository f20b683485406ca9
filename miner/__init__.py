"""Vectors to pairs: neighbours, margins, selection, and the artefacts they are kept in.

The public names load on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from miner.arrays import Neighbours, Pairs
    from miner.knn.exact import search_both
    from miner.margin import margin_scores
    from miner.mining import mine
    from miner.selection import candidate_pairs, select

_HOMES = {
    "Neighbours": "miner.arrays",
    "Pairs": "miner.arrays",
    "candidate_pairs": "miner.selection",
    "margin_scores": "miner.margin",
    "mine": "miner.mining",
    "search_both": "miner.knn.exact",
    "select": "miner.selection",
}

__all__ = [
    "Neighbours",
    "Pairs",
    "candidate_pairs",
    "margin_scores",
    "mine",
    "search_both",
    "select",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
