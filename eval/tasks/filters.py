"""F1 with filters and with the judge, thresholds chosen on one split and applied to another.

F1 of the margin, of the margin without what each filter rejects, and of the judge's score.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from encoder.words import WordEncoder
from eval.data.bucc import BuccSplit, load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bucc import judge
from eval.output import Record, Show, Table, signed
from eval.tasks.arguments import add_bucc_data, chosen_pairs
from eval.tasks.mined_splits import MinedSplit, mine_split, mined_texts, tune_and_test
from miner.choices import SCORES
from miner.filters import FILTERS, Suspects, check_filters, occurrences, usual_ratio, usual_script
from miner.judge.model import load_judge

Mask = NDArray[np.bool_]

WORDS, MARGIN = SCORES
# By name: the filters at work, and what scores.
VARIANTS: Mapping[str, tuple[Sequence[str], str]] = {
    MARGIN: ((), MARGIN),
    **{name: ((name,), MARGIN) for name in FILTERS},
    WORDS: ((), WORDS),
}


@dataclass(frozen=True, kw_only=True)
class Split:
    """A mined split of P pairs, and what each filter rejects, bool (P,)."""

    mined: MinedSplit
    rejected: Mapping[str, Mask]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_bucc_data(parser)
    add = parser.add_argument
    add("--tune", default="sample", metavar="SPLIT", help="choose thresholds (default: sample)")
    add("--test", default="training", metavar="SPLIT", help="apply them (default: training)")


def run(args: argparse.Namespace, show: Show) -> Record:
    """Measure every variant on all pairs."""
    names = chosen_pairs(args)
    for name in names:
        check_filters(tuple(FILTERS), _languages(name))
    parts = args.tune, args.test
    data = {name: [load_bucc(args.directory, name, part) for part in parts] for name in names}
    encoder = load_encoder(args.encoder)
    splits = {
        score: [
            [_mined(both[place], encoder, judged=score == WORDS) for both in data.values()]
            for place in range(len(parts))
        ]
        for score in (SCORES if isinstance(encoder, WordEncoder) else (MARGIN,))
    }
    table = Table("rule", [*names, "mean F1", "best F1", "rejected", "right"])
    show(table.header)
    rules: Record = {}
    for variant, (filters, scoring) in VARIANTS.items():
        if scoring not in splits:
            continue
        rules[variant] = measured = _measured(names, splits[scoring], filters)
        show(table.row(variant, *measured["f1"].values(), *list(measured.values())[2:]))
    files = (file for both in data.values() for split in both for file in split.files)
    fields = {"pairs": ",".join(names), "tune": args.tune, "test": args.test}
    models = {"encoder": encoder.name, "judge": load_judge().name}
    digest = fingerprint(*files)
    return signed(show, "filters", {"rules": rules}, **fields, sha256=digest, **models)


def _languages(pair: str) -> tuple[str, str]:
    source, _, target = pair.partition("-")
    return source, target


def _mined(data: BuccSplit, encoder: Encoder, *, judged: bool) -> Split:
    mined = mine_split(data, encoder=encoder, judged=judged)
    forward, backward = mined.mined.lists
    source, target = mined_texts(mined)
    suspects = Suspects(
        source=source,
        target=target,
        ratio=usual_ratio(source, target),
        lists=[
            occurrences(backward.ids, len(forward))[mined.pairs.source],
            occurrences(forward.ids, len(backward))[mined.pairs.target],
        ],
        languages=_languages(data.pair),
        scripts=(usual_script(source), usual_script(target)),
    )
    rejected = {name: rejects(suspects) for name, rejects in FILTERS.items()}
    return Split(mined=mined, rejected=rejected)


def _measured(
    names: Sequence[str], splits: Sequence[Sequence[Split]], filters: Sequence[str]
) -> Record:
    """Measure a variant: F1 of each pair with the other split's threshold, and with the best.

    Of the tested splits, ``rejected`` counts the mined pairs that filters reject, and ``right``
    those of them that gold says are right.
    """
    results = [
        tune_and_test(*(_kept(split, filters) for split in both))[1]
        for both in zip(*splits, strict=True)
    ]
    tested = splits[1]
    rejected = [(_rejected(test, filters), test.mined.judgements.correct) for test in tested]
    return {
        "f1": {name: one.score.f1 for name, one in zip(names, results, strict=True)},
        "oracle_f1": {name: one.oracle.f1 for name, one in zip(names, results, strict=True)},
        "mean_f1": float(np.mean([one.score.f1 for one in results])),
        "mean_oracle_f1": float(np.mean([one.oracle.f1 for one in results])),
        "rejected": sum(int(mask.sum()) for mask, _ in rejected),
        "right": sum(int((mask & right).sum()) for mask, right in rejected),
    }


def _rejected(split: Split, filters: Sequence[str]) -> Mask:
    rejected = np.zeros(len(split.mined.pairs), dtype=np.bool_)
    for name in filters:
        rejected |= split.rejected[name]
    return rejected


def _kept(split: Split, filters: Sequence[str]) -> MinedSplit:
    ranked = split.mined.ranked.take(np.flatnonzero(~_rejected(split, filters)).tolist())
    judgements = judge(ranked, split.mined.data.gold)
    return replace(split.mined, ranked=ranked, judgements=judgements)
