"""Measure the judge on pairs with one deliberate error.

    python benchmarks/spoiled.py NTREX de fr ru zh ja fi --encoder mini

In a file of parallel lines, every other line is clean and the rest is spoiled in one way: on the
English side another number, month, name or unit, a negation, an opposite, a third of the sentence
missing, a sentence more; or the source as it is, Spanish, or the next line. For each kind, means
over the languages in percent: the area under the ROC curve against clean pairs; the share of
spoiled pairs kept where 5% of the clean ones are lost; the share with a probability of at least
0.5, and the share of clean pairs below it; and, of the same source, how often the true target
scores above the spoiled one.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from encoder import Encoder, load_encoder
from encoder.words import word_encoders
from eval.data.languages import encoders_of_languages
from miner.arrays import Matrix
from miner.judge.features import (
    NeighbourhoodStats,
    RunStatistics,
    compute_features,
    mean_spacing,
    read_texts,
)
from miner.judge.model import bundled_judge
from miner.judge.prior import LIKELY
from miner.knn.exact import search_both

K = 4
JUDGE = bundled_judge(is_given=True)
GROUPS = [
    group.split()
    for group in (
        "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty",
        "first second third fourth fifth sixth seventh eighth ninth tenth",
        "thousand million billion trillion",
    )
]
DATES = [
    "January February March April June July August September October November December".split(),
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
]
UNITS = [
    group.split()
    for group in (
        "kilometres metres miles feet inches yards",
        "kilometers meters miles feet",
        "kilograms tonnes pounds tons grams",
        "seconds minutes hours days weeks months years decades",
        "minute hour day week month year decade",
        "dollars euros pounds yen roubles",
        "percent degrees",
        "litres gallons",
    )
]
OPPOSITES = """increase decrease|increased decreased|increases decreases|before after|north south
northern southern|east west|eastern western|more less|most least|higher lower|high low|old new
large small|larger smaller|older younger|good bad|better worse|best worst|win lose|won lost
first last|early late|earlier later|rise fall|rose fell|rising falling|up down|above below
inside outside|left right|opened closed|began ended|man woman|men women|boy girl|boys girls
father mother|son daughter|brother sister|husband wife|male female|he she|his her|day night
strong weak|rich poor|hot cold|long short|fast slow|buy sell|bought sold|accepted rejected
allowed banned|support oppose|supported opposed|success failure|possible impossible|likely unlikely
many few|always never|all none|positive negative|public private|adequate inadequate|true false
safe dangerous|easy difficult|love hate|profit loss|arrived left|give take""".replace("\n", "|")
PAIRS = [pair.split() for pair in OPPOSITES.split("|")]
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b(?!\.)")
NOT_NAMES = {"The", "May", *DATES[0], *DATES[1]}
CONTRACTED = re.compile(r"\b(do|did|does|is|are|was|were|could|would|should|has|had)n['\u2019]t\b")
AUXILIARY = re.compile(
    r"\b(is|are|was|were|will|can|could|would|should|must|has|have|had|does|do|did)\b"
)
Spoil = Callable[[str, random.Random, Sequence[str]], str]


def exchanged(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


def of_groups(groups: Sequence[Sequence[str]]) -> Spoil:
    def spoil(text: str, chance: random.Random, others: Sequence[str]) -> str:
        words = [
            (found, [word for word in group if word.lower() != found[0].lower()])
            for found in re.finditer(r"[A-Za-z]+", text)
            for group in groups
            if found[0] in group or found[0].lower() in group
        ]
        if not words:
            return text
        found, rest = chance.choice(words)
        new = chance.choice(rest)
        return exchanged(text, found, new.capitalize() if found[0][0].isupper() else new)

    return spoil


def digits(text: str, chance: random.Random, others: Sequence[str]) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text
    found = chance.choice(numbers)
    size = len(found[0])
    drawn = (chance.randrange(10 ** (size - 1) if size > 1 else 1, 10**size) for _ in range(9))
    new = next((one for one in drawn if one != int(found[0])), int(found[0]) + 1)
    return exchanged(text, found, str(new))


def name(text: str, chance: random.Random, others: Sequence[str]) -> str:
    own = [found for found in NAME.finditer(text) if found[0] not in NOT_NAMES]
    drawn = (NAME.findall(chance.choice(others)) for _ in range(30))
    names = [one for some in drawn for one in some if one not in NOT_NAMES and one not in text]
    return exchanged(text, chance.choice(own), names[0]) if own and names else text


def negation(text: str, chance: random.Random, others: Sequence[str]) -> str:
    if found := CONTRACTED.search(text):
        return exchanged(text, found, found[1])
    if found := re.search(r"\b(not|never) ", text):
        return exchanged(text, found, "")
    verbs = list(AUXILIARY.finditer(text))
    if not verbs:
        return text
    found = chance.choice(verbs)
    return exchanged(text, found, f"{found[0]} not")


def cut(text: str, chance: random.Random, others: Sequence[str]) -> str:
    words = text.split()
    third = len(words) // 3 if len(words) > 5 else 0
    return " ".join(words[third:] if chance.random() < 0.5 else words[: len(words) - third])


def added(text: str, chance: random.Random, others: Sequence[str]) -> str:
    other = chance.choice(others)
    return f"{text} {other}" if chance.random() < 0.5 else f"{other} {text}"


KINDS: dict[str, Spoil] = {
    "digits": digits,
    "number word": of_groups(GROUPS),
    "date": of_groups(DATES),
    "name": name,
    "negation": negation,
    "opposite": of_groups(PAIRS),
    "unit": of_groups(UNITS),
    "cut third": cut,
    "added sentence": added,
}
FACTS = tuple(KINDS)[:7]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ntrex", type=Path)
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--encoder", default="mini")
    args = parser.parse_args()
    lines = {name: read(args.ntrex, name) for name in ("en", "es", *args.languages)}
    encoder, figures = load_encoder(args.encoder), {}
    for language in args.languages:
        own = Own(encoder, language, lines)
        for kind, targets in own.spoiled().items():
            figures[language, kind] = own.measure(targets)
    kinds = list(dict.fromkeys(kind for _, kind in figures))
    print(f"{'':16}{'AUC':>7}{'kept':>7}{'likely':>7}{'lost':>7}{'above':>7}")
    means = {kind: mean([of for (_, own), of in figures.items() if own == kind]) for kind in kinds}
    means["facts"] = mean([means[kind] for kind in FACTS])
    means["others"] = mean([means[kind] for kind in kinds if kind not in FACTS])
    for kind, of_kind in means.items():
        print(f"{kind:16}", *(f"{100 * number:6.1f}" for number in of_kind), flush=True)
    return 0


def mean(rows: list[list[float]]) -> list[float]:
    return list(np.mean(rows, axis=0).tolist())


def read(folder: Path, language: str) -> list[str]:
    return (folder / f"{language}.txt").read_text("utf-8").rstrip("\n").split("\n")


class Own:
    """One language, paired with English."""

    def __init__(self, encoder: Encoder, language: str, lines: dict[str, list[str]]) -> None:
        self.source, self.english, self.spanish = (lines[one] for one in (language, "en", "es"))
        self.pair = language, "en"
        self.encoders = encoders_of_languages(encoder, self.pair)
        self.makers = word_encoders(encoder, self.pair)
        vectors = self.encoders[0].encode(self.source), self.encoders[1].encode(self.english)
        self.vectors: tuple[Matrix, Matrix] = vectors
        texts = read_texts(
            self.makers, self.source, self.english, languages=self.pair, is_given=True
        )
        spacing = mean_spacing(search_both(*vectors, k=K))
        self.usual = RunStatistics.of(texts, spacing, is_given=True)
        self.true = self.scores(np.arange(len(self.source)), [])

    def spoiled(self) -> dict[str, list[str]]:
        """Return the targets of all lines, changed if the kind applies."""
        found = {}
        for kind, spoil in KINDS.items():
            chance = random.Random(kind)
            found[kind] = [spoil(text, chance, self.english) for text in self.english]
        return {
            **found,
            "copy": self.source,
            "Spanish": self.spanish,
            "next line": [*self.english[1:], self.english[0]],
        }

    def measure(self, targets: list[str]) -> list[float]:
        rows = np.arange(len(targets))
        changed = np.array(targets) != np.array(self.english)
        wrong = rows[(rows % 2 == 0) & changed]
        parts = np.concatenate([rows[1::2], wrong]), rows[1::2], wrong
        scores = self.scores(parts[0], [targets[row] for row in wrong.tolist()])
        right = np.arange(len(scores)) < len(parts[1])
        likely = JUDGE.probabilities([scores]).predict(scores) >= LIKELY
        above = self.true[wrong] > scores[~right]
        kept = scores[~right] >= np.quantile(scores[right], 0.05)
        area = float(roc_auc_score(right, scores))
        shares = kept, likely[~right], ~likely[right], above
        return [area, *(float(np.mean(share)) for share in shares)]

    def scores(self, rows: np.ndarray, spoiled: list[str]) -> np.ndarray:
        """Return scores of lines, the last of which have the changed targets."""
        targets = [self.english[row] for row in rows.tolist()]
        vectors = [own[rows] for own in self.vectors]
        if spoiled:
            targets[-len(spoiled) :] = spoiled
            vectors[1][-len(spoiled) :] = self.encoders[1].encode(spoiled)
        lists = search_both(*vectors, k=K)
        cosines = np.einsum("pd,pd->p", *vectors)
        near = NeighbourhoodStats(cosines, lists[0].means(), lists[1].means())
        sources = [self.source[row] for row in rows.tolist()]
        texts = read_texts(self.makers, sources, targets, languages=self.pair, is_given=True)
        return JUDGE.scores(compute_features(texts, near, self.usual))


if __name__ == "__main__":
    sys.exit(main())
