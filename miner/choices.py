"""Choices of options, for command lines whose ``--help`` loads no NumPy."""

from collections.abc import Collection

# Keys of miner.margin.MARGINS, miner.selection.RETRIEVALS and miner.filters.FILTERS.
MARGINS = ("ratio", "distance", "absolute", "csls")
FORMULAS = (
    "of the cosine a and the mean b of both sentences' cosines to their nearest neighbours; ratio: "
    "a / b; distance: a - b; absolute: a; csls: 2a - 2b"
)
MARGINS_HELP = f"score to select pairs by, {FORMULAS}"
RETRIEVALS = ("max", "intersect", "forward", "backward")
RETRIEVALS_HELP = (
    "selection of pairs by margin; max: the best first, each sentence once; forward, backward: the "
    "best of each source or target sentence; intersect: pairs that are the best of both sentences"
)
SCORES = ("words", "margin")
TEXTS = "texts"  # only in adit rate: words without neighbours, while the file is read
FILTERS = ("short", "length", "copied", "numbers", "urls", "script", "hub", "language")
# Names for several filters, against common faults of web text.
FILTER_SETS = {"web": ("language", "copied", "length", "numbers", "urls", "script")}

# Pair any sentence with any of its neighbours, or align documents in order.
FREE, MONOTONE = ALIGNMENTS = ("free", "monotone")
LINES = "lines"  # only in adit rate: line i of both corpora is a pair

# Whether adit rate writes the best pairs first, or every line of its input in its place.
BY_SCORE, AS_INPUT = ORDERS = ("score", "input")

# Precisions of the exact search's products (miner.knn.core.codes); auto is the fastest.
SEARCH_PRECISIONS = ("auto", "float32", "bfloat16", "int8")


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Check that ``value`` is one of ``choices``.

    Raises:
        ValueError: It is not. The message begins with ``name``.
    """
    if value not in choices:
        raise ValueError(f"{name} {value!r} is unknown; choose one of {', '.join(choices)}")
