"""xSIM++: margin search among English sentences and falsified copies of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eval.data.hard_negatives import KINDS, hard_negatives
from eval.metrics.bootstrap import interval, mean_samples
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest
from eval.output import Record, Table
from eval.tasks.aligned import add_aligned_data, load, sign

OTHER = "other"
TABLE = Table("language", ["candidates", "errors", "95% interval", *KINDS, OTHER])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "Error rate of ratio-margin search among English sentences and copies of them with "
        "another number, another name or the opposite meaning; and what was found instead."
    )
    add_aligned_data(parser)


def run(args: argparse.Namespace, show: Callable[[str], None]) -> Record:
    """Search in every language and count what was found.

    An error is counted as a kind where the changed copy of that kind of the right sentence was
    found, and as ``other`` where it was another sentence, or a copy of one, or nothing.
    """
    loaded = load(args)
    show(TABLE.header)
    sentences = loaded.data.texts[loaded.english]
    copies = hard_negatives(sentences)
    # What each candidate is (a position in KINDS, -1 an original), and of which sentence.
    kinds = np.array([-1] * len(sentences) + [KINDS.index(copy.kind) for copy in copies])
    rows = np.array([*range(len(sentences)), *(copy.row for copy in copies)])
    results: dict[str, Record] = {}
    samples: list[NDArray[np.float64]] = []
    for language, vectors, english in loaded.sides([copy.text for copy in copies]):
        forward, backward = nearest(vectors, english)
        found = best_by_margin(forward, backward, margin="ratio")
        own = (found >= 0) & (rows[found] == np.arange(len(sentences)))
        missed = ~own | (kinds[found] >= 0)
        samples.append(mean_samples(missed, stream=0))
        results[language] = {
            "errors": float(missed.mean()),
            "interval": interval(samples[-1]),
            **{kind: float((own & (kinds[found] == at)).mean()) for at, kind in enumerate(KINDS)},
            OTHER: float((~own).mean()),
        }
        show(TABLE.row(language, len(english), *results[language].values()))
    mean = {
        name: interval(np.mean(samples, axis=0))
        if name == "interval"
        else float(np.mean([result[name] for result in results.values()]))
        for name in ("errors", "interval", *KINDS, OTHER)
    }
    if len(results) > 1:
        show(TABLE.row("mean", None, *mean.values()))
    counts = {kind: sum(copy.kind == kind for copy in copies) for kind in KINDS}
    fields = {"k": NEIGHBOURS, "margin": "ratio", "negatives": "adit-1", **counts}
    signed = sign("xsim++", loaded.encoder, loaded.data, **fields)
    show(signed)
    return {
        "task": "xsim++",
        "languages": results,
        "mean": mean,
        "hard_negatives": counts,
        "signature": signed,
    }
