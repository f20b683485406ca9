"""Error rate of ratio-margin search among English sentences and falsified copies of them.

Copies have another number, another name or the opposite meaning; what was found instead is shown,
too.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from encoder import Encoder
from eval.data.hard_negatives import KINDS, hard_negatives
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest
from eval.tasks.aligned import add_aligned_data, encoded_sides, fields_of_texts, load_texts
from eval.tasks.suite import Figure, Suite, mean_figure

OTHER = "other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts, and falsify the English ones.

    An error is counted as a kind where the changed copy of that kind of the right sentence was
    found, and as ``other`` where it was another sentence, or a copy of one, or nothing.

    Raises:
        ValueError: data is missing or malformed.
    """
    data, english = load_texts(args)
    sentences = data.texts[english]
    copies = hard_negatives(sentences)
    # What each candidate is (a position in KINDS, -1 an original), and of which sentence.
    kinds = np.array([-1] * len(sentences) + [KINDS.index(copy.kind) for copy in copies])
    owners = np.array([*range(len(sentences)), *(copy.row for copy in copies)])
    more = {english: [copy.text for copy in copies]}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, vectors, candidates in encoded_sides(encoder, data, english, more):
            found = best_by_margin(*nearest(vectors, candidates), margin="ratio")
            own = (found >= 0) & (owners[found] == np.arange(len(sentences)))
            missed = ~own | (kinds[found] >= 0)
            instead = {kind: own & (kinds[found] == at) for at, kind in enumerate(KINDS)}
            shares = {kind: float(each.mean()) for kind, each in {**instead, OTHER: ~own}.items()}
            yield replace(mean_figure(language, missed), lower=True, beside=shares)

    counts = {kind: sum(copy.kind == kind for copy in copies) for kind in KINDS}
    fields = {"k": NEIGHBOURS, "margin": "ratio", "negatives": "adit-1", **counts}
    return Suite(
        task="xsim++",
        label="language",
        fields={**fields_of_texts(data), **fields},
        measure=measure,
        figure="errors",
        after=(*KINDS, OTHER),
        languages=data.languages,
    )
