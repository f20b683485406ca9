"""The names that options choose from, for command lines that load no NumPy for their ``--help``."""

from __future__ import annotations

# Each is a function of this name: in miner.margin, miner.selection and miner.filters.
MARGINS = ("ratio", "distance", "absolute", "csls")
RETRIEVALS = ("max", "intersect", "forward", "backward")
FILTERS = ("short", "length", "copied", "numbers", "hub", "language")

# Of the exact search's products, see miner.knn.core.codes; auto is the fastest here.
SEARCH_PRECISIONS = ("auto", "float32", "bfloat16", "int8")
