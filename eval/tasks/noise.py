"""Shares of parallel sentences, and of noise made of them, that filters and the judge remove.

Shown is which share each filter of 'adit mine --filters' removes of both; and what the judge finds
likelier wrong than right where half of the pairs are that noise, without neighbours, beside what it
then loses of the clean half.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from encoder import Encoder, load_encoder
from encoder.words import word_encoders
from eval.data.aligned import english_of, load_aligned
from eval.data.noise import Sides, noises
from eval.data.textfiles import fingerprint
from eval.output import Record, Show, Table, signed
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from miner.filters import FILTERS, Suspects, check_filters, usual_ratio, usual_script
from miner.judge.features import Usual, features, read_texts
from miner.judge.model import load_judge
from miner.judge.prior import LIKELY, Probabilities

MEASURED = tuple(name for name in FILTERS if name != "hub")  # which takes neighbours
CLEAN, JUDGE, LOST = "clean", "judge", "judge: lost"
FOREIGN = ("es", "ru")  # a target in these is noise, but for pairs that have the language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="xx.txt for each language, with Spanish, Russian and English")
    add_languages(parser, named="languages to pair with English")


def run(args: argparse.Namespace, show: Show) -> Record:
    """Measure every filter on every language."""
    known = load_aligned(args.directory).languages
    english = english_of(known, args.directory)
    languages = [name for name in chosen_languages(args, known) if name != english]
    data = load_aligned(args.directory, [english, *languages, *FOREIGN])
    for language in languages:
        check_filters(MEASURED, (language, english))
    encoder = load_encoder(args.encoder)
    record: Record = {}
    for language in languages:
        foreign = {name: data.texts[name] for name in FOREIGN if name != language}
        shares = removed(
            (data.texts[language], data.texts[english]),
            foreign,
            encoder=encoder,
            languages=(language, english),
        )
        record[language] = shares
        for line in _table(language, shares):
            show(line)
    if len(languages) > 1:
        record["mean"] = _mean([record[language] for language in languages])
        for line in _table("mean", record["mean"]):
            show(line)
    files: list[Path] = list(data.files.values())
    fields = {"lang": ",".join(languages), "judge": load_judge().name}
    return signed(show, "noise", {"removed": record}, **fields, sha256=fingerprint(*files))


def removed(
    clean: Sides,
    foreign: Mapping[str, Sequence[str]],
    *,
    encoder: Encoder,
    languages: tuple[str, str],
) -> dict[str, dict[str, float]]:
    """Return for each filter, any of them, and the judge what it removes by kind of pairs.

    What is usual is that of the clean pairs. ``clean`` is a kind, too: what is removed of it is
    lost. The judge sees as many clean pairs beside each kind, and loses some of these.
    """
    ratio, scripts = usual_ratio(*clean), (usual_script(clean[0]), usual_script(clean[1]))
    shares: dict[str, dict[str, float]] = {name: {} for name in (*MEASURED, "any", JUDGE, LOST)}
    makers = word_encoders(encoder, languages)
    usual = Usual.of(read_texts(makers, *clean))
    judged = np.empty(0)
    for kind, (source, target) in {CLEAN: clean, **noises(*clean, foreign)}.items():
        if not source:
            continue
        suspects = Suspects(
            source=source, target=target, ratio=ratio, languages=languages, scripts=scripts
        )
        masks = {name: FILTERS[name](suspects) for name in MEASURED}
        for name, mask in masks.items():
            shares[name][kind] = float(mask.mean())
        shares["any"][kind] = float(np.any(list(masks.values()), axis=0).mean())
        seen = features(read_texts(makers, source, target), None, usual)
        scores = load_judge().scores(seen)
        judged = scores if kind == CLEAN else judged
        found = Probabilities.estimated(load_judge().usual, [scores, judged])
        for name, own in ((JUDGE, scores), (LOST, judged)):
            shares[name][kind] = float((found.of_scores(own) < LIKELY).mean())
    return shares


def _mean(measured: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the mean over languages; a kind that some have not is the mean of the others."""
    means: dict[str, dict[str, float]] = {}
    for name in measured[0]:
        kinds = {kind: None for one in measured for kind in one[name]}
        means[name] = {}
        for kind in kinds:
            found = [one[name][kind] for one in measured if kind in one[name]]
            means[name][kind] = sum(found) / len(found)
    return means


def _table(title: str, shares: Mapping[str, Mapping[str, float]]) -> list[str]:
    kinds = list(next(iter(shares.values())))
    table = Table(title, kinds)
    rows = [table.row(name, *of_kinds.values()) for name, of_kinds in shares.items()]
    return [table.header, *rows]
