"""eval-encoder retrieval without its command line: P@N among aligned texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from eval.metrics.bootstrap import interval, mean_samples
from eval.metrics.retrieval import DEPTHS, translation_ranks
from eval.table import Table
from eval.tasks.aligned import Loaded

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMES = tuple(f"P@{depth}" for depth in DEPTHS)
TABLE = Table("pair", ["sentences", *NAMES, "95% of P@1"])


def run_retrieval(
    loaded: Loaded, *, others: int | None, tell: Callable[[str], None]
) -> dict[str, object]:
    """P@1, 5 and 10 from each language into English and back; the report as a record for JSON.

    Args:
        loaded: texts and encoder.
        others: how many other sentences a translation is looked for among; None for all.
        tell: called with each line of the table as it is ready.

    Raises:
        ValueError: there are not that many other sentences.
    """
    tell(TABLE.header)
    english = loaded.vectors(loaded.english)
    results: dict[str, dict[str, object]] = {}
    shares: list[NDArray[np.float64]] = []
    samples: list[NDArray[np.float64]] = []
    for language in loaded.others:
        vectors = loaded.vectors(language)
        for source, target, pair in (
            (vectors, english, f"{language}-{loaded.english}"),
            (english, vectors, f"{loaded.english}-{language}"),
        ):
            ranks = translation_ranks(source, target, others=others)
            shares.append(np.array([float((ranks <= depth).mean()) for depth in DEPTHS]))
            samples.append(mean_samples(ranks == 1, stream=0))
            by_depth = dict(zip(NAMES, shares[-1].tolist(), strict=True))
            results[pair] = {**by_depth, "interval": interval(samples[-1])}
            tell(TABLE.row(pair, len(ranks), *by_depth.values(), interval(samples[-1])))
    mean = dict(zip(NAMES, np.mean(shares, axis=0).tolist(), strict=True))
    mean_interval = interval(np.mean(samples, axis=0))
    tell(TABLE.row("mean", None, *mean.values(), mean_interval))
    drawn = "all" if others is None else others
    signed = loaded.signature("retrieval", others=drawn, similarity="cosine")
    tell(signed)
    return {
        "task": "retrieval",
        "pairs": results,
        "mean": {**mean, "interval": mean_interval},
        "signature": signed,
    }
