"""What filters and a second score do to F1, with thresholds chosen on another split."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from encoder import load_encoder
from encoder.words import WordEncoder, word_encoders
from eval.data.bucc import BuccSplit, load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bucc import Candidates, judge, rank
from eval.output import Record, Table, signature
from eval.tasks.arguments import add_bucc_data, chosen_pairs
from eval.tasks.mined_splits import MinedSplit, SplitResult, mine_split, mined_texts, tune_and_test
from miner.filters import FILTERS, Suspects, check_filters, occurrences, usual_ratio, usual_script
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows
from miner.mining import mine
from miner.rescoring import FEATURES, Rescorer, features
from miner.word_match import align_texts, aligned_scores, usual_log_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder
    from miner.arrays import Pairs

    Mask = NDArray[np.bool_]
    Scores = NDArray[np.float64]
    Score = Callable[["Split"], Scores]

K = 4
MARGIN, MODEL, ALIGN = "margin", "model", "align"
# By name: the filters at work, and what scores.
VARIANTS: Mapping[str, tuple[Sequence[str], str]] = {
    "margin": ((), MARGIN),
    **{name: ((name,), MARGIN) for name in FILTERS},
    "model": ((), MODEL),
    "both": (("length",), MODEL),
    "align": ((), ALIGN),
}


@dataclass(frozen=True, kw_only=True)
class Split:
    """A mined split of P pairs, what each filter rejects, bool (P,), and what the model sees.

    ``aligned``, float64 (P,), are the scores with words, where the encoder has words.
    """

    mined: MinedSplit
    rejected: Mapping[str, Mask]
    features: Scores
    aligned: Scores | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "F1 with thresholds chosen on one split and applied to another: of the margin, of it "
        "without what each filter rejects, and of a logistic model trained on the first."
    )
    add_bucc_data(parser)
    add = parser.add_argument
    add("--tune", default="sample", metavar="SPLIT", help="choose thresholds (default: sample)")
    add("--test", default="training", metavar="SPLIT", help="apply them (default: training)")


def run(args: argparse.Namespace, show: Callable[[str], None]) -> Record:
    """Measure every variant on all pairs; all splits of ``args.tune`` together train the model."""
    names = chosen_pairs(args)
    for name in names:
        check_filters(tuple(FILTERS), _languages(name))
    parts = args.tune, args.test
    data = {name: [load_bucc(args.directory, name, part) for part in parts] for name in names}
    encoder = load_encoder(args.encoder)
    splits = [[_mined(part, encoder) for part in both] for both in data.values()]
    table = Table("rule", [*names, "mean F1", "best F1", "rejected", "right"])
    show(table.header)
    rules: Record = {}
    for variant, (filters, scoring) in VARIANTS.items():
        if scoring == ALIGN and not isinstance(encoder, WordEncoder):
            continue
        rules[variant] = measured = _measured(names, splits, filters, scoring)
        show(table.row(variant, *measured["f1"].values(), *list(measured.values())[2:]))
    files = (file for both in data.values() for split in both for file in split.files.all)
    signed = signature(
        "filters",
        pairs=",".join(names),
        tune=args.tune,
        test=args.test,
        sha256=fingerprint(*files),
        encoder=encoder.name,
        k=K,
        margin="ratio",
        features=",".join(FEATURES),
    )
    show(signed)
    return {"task": "filters", "rules": rules, "signature": signed}


def _languages(pair: str) -> tuple[str, str]:
    source, _, target = pair.partition("-")
    return source, target


def _mined(data: BuccSplit, encoder: Encoder) -> Split:
    lists: list[NDArray[np.int64]] = []

    def mine_and_count(source: NDArray[np.float32], target: NDArray[np.float32]) -> Pairs:
        pairs = mine(source, target, k=K)
        forward, backward = search_unit_rows(unit_rows(source), unit_rows(target), k=K)
        lists.append(occurrences(backward.ids, len(source))[pairs.source])
        lists.append(occurrences(forward.ids, len(target))[pairs.target])
        return pairs

    mined = mine_split(data, encoder=encoder, mine=mine_and_count)
    source, target = mined_texts(mined)
    suspects = Suspects(
        source=source,
        target=target,
        ratio=usual_ratio(source, target),
        lists=lists,
        languages=_languages(data.pair),
        scripts=(usual_script(source), usual_script(target)),
    )
    aligned = None
    if isinstance(encoder, WordEncoder):
        found = align_texts(word_encoders(encoder, _languages(data.pair)), source, target)
        aligned = aligned_scores(mined.pairs.score, found, usual=usual_log_ratio(found))
    return Split(
        mined=mined,
        rejected={name: rejects(suspects) for name, rejects in FILTERS.items()},
        features=features(mined.pairs, suspects),
        aligned=aligned,
    )


def _measured(
    names: Sequence[str],
    splits: Sequence[Sequence[Split]],
    filters: Sequence[str],
    scoring: str,
) -> Record:
    """Measure a variant: F1 of each pair with the other split's threshold, and with the best.

    Of the tested splits, ``rejected`` counts the mined pairs that filters reject, and ``right``
    those of them that gold says are right.
    """
    score = _scoring([tune for tune, _ in splits], filters, scoring)
    results = [_result(tune, test, filters, score) for tune, test in splits]
    rejected = [(_rejected(test, filters), test.mined.judgements.correct) for _, test in splits]
    return {
        "f1": {name: one.score.f1 for name, one in zip(names, results, strict=True)},
        "oracle_f1": {name: one.oracle.f1 for name, one in zip(names, results, strict=True)},
        "mean_f1": float(np.mean([one.score.f1 for one in results])),
        "mean_oracle_f1": float(np.mean([one.oracle.f1 for one in results])),
        "rejected": sum(int(mask.sum()) for mask, _ in rejected),
        "right": sum(int((mask & right).sum()) for mask, right in rejected),
    }


def _scoring(tuned: Sequence[Split], filters: Sequence[str], scoring: str) -> Score:
    """Return the score of a split's pairs; a model is trained on the splits tuned on."""
    if scoring == MODEL:
        model = _trained(tuned, filters)
        return lambda split: model.scores(split.features)
    if scoring == ALIGN:
        return lambda split: cast("Scores", split.aligned)
    return lambda split: split.mined.ranked.scores


def _result(tune: Split, test: Split, filters: Sequence[str], score: Score) -> SplitResult:
    """Score the tested split with the threshold of the other one."""
    return tune_and_test(*(_judged(split, filters, score) for split in (tune, test)))[1]


def _rejected(split: Split, filters: Sequence[str]) -> Mask:
    rejected = np.zeros(len(split.features), dtype=np.bool_)
    for name in filters:
        rejected |= split.rejected[name]
    return rejected


def _trained(splits: Sequence[Split], filters: Sequence[str]) -> Rescorer:
    kept = [~_rejected(split, filters) for split in splits]
    return Rescorer.trained(
        np.concatenate([one.features[some] for one, some in zip(splits, kept, strict=True)]),
        np.concatenate(
            [one.mined.judgements.correct[some] for one, some in zip(splits, kept, strict=True)]
        ),
    )


def _judged(split: Split, filters: Sequence[str], score: Score) -> MinedSplit:
    mined, scores = split.mined, score(split)
    kept = np.flatnonzero(~_rejected(split, filters))
    ranked = rank(
        Candidates(
            scores=scores[kept],
            sources=[mined.ranked.sources[place] for place in kept.tolist()],
            targets=[mined.ranked.targets[place] for place in kept.tolist()],
        )
    )
    return replace(mined, ranked=ranked, judgements=judge(ranked, mined.data.gold))
