"""Measure the shares of noise and clean pairs that filters reject.

For each filter of 'adit mine --filters' but hub, the share of noise and of clean pairs is shown.
The judge (adit rate --score texts) rejects below a probability of 0.5; half its pairs are noise.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from encoder import Encoder, load_encoder
from encoder.words import word_encoders
from eval.data.languages import name_of
from eval.data.textfiles import fingerprint
from eval.output import Record, Show, Table, sign
from eval.tasks.aligned import load_aligned, load_texts
from eval.tasks.arguments import add_directory, add_languages
from miner.filters import FILTERS, Suspects, check_filter_languages
from miner.judge.features import RunStatistics, compute_features, read_texts
from miner.judge.model import bundled_judge
from miner.judge.prior import LIKELY

SITE_LINES = (
    "Home | About us | Products | Contact | Sitemap",
    "Copyright © 2019. All rights reserved.",
    "We use cookies to improve your experience. Read our privacy policy.",
    "Click here to subscribe to our newsletter.",
    "Share on Facebook | Share on Twitter | Print this page",
    "Log in or register to post comments",
    "Page 1 of 12 « Previous Next »",
    "Posted by admin at 10:32 | 4 comments",
)
LINK = " https://www.example.com/news/article?id=12"
MEASURED = tuple(name for name in FILTERS if name != "hub")  # which needs neighbours
CLEAN = "clean"  # the kind of unchanged pairs
JUDGE, LOST = "judge", "judge: lost"  # rows of noise and of clean pairs that the judge rejects
FOREIGN = ("es", "ru")  # languages whose targets are noise, unless the pairs are in them

Sides = tuple[list[str], list[str]]
Foreign = Mapping[str, Sequence[str]]  # lines by language
Shares = dict[str, dict[str, float]]  # rejected shares, by filter and by kind of pairs


def make_noise(source: Sequence[str], target: Sequence[str], foreign: Foreign) -> dict[str, Sides]:
    """Make wrong pairs of each kind from parallel lines.

    Sources and targets are by kind, such as ``number`` or ``in es``, faults of parallel text that
    Bicleaner and OpusFilter find (Sánchez-Cartagena et al. 2018; Aulamo et al. 2020). ``foreign``
    has the same lines in other languages. A line that a kind does not change gives no pair.
    """
    changes: dict[str, Callable[[int], str]] = {
        "untranslated": lambda row: source[row],
        "misaligned": lambda row: target[(row + 1) % len(target)],
        "truncated": lambda row: _half(target[row]),
        "boilerplate": lambda row: SITE_LINES[row % len(SITE_LINES)],
        "number": lambda row: _other_number(target[row]),
        "link": lambda row: target[row] + LINK,
        **{f"in {language}": lines.__getitem__ for language, lines in foreign.items()},
    }
    noise: dict[str, Sides] = {}
    for kind, change in changes.items():
        changed = [(source[row], change(row)) for row in range(len(source))]
        kept = [pair for pair, line in zip(changed, target, strict=True) if pair[1] != line]
        noise[kind] = [first for first, _ in kept], [second for _, second in kept]
    return noise


def _half(text: str) -> str:
    words = text.split()
    return " ".join(words[: len(words) // 2]) if len(words) > 3 else text[: len(text) // 2]


def _other_number(text: str) -> str:
    return re.sub(r"\d", lambda digit: str(int(digit[0]) % 9 + 1), text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    languages = "among them English, Spanish and Russian"
    holds = f"one xx.txt per language, whose lines are translations of each other, {languages}"
    add_directory(parser, holds=holds)
    add_languages(parser, named="languages to pair with English, such as de, deu or deu_Latn")


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run as in ``TaskModule``, with shares in ``removed``.

    They are by language, or ``mean`` of several, then by filter and by kind.
    """
    texts, english = load_texts(args)
    languages = [name for name in texts.languages if name != english]
    data = load_aligned(args.directory, [english, *languages, *FOREIGN])
    for language in languages:
        check_filter_languages(MEASURED, (language, english))
    encoder = load_encoder(args.encoder)
    names = {code: name_of(code, data.texts) for code in FOREIGN}
    record: Record = {}
    for language in languages:
        foreign = {code: data.texts[name] for code, name in names.items() if name != language}
        clean = data.texts[language], data.texts[english]
        record[language] = _measure(clean, foreign, encoder, (language, english))
        _show(language, record[language], show)
    if len(languages) > 1:
        record["mean"] = _mean(list(record.values()))
        _show("mean", record["mean"], show)
    fields = {"lang": ",".join(languages), "judge": bundled_judge(is_given=True).name}
    digest = fingerprint(*data.files.values())
    return sign(show, "noise", {"removed": record}, **fields, sha256=digest)


def _measure(clean: Sides, foreign: Foreign, encoder: Encoder, pair: tuple[str, str]) -> Shares:
    # Statistics come from the clean pairs. The judge scores as many clean pairs with each kind.
    typical = Suspects.of(*clean, languages=pair)
    shares: Shares = {name: {} for name in (*MEASURED, "any", JUDGE, LOST)}
    read = partial(read_texts, word_encoders(encoder, pair), languages=pair, is_given=True)
    usual = RunStatistics.of(read(*clean), is_given=True)
    judge = bundled_judge(is_given=True)
    clean_scores = np.empty(0)
    for kind, (source, target) in {CLEAN: clean, **make_noise(*clean, foreign)}.items():
        if not source:
            continue
        suspects = replace(typical, source=source, target=target)
        masks = {name: FILTERS[name](suspects) for name in MEASURED}
        for name, mask in {**masks, "any": np.any(list(masks.values()), axis=0)}.items():
            shares[name][kind] = float(mask.mean())
        scores = judge.scores(compute_features(read(source, target), None, usual))
        clean_scores = scores if kind == CLEAN else clean_scores
        probabilities = judge.probabilities([scores, clean_scores])
        for name, kind_scores in ((JUDGE, scores), (LOST, clean_scores)):
            shares[name][kind] = float((probabilities.predict(kind_scores) < LIKELY).mean())
    return shares


def _mean(measured: Sequence[Shares]) -> Shares:
    means: Shares = {}
    for name in measured[0]:
        rows = [shares[name] for shares in measured]
        kinds = dict.fromkeys(kind for row in rows for kind in row)
        values = {kind: [row[kind] for row in rows if kind in row] for kind in kinds}
        means[name] = {kind: sum(shares) / len(shares) for kind, shares in values.items()}
    return means


def _show(title: str, shares: Shares, show: Show) -> None:
    table = Table(title, list(shares[JUDGE]))
    show(table.header)
    for name, of_kinds in shares.items():
        show(table.row(name, *of_kinds.values()))
