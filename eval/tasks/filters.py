"""Measure the F1 of mined pairs with filters and with the judge.

Thresholds come from another split. Rows are the margin, the margin after each filter, and the
judge's score ('words', if the encoder has word vectors and is not joined). Filters reject
'rejected' pairs, of them 'correct' correct ones.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from encoder import Encoder, load_encoder
from encoder.words import WordEncoder
from eval.data.bucc import BuccSplit, languages_of, load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bucc import judge
from eval.output import Record, Show, Table, sign
from eval.tasks.arguments import add_bucc_data, chosen_pairs
from eval.tasks.mined_splits import MinedSplit, mine_split, mined_texts, tune_and_test
from miner.arrays import Mask
from miner.choices import SCORES
from miner.filters import FILTERS, Suspects, check_filter_languages, occurrences
from miner.judge.model import load_judge

WORDS, MARGIN = SCORES

Split = tuple[MinedSplit, Mapping[str, Mask]]  # and masks of pairs that filters reject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_bucc_data(parser)
    add = parser.add_argument
    text = "split (SPLIT in the files' names) that chooses the thresholds (default: sample)"
    add("--tune", default="sample", metavar="SPLIT", help=text)
    text = "split whose F1 by these thresholds is measured (default: training)"
    add("--test", default="training", metavar="SPLIT", help=text)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run as in ``TaskModule``, with figures by rule in ``rules``.

    The judge is skipped if the encoder is joined or has no word vectors.
    """
    names = chosen_pairs(args)
    for name in names:
        check_filter_languages(tuple(FILTERS), languages_of(name))
    parts = args.tune, args.test
    data = {name: [load_bucc(args.directory, name, part) for part in parts] for name in names}
    encoder = load_encoder(args.encoder)
    splits = {
        score: [
            [_mine(pair[index], encoder, judged=score == WORDS) for pair in data.values()]
            for index in range(len(parts))
        ]
        for score in (SCORES if isinstance(encoder, WordEncoder) else (MARGIN,))
    }
    table = Table("rule", [*names, "mean F1", "best F1", "rejected", "correct"])
    show(table.header)
    rules: Record = {}
    for rule in (MARGIN, *FILTERS, WORDS):
        scoring = WORDS if rule == WORDS else MARGIN
        if scoring in splits:
            rules[rule] = measured = _measure(names, splits[scoring], rule)
            show(table.row(rule, *measured["f1"].values(), *list(measured.values())[2:]))
    files = (file for splits in data.values() for split in splits for file in split.files)
    fields = {"pairs": ",".join(names), "tune": args.tune, "test": args.test}
    models = {"encoder": encoder.name, "judge": load_judge().name}
    digest = fingerprint(*files)
    return sign(show, "filters", {"rules": rules}, **fields, sha256=digest, **models)


def _mine(data: BuccSplit, encoder: Encoder, *, judged: bool) -> Split:
    mined = mine_split(data, encoder=encoder, judged=judged)
    forward, backward = mined.mined.lists
    lists = [
        occurrences(backward.ids, len(forward))[mined.pairs.source],
        occurrences(forward.ids, len(backward))[mined.pairs.target],
    ]
    suspects = Suspects.of(*mined_texts(mined), lists=lists, languages=languages_of(data.pair))
    return mined, {name: rejects(suspects) for name, rejects in FILTERS.items()}


def _measure(names: Sequence[str], splits: Sequence[Sequence[Split]], rule: str) -> Record:
    tune, test = ([_kept(split, rule) for split in part] for part in splits)
    results = [tune_and_test(*pair)[1] for pair in zip(tune, test, strict=True)]
    judged = [(mined.judgements.correct, masks) for mined, masks in splits[1]]
    rejected = [(masks[rule], correct) for correct, masks in judged if rule in masks]
    return {
        "f1": {name: result.score.f1 for name, result in zip(names, results, strict=True)},
        "oracle_f1": {name: result.oracle.f1 for name, result in zip(names, results, strict=True)},
        "mean_f1": float(np.mean([result.score.f1 for result in results])),
        "mean_oracle_f1": float(np.mean([result.oracle.f1 for result in results])),
        "rejected": sum(int(mask.sum()) for mask, _ in rejected),
        "right": sum(int((mask & correct).sum()) for mask, correct in rejected),
    }


def _kept(split: Split, rule: str) -> MinedSplit:
    mined, rejected = split
    if rule not in rejected:
        return mined
    ranked = mined.ranked.take(np.flatnonzero(~rejected[rule]).tolist())
    return replace(mined, ranked=ranked, judgements=judge(ranked, mined.data.gold))
