"""Make miner/assets/judge-given.safetensors, the judge of pairs that were not mined.

    python benchmarks/judge_given.py BUCC TRAIN TRAIN_MORE --exclude multi30k,3am,quran,ted

BUCC has comparable corpora, of which the gold pairs are used. TRAIN and TRAIN_MORE are folders of
parallel text with English, XX-en.tsv.xz. In each corpus of pairs, over a third are changed in
one way: on the English side another number, word of a group of contradicting words, or name, or a
negation; a part of one side missing, or another text added; the next line's target, or the source
itself. Takes about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
from judge_facts import LANGUAGES, choose
from judge_training import Examples, fit_judge
from synthetic_corpora import (
    GROUPS,
    Spoil,
    addition,
    comparable_corpora,
    exchange,
    name,
    negation,
    number,
)

from encoder import Encoder, load_encoder
from encoder.training.reading import find_parallel_text
from encoder.words import word_encoders
from eval.data.bucc import bucc_pairs, bucc_splits
from eval.data.languages import encoders_of_languages
from miner.judge.features import (
    SEEN,
    STATISTICS_PAIRS,
    NeighbourhoodStats,
    RunStatistics,
    Texts,
    compute_features,
    mean_spacing,
    read_texts,
)
from miner.judge.model import GIVEN
from miner.knn.exact import search_both
from miner.margin import margin_scores

K = 4
SINGLE, JOINED = 900, 600  # lines per corpus: one pair, and two pairs joined
CHARACTERS = 45, 300  # of a line's English side
ROUNDS = {True: 8, False: 2}  # how often a comparable or other corpus is changed
RATE = 0.08  # learning rate of a tree
COMPARABLE_WEIGHT = 5.0
CLEAN_WEIGHTS = 5.5, 11, 11, 33  # of clean lines, compared with KINDS; drawn for each round
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
OPPOSITES = [group for group in GROUPS if len(group) == 2]
OTHERS = [group for group in GROUPS if len(group) > 2]  # such as weekdays and units


def one_number(text: str, random: Random, others: Sequence[str]) -> str:
    """Shift all digits of a random number by 1 to 8, modulo 10."""
    numbers = list(NUMBER.finditer(text))
    if not numbers:
        return text
    found = random.choice(numbers)
    return text[: found.start()] + number(found[0], random, others) + text[found.end() :]


def any_negation(text: str, random: Random, others: Sequence[str]) -> str:
    """Remove the first English negation, or else negate a random auxiliary."""
    changed = negation(text, random, others)
    if len(changed) <= len(text):
        return changed
    start = max(0, text.find(" ", random.randrange(len(text))))
    later = text[:start] + negation(text[start:], random, others)
    return changed if later == text else later


def cut(text: str, random: Random, others: Sequence[str]) -> str:
    """Remove a fifth to three fifths of the words, or of the characters without spaces."""
    words = text.split(" ")
    units, joint = (words, " ") if len(words) > 3 else (list(text), "")
    count = max(1, round(random.uniform(0.2, 0.6) * len(units)))
    if count >= len(units):
        return text
    start = random.choice([0, len(units) - count, random.randrange(len(units) - count + 1)])
    return joint.join(units[:start] + units[start + count :])


def added(text: str, random: Random, others: Sequence[str]) -> str:
    """Add another text, or half of one, before or after."""
    other = random.choice(others)
    other = other[: len(other) // 2] if random.random() < 0.5 else other
    return addition(text, random, [other])


# The changes: of which side, their weights in drawing, and in training.
KINDS: dict[str, tuple[Spoil, int, float, float]] = {
    "name": (name, 1, 2.0, 4.5),
    "negation": (any_negation, 1, 2.0, 5.5),
    "opposite": (exchange(OPPOSITES), 1, 2.0, 5.5),
    "other word of a group": (exchange(OTHERS), 1, 3.0, 3.5),
    "number": (one_number, 1, 2.5, 3.5),
    "cut target": (cut, 1, 1.2, 5.0),
    "cut source": (cut, 0, 1.2, 5.0),
    "added to target": (added, 1, 0.8, 7.0),
    "added to source": (added, 0, 0.8, 7.0),
}
# Weights in drawing and in training, of the target of the next line, and of the source itself.
NEXT, COPY = (1.0, 8.0), (0.8, 0.5)
Pairs = list[tuple[str, str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bucc", type=Path)
    parser.add_argument("folders", nargs=2, type=Path)
    parser.add_argument("--exclude", default="")
    parser.add_argument("--without", default="", help="languages that are not learned from")
    parser.add_argument("-o", "--output", type=Path, default=GIVEN)
    args = parser.parse_args()
    encoder, examples, weights = load_encoder("mini"), [], []
    for language, pairs, is_comparable in corpora_of(args):
        corpus = Corpus(encoder, language, pairs)
        random = Random(f"{language} {is_comparable}")
        for number_of_round in range(ROUNDS[is_comparable]):
            example, weight = corpus.changed(random, f"{language} {number_of_round}")
            examples.append(replace(example, comparable=is_comparable))
            weights.append(weight * (COMPARABLE_WEIGHT if is_comparable else 1))
        print(f"{language}: {len(pairs)} pairs", flush=True)
    loads, right = np.concatenate(weights), np.concatenate([one.right for one in examples])
    loads[right] *= loads[~right].sum() / loads[right].sum()
    judge = fit_judge(examples, loads / loads.sum(), SEEN, rate=RATE)
    judge.save(args.output, {"excluded": sorted(args.exclude.split(",")), "pairs": len(right)})
    return 0


def corpora_of(args: argparse.Namespace) -> Iterator[tuple[str, Pairs, bool]]:
    """Yield languages with their pairs, and whether these are of comparable corpora."""
    without = args.without.split(",")
    for pair in bucc_pairs(args.bucc):
        if pair.partition("-")[0] in without:
            continue
        worlds = (comparable_corpora(args.bucc, pair, one) for one in bucc_splits(args.bucc, pair))
        yield pair.partition("-")[0], sorted(gold for world in worlds for gold in world.gold), True
    found = [find_parallel_text(folder) for folder in args.folders]
    for language in LANGUAGES:
        if language in without:
            continue
        random = Random(language)
        text = choose(found, language, frozenset(args.exclude.split(",")), random)
        yield language, lines_of(list(zip(text.source, text.target, strict=True)), random), False


def lines_of(pairs: Pairs, random: Random) -> Pairs:
    """Return single and joined pairs, longer ones with a higher probability."""
    lengths = [len(english) for _, english in pairs]
    drawn = list(dict.fromkeys(random.choices(pairs, lengths, k=3 * SINGLE + 4 * JOINED)))
    random.shuffle(drawn)
    least, most = CHARACTERS
    single = [pair for pair in drawn if least <= len(pair[1]) <= most][:SINGLE]
    short = [pair for pair in drawn if len(pair[1]) <= most // 2][-2 * JOINED :]
    both = zip(short[::2], short[1::2], strict=False)
    return single + [(f"{one[0]} {two[0]}", f"{one[1]} {two[1]}") for one, two in both]


class Corpus:
    """Pairs of a language with English, and their vectors."""

    def __init__(self, encoder: Encoder, language: str, pairs: Pairs) -> None:
        self.languages = language, "en"
        self.sides = [list(side) for side in zip(*pairs, strict=True)]
        self.encoders = encoders_of_languages(encoder, self.languages)
        self.makers = word_encoders(encoder, self.languages)
        both = zip(self.encoders, self.sides, strict=True)
        self.vectors = [encoder.encode(side) for encoder, side in both]

    def changed(self, random: Random, world: str) -> tuple[Examples, np.ndarray]:
        """Change about half of the pairs, and return their features and weights (P,)."""
        sides, weights = [list(side) for side in self.sides], np.ones(len(self.sides[0]))
        draws = [
            random.choice(CLEAN_WEIGHTS),
            NEXT[0],
            COPY[0],
            *(kind[2] for kind in KINDS.values()),
        ]
        for row, kind in enumerate(
            random.choices(["", "next", "copy", *KINDS], draws, k=len(weights))
        ):
            if kind == "next":
                sides[1][row], weights[row] = self.sides[1][(row + 1) % len(weights)], NEXT[1]
            elif kind == "copy":
                sides[1][row], weights[row] = sides[0][row], COPY[1]
            elif kind:
                change, side, _, weights[row] = KINDS[kind]
                sides[side][row] = change(sides[side][row], random, self.sides[side])
        vectors, right = [own.copy() for own in self.vectors], np.ones(len(weights), np.bool_)
        for side, (texts, old) in enumerate(zip(sides, self.sides, strict=True)):
            rows = [row for row, text in enumerate(texts) if text != old[row]]
            right[rows] = False
            vectors[side][rows] = self.encoders[side].encode([texts[row] for row in rows])
        weights[right] = 1
        lists = search_both(*vectors, k=K)
        cosines = np.einsum("pd,pd->p", *vectors)
        near = NeighbourhoodStats(cosines, lists[0].means(), lists[1].means())
        texts = read_texts(self.makers, *sides, languages=self.languages, is_given=True)
        best = np.argsort(-margin_scores(*near), kind="stable")[:STATISTICS_PAIRS]
        first = Texts(*(values[best] for values in texts))
        usual = RunStatistics.of(first, mean_spacing(lists), is_given=True)
        features = compute_features(texts, near, usual)
        example = {"languages": self.languages, "features": features, "right": right}
        return Examples(world=world, comparable=False, **example), weights


if __name__ == "__main__":
    sys.exit(main())
