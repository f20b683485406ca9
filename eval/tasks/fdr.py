"""Measure the true error rate of the pairs that 'adit mine' keeps.

Pairs are kept by --fdr 1, 5, 10 and 20% ('wanted'), and without it ('likely'). 'expected' is the
run's own estimate. Translations missing in the gold pairs are wrong. The last rows are the mean,
the mean 'error' of the true rate against the wanted one, and the 'highest' true rate.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from encoder import load_encoder
from eval.data.bucc import load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bucc import BuccScore, score_at
from eval.output import Record, Show, Table, score_record, sign
from eval.tasks.arguments import add_bucc_data, chosen_pairs
from eval.tasks.mined_splits import MinedSplit, likely_score, mine_split
from miner.arrays import FloatArray, JudgedPairs
from miner.judge.model import load_judge
from miner.judge.prior import count_kept

WANTED = (0.01, 0.05, 0.1, 0.2)
LIKELY = "likely"  # the default rule of a run, a probability of at least 0.5
BINS = 10  # of probabilities
TABLE = Table("pair", ["wanted", "true FDR", "expected", "pairs", "recall", "F1"])


class Kept(NamedTuple):
    """The score of the pairs that a run keeps for a given error rate.

    ``wanted`` is the error rate, or None for the pairs with a probability of at least 0.5.
    ``expected`` is the mean of 1 - probability of the kept pairs, 0 for no pairs.
    """

    wanted: float | None
    expected: float
    score: BuccScore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_bucc_data(parser)
    text = "split to mine, SPLIT in the files' names (default: training)"
    parser.add_argument("--split", default="training", help=text)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run as in ``TaskModule``, with figures by language pair in ``pairs``."""
    names = chosen_pairs(args)
    data = {name: load_bucc(args.directory, name, args.split) for name in names}
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    record: Record = {}
    kept_by_pair: list[list[Kept]] = []
    for name, split in data.items():
        mined = mine_split(split, encoder=encoder, judged=True)
        kept_by_pair.append(measure(mined))
        records = []
        for wanted, expected, score in kept_by_pair[-1]:
            cells = score.fdr, expected, score.extracted, score.recall, score.f1
            show(TABLE.row(name, LIKELY if wanted is None else wanted, *cells))
            records.append({"wanted": wanted, "expected": expected, **score_record(score)})
        record[name] = {"kept": records, "reliability": reliability(mined)}
    for line in _summary(kept_by_pair):
        show(line)
    files = [file for split in data.values() for file in split.files]
    fields = {"pairs": ",".join(names), "split": args.split, "sha256": fingerprint(*files)}
    models = {"encoder": encoder.name, "judge": load_judge().name}
    return sign(show, "fdr", {"pairs": record}, **fields, **models)


def measure(mined: MinedSplit, wanted: Sequence[float] = WANTED) -> list[Kept]:
    """Score a judged split's pairs per error rate, then by ``likely_score``."""
    assert isinstance(mined.pairs, JudgedPairs)
    scores, wrong = mined.pairs.score, 1 - mined.pairs.probability
    rows = []
    for rate in wanted:
        kept = count_kept(scores, wrong, "fdr", rate)
        threshold = float(np.nextafter(scores[kept - 1], -np.inf)) if kept else np.inf
        rows.append(Kept(rate, _mean(wrong[:kept]), score_at(mined.judgements, threshold)))
    likely = likely_score(mined)
    return [*rows, Kept(None, _mean(wrong[scores > likely.threshold]), likely)]


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def reliability(mined: MinedSplit) -> list[tuple[float, float, int]]:
    """Compare probabilities with the share of correct pairs, in 10 bins.

    A bin has the mean probability, share of correct pairs, and number of pairs. Bins are of equal
    width, ascending, none without pairs. ``mined`` is from ``mine_split`` with ``judged``.
    """
    assert isinstance(mined.pairs, JudgedPairs)
    probabilities, correct = mined.pairs.probability, mined.judgements.correct
    bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    return [
        (float(probabilities[mask].mean()), float(correct[mask].mean()), int(mask.sum()))
        for bin_number in range(BINS)
        if (mask := bins == bin_number).any()
    ]


def _summary(kept_by_pair: Sequence[Sequence[Kept]]) -> list[str]:
    lines = []
    for same_rate in zip(*kept_by_pair, strict=True):
        wanted = same_rate[0].wanted
        rows = [(k.score.fdr, k.expected, k.score.recall, k.score.f1) for k in same_rate]
        means, rates = np.mean(rows, axis=0).tolist(), [row[0] for row in rows]
        label = LIKELY if wanted is None else wanted
        lines.append(TABLE.row("mean", label, *means[:2], None, *means[2:]))
        if wanted is not None:
            error = np.mean([abs(rate - wanted) for rate in rates])
            lines.append(TABLE.row("error", label, float(error)))
        lines.append(TABLE.row("highest", label, max(rates)))
    return lines
