"""eval-encoder fdr without its command line: thresholds without gold, held against gold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eval.data.datasets import BuccSplit, bucc_pairs, load_bucc
from eval.data.textfiles import fingerprint
from eval.output import score_record, signature
from eval.table import Table
from eval.tasks.fdr_thresholds import Choice, best, choose, decoy_scores, planted_scores
from eval.tasks.mined_splits import MinedSplit, mine_split
from miner.commandline import product_version
from miner.fdr import TAIL
from miner.knn.core.rescore import unit_rows
from miner.mining import mine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder

    Matrix = NDArray[np.float32]

WANTED = (0.01, 0.05, 0.1, 0.2)
K = 4
TABLE = Table(
    "pair",
    [
        *("wanted", "95% interval", "true FDR", "pairs", "recall", "by planted", "FDR by planted"),
        *("F1", "best F1", "its recall"),
    ],
)


def run_fdr(
    directory: Path,
    *,
    pairs: Sequence[str] | None,
    split: str,
    decoys: str,
    encoder_spec: str,
    tell: Callable[[str], None],
) -> dict[str, object]:
    """Run the task; the report as a record for JSON.

    Args:
        directory: BUCC layout.
        pairs: language pairs; None for all.
        split: the split that is mined.
        decoys: the split whose sentences are decoys and whose gold pairs are planted; the two
            splits must share no sentence.
        encoder_spec: for ``encoder.load_encoder``.
        tell: called with each line of the table as it is ready.

    Raises:
        ValueError: data is missing or malformed.
    """
    from encoder import load_encoder

    names = bucc_pairs(directory) if pairs is None else list(dict.fromkeys(pairs))
    data = {name: [load_bucc(directory, name, part) for part in (split, decoys)] for name in names}
    encoder = load_encoder(encoder_spec)
    tell(TABLE.header)
    chosen: dict[str, list[Choice]] = {}
    record: dict[str, object] = {}
    for name, (real, other) in data.items():
        mined, choices = _measure(real, other, encoder)
        chosen[name] = choices
        tuned = best(mined)
        for choice in choices:
            score = choice.score
            tell(
                TABLE.row(
                    *(name, choice.wanted, choice.interval, _fdr(choice), score.extracted),
                    *(score.recall, choice.recall, choice.planted_fdr),
                    *(score.f1, tuned.f1, tuned.recall),
                )
            )
        record[name] = {
            "thresholds": [_choice_record(choice) for choice in choices],
            "best": score_record(tuned),
        }
    for wanted, together in zip(WANTED, zip(*chosen.values(), strict=True), strict=True):
        rates = [_fdr(choice) for choice in together]
        recalls = [choice.score.recall for choice in together]
        tell(TABLE.row("mean", wanted, None, float(np.mean(rates)), None, float(np.mean(recalls))))
        tell(TABLE.row("highest", wanted, None, max(rates)))
    files = [file for real, other in data.values() for file in (*_files(real), *_files(other))]
    signed = signature(
        "fdr",
        {
            "pairs": ",".join(names),
            "split": split,
            "decoys": decoys,
            "sha256": fingerprint(*files),
            "encoder": encoder.name,
            "k": K,
            "margin": "ratio",
            "tail": TAIL,
            "v": product_version(),
        },
    )
    tell(signed)
    return {"task": "fdr", "pairs": record, "signature": signed}


def _measure(
    real: BuccSplit, other: BuccSplit, encoder: Encoder
) -> tuple[MinedSplit, list[Choice]]:
    mined = mine_split(real, encoder=encoder, mine=lambda x, y: mine(x, y, k=K))
    own = _vectors(encoder, real.source.texts), _vectors(encoder, real.target.texts)
    theirs = _vectors(encoder, other.source.texts), _vectors(encoder, other.target.texts)
    decoys = decoy_scores(own, theirs, k=K)
    source = dict(zip(other.source.ids, other.source.texts, strict=True))
    target = dict(zip(other.target.ids, other.target.texts, strict=True))
    known = sorted(other.gold)
    planted = (
        _vectors(encoder, [source[one] for one, _ in known]),
        _vectors(encoder, [target[one] for _, one in known]),
    )
    found = planted_scores(own, planted, k=K)
    return mined, [choose(mined, decoys, found, fdr=wanted) for wanted in WANTED]


def _vectors(encoder: Encoder, texts: Sequence[str]) -> Matrix:
    return unit_rows(encoder.encode(texts))


def _files(data: BuccSplit) -> tuple[Path, Path, Path]:
    return data.files.source, data.files.target, data.files.gold


def _fdr(choice: Choice) -> float:
    return 1 - choice.score.precision if choice.score.extracted else 0.0


def _choice_record(choice: Choice) -> dict[str, object]:
    return {
        "wanted": choice.wanted,
        "interval": choice.interval,
        "fdr": _fdr(choice),
        "planted_recall": choice.recall,
        "planted_fdr": choice.planted_fdr,
        **score_record(choice.score),
    }
