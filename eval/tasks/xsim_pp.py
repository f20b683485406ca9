"""xSIM++: margin search among English sentences and falsified copies of them."""

import argparse

import numpy as np

from encoder import load_encoder
from eval.data.hard_negatives import KINDS, hard_negatives
from eval.metrics.bootstrap import mean_samples
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest
from eval.output import Measured, Record, Rows, Show, Table
from eval.tasks.aligned import add_aligned_data, encoded_sides, load_texts, sign

OTHER = "other"
TABLE = Table("language", ["candidates", "errors", "95% interval", *KINDS, OTHER])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "Error rate of ratio-margin search among English sentences and copies of them with "
        "another number, another name or the opposite meaning; and what was found instead."
    )
    add_aligned_data(parser)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Search in every language and count what was found.

    An error is counted as a kind where the changed copy of that kind of the right sentence was
    found, and as ``other`` where it was another sentence, or a copy of one, or nothing.
    """
    data, english = load_texts(args)
    encoder = load_encoder(args.encoder)
    sentences = data.texts[english]
    copies = hard_negatives(sentences)
    # What each candidate is (a position in KINDS, -1 an original), and of which sentence.
    kinds = np.array([-1] * len(sentences) + [KINDS.index(copy.kind) for copy in copies])
    owners = np.array([*range(len(sentences)), *(copy.row for copy in copies)])
    rows = Rows(TABLE, show)
    more = {english: [copy.text for copy in copies]}
    for language, vectors, candidates in encoded_sides(encoder, data, english, more):
        found = best_by_margin(*nearest(vectors, candidates), margin="ratio")
        own = (found >= 0) & (owners[found] == np.arange(len(sentences)))
        missed = ~own | (kinds[found] >= 0)
        figures: dict[str, Measured] = {
            "errors": float(missed.mean()),
            "interval": mean_samples(missed),
            **{kind: float((own & (kinds[found] == at)).mean()) for at, kind in enumerate(KINDS)},
            OTHER: float((~own).mean()),
        }
        rows.add(language, len(candidates), figures)
    mean = rows.mean()
    counts = {kind: sum(copy.kind == kind for copy in copies) for kind in KINDS}
    fields = {"k": NEIGHBOURS, "margin": "ratio", "negatives": "adit-1", **counts}
    record = {"languages": rows.records, "mean": mean, "hard_negatives": counts}
    return sign(show, "xsim++", record, encoder, data, **fields)
