"""Measure the shares of parallel sentences and of synthetic noise that filters and judge remove.

For each filter of 'adit mine --filters', the share of noise and of clean pairs is shown. For the
judge, half of the pairs are noise, and it uses no neighbours. Shown are the shares of noise and of
clean pairs with a probability below 0.5.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from encoder import Encoder, load_encoder
from encoder.words import word_encoders
from eval.data.textfiles import fingerprint
from eval.output import Record, Show, Table, sign
from eval.tasks.aligned import english_of, load_aligned
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from miner.filters import FILTERS, Suspects, check_filters, main_script, median_log_ratio
from miner.judge.features import Usual, features, read_texts
from miner.judge.model import load_judge
from miner.judge.prior import LIKELY, Probabilities

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
MEASURED = tuple(name for name in FILTERS if name != "hub")  # which takes neighbours
CLEAN, JUDGE, LOST = "clean", "judge", "judge: lost"
FOREIGN = ("es", "ru")  # a target in these is noise, but for pairs that have the language

Sides = tuple[list[str], list[str]]
Foreign = Mapping[str, Sequence[str]]  # lines by language
Shares = dict[str, dict[str, float]]  # by what removes them, and by kind of pairs


def noises(source: Sequence[str], target: Sequence[str], foreign: Foreign) -> dict[str, Sides]:
    """Return by kind of noise the sources and targets that it makes of parallel lines.

    The faults are those of parallel text from the web that Bicleaner's and OpusFilter's rules find
    (Sánchez-Cartagena et al. 2018; Aulamo et al. 2020).

    ``foreign`` has the same lines in other languages, by name. Lines that a kind leaves as they
    were, such as those without a number to falsify, are not among its pairs.
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
    made: dict[str, Sides] = {}
    for kind, change in changes.items():
        changed = [(source[row], change(row)) for row in range(len(source))]
        kept = [both for both, before in zip(changed, target, strict=True) if both[1] != before]
        made[kind] = [one for one, _ in kept], [other for _, other in kept]
    return made


def _half(text: str) -> str:
    """Return the first half: of its words, or of its characters where it has no spaces."""
    words = text.split()
    return " ".join(words[: len(words) // 2]) if len(words) > 3 else text[: len(text) // 2]


def _other_number(text: str) -> str:
    """Return a text with every digit of its numbers one higher; 9 becomes 1."""
    return re.sub(r"\d", lambda digit: str(int(digit[0]) % 9 + 1), text)


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
        clean = data.texts[language], data.texts[english]
        record[language] = _removed(clean, foreign, encoder, (language, english))
        _show(language, record[language], show)
    if len(languages) > 1:
        record["mean"] = _mean(list(record.values()))
        _show("mean", record["mean"], show)
    fields = {"lang": ",".join(languages), "judge": load_judge().name}
    digest = fingerprint(*data.files.values())
    return sign(show, "noise", {"removed": record}, **fields, sha256=digest)


def _removed(clean: Sides, foreign: Foreign, encoder: Encoder, pair: tuple[str, str]) -> Shares:
    """Return for each filter, any of them, and the judge what it removes by kind of pairs.

    What is usual is that of the clean pairs. ``clean`` is a kind, too: what is removed of it is
    lost. The judge sees as many clean pairs beside each kind, and loses some of these.
    """
    ratio, scripts = median_log_ratio(*clean), (main_script(clean[0]), main_script(clean[1]))
    shares: Shares = {name: {} for name in (*MEASURED, "any", JUDGE, LOST)}
    makers = word_encoders(encoder, pair)
    usual = Usual.of(read_texts(makers, *clean, languages=pair))
    judged = np.empty(0)
    for kind, (source, target) in {CLEAN: clean, **noises(*clean, foreign)}.items():
        if not source:
            continue
        suspects = Suspects(
            source=source, target=target, ratio=ratio, languages=pair, scripts=scripts
        )
        masks = {name: FILTERS[name](suspects) for name in MEASURED}
        for name, mask in {**masks, "any": np.any(list(masks.values()), axis=0)}.items():
            shares[name][kind] = float(mask.mean())
        seen = features(read_texts(makers, source, target, languages=pair), None, usual)
        scores = load_judge().scores(seen)
        judged = scores if kind == CLEAN else judged
        found = Probabilities.estimated(load_judge().usual, [scores, judged])
        for name, own in ((JUDGE, scores), (LOST, judged)):
            shares[name][kind] = float((found.of_scores(own) < LIKELY).mean())
    return shares


def _mean(measured: Sequence[Shares]) -> Shares:
    """Return the mean over languages; a kind that some have not is the mean of the others."""
    means: Shares = {}
    for name in measured[0]:
        kinds = dict.fromkeys(kind for one in measured for kind in one[name])
        found = {kind: [one[name][kind] for one in measured if kind in one[name]] for kind in kinds}
        means[name] = {kind: sum(each) / len(each) for kind, each in found.items()}
    return means


def _show(title: str, shares: Shares, show: Show) -> None:
    table = Table(title, list(shares[JUDGE]))
    show(table.header)
    for name, of_kinds in shares.items():
        show(table.row(name, *of_kinds.values()))
