"""Measure the true error rate of the pairs that 'adit mine' keeps, with and without --fdr.

--fdr is 1, 5, 10 and 20%. Translations that are missing in the gold pairs count as wrong.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from encoder import load_encoder
from eval.data.bucc import load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import FloatArray
from eval.metrics.bucc import BuccScore, score_at
from eval.output import Record, Show, Table, score_record, sign
from eval.tasks.arguments import add_bucc_data, chosen_pairs
from eval.tasks.mined_splits import MinedSplit, likely_score, mine_split
from miner.arrays import JudgedPairs
from miner.judge.model import load_judge
from miner.judge.prior import count_kept

WANTED = (0.01, 0.05, 0.1, 0.2)
LIKELY = "likely"  # the rule of a run without --fdr
BINS = 10
TABLE = Table("pair", ["wanted", "true FDR", "expected", "pairs", "recall", "F1"])


class Kept(NamedTuple):
    """The pairs that a run keeps for a wanted share of wrong ones, or None for those likely right.

    ``expected`` is the share of wrong ones by the probabilities, ``score`` what gold says.
    """

    wanted: float | None
    expected: float
    score: BuccScore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_bucc_data(parser)
    parser.add_argument("--split", default="training", help="split to mine (default: training)")


def run(args: argparse.Namespace, show: Show) -> Record:
    """Keep and judge the pairs of every language pair."""
    names = chosen_pairs(args)
    data = {name: load_bucc(args.directory, name, args.split) for name in names}
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    record: Record = {}
    found: list[list[Kept]] = []
    for name, split in data.items():
        mined = mine_split(split, encoder=encoder, judged=True)
        found.append(measure(mined))
        kept = []
        for wanted, expected, score in found[-1]:
            cells = score.fdr, expected, score.extracted, score.recall, score.f1
            show(TABLE.row(name, LIKELY if wanted is None else wanted, *cells))
            kept.append({"wanted": wanted, "expected": expected, **score_record(score)})
        record[name] = {"kept": kept, "reliability": reliability(mined)}
    for line in _summary(found):
        show(line)
    files = [file for split in data.values() for file in split.files]
    fields = {"pairs": ",".join(names), "split": args.split, "sha256": fingerprint(*files)}
    models = {"encoder": encoder.name, "judge": load_judge().name}
    return sign(show, "fdr", {"pairs": record}, **fields, **models)


def measure(mined: MinedSplit, wanted: Sequence[float] = WANTED) -> list[Kept]:
    """Keep pairs of a judged split for each wanted share, then the likely ones."""
    assert isinstance(mined.pairs, JudgedPairs)
    scores, wrong = mined.pairs.score, 1 - mined.pairs.probability
    found = []
    for rate in wanted:
        kept = count_kept(scores, wrong, "fdr", rate)
        threshold = float(np.nextafter(scores[kept - 1], -np.inf)) if kept else np.inf
        found.append(Kept(rate, _mean(wrong[:kept]), score_at(mined.judgements, threshold)))
    likely = likely_score(mined)
    return [*found, Kept(None, _mean(wrong[scores > likely.threshold]), likely)]


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def reliability(mined: MinedSplit) -> list[tuple[float, float, int]]:
    """Return for each tenth of probability: its mean, the share of right pairs, and the pairs."""
    assert isinstance(mined.pairs, JudgedPairs)
    likely, right = mined.pairs.probability, mined.judgements.correct
    tenth = np.minimum((likely * BINS).astype(np.int64), BINS - 1)
    return [
        (float(likely[own].mean()), float(right[own].mean()), int(own.sum()))
        for number in range(BINS)
        if (own := tenth == number).any()
    ]


def _summary(found: Sequence[Sequence[Kept]]) -> list[str]:
    """Lines of the table: for each wanted FDR the mean, the mean error and the highest."""
    lines = []
    for together in zip(*found, strict=True):
        wanted = together[0].wanted
        rows = [(one.score.fdr, one.expected, one.score.recall, one.score.f1) for one in together]
        means, rates = np.mean(rows, axis=0).tolist(), [row[0] for row in rows]
        label = LIKELY if wanted is None else wanted
        lines.append(TABLE.row("mean", label, *means[:2], None, *means[2:]))
        if wanted is not None:
            error = np.mean([abs(rate - wanted) for rate in rates])
            lines.append(TABLE.row("error", label, float(error)))
        lines.append(TABLE.row("highest", label, max(rates)))
    return lines
