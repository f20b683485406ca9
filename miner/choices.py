"""The names that options choose from, for command lines that load no NumPy for their ``--help``."""

from collections.abc import Collection

# Each but SCORES is a function of this name: in miner.margin, miner.selection and miner.filters.
MARGINS = ("ratio", "distance", "absolute", "csls")
RETRIEVALS = ("max", "intersect", "forward", "backward")
SCORES = ("words", "margin")
FILTERS = ("short", "length", "copied", "numbers", "urls", "script", "hub", "language")

# Whether any sentence may be paired with any of its neighbours, or documents are aligned in order.
FREE, MONOTONE = ALIGNMENTS = ("free", "monotone")
LINES = "lines"  # of adit rate: line i of both corpora is a pair

# Of the exact search's products, see miner.knn.core.codes; auto is the fastest here.
SEARCH_PRECISIONS = ("auto", "float32", "bfloat16", "int8")


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse a value that is not one of those there are, with a ValueError."""
    if value not in choices:
        raise ValueError(f"{name} {value!r} is unknown; choose one of {', '.join(choices)}")
