"""Measure the error rate of search among sentences and falsified copies.

Search is by ratio margin. Copies of English sentences have another number, another name or the
opposite meaning. Errors are counted by kind.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from encoder import Encoder
from encoder.words import word_encoders
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, find_nearest
from eval.tasks.aligned import add_aligned_data, encoded_sides, fields_of_texts, load_texts
from eval.tasks.suite import Figure, Suite, mean_figure
from miner.arrays import IntArray, Neighbours
from miner.judge.features import RunStatistics, compute_features, read_texts
from miner.judge.model import bundled_judge

MAX_VARIANTS = 3  # copies per kind and sentence
CANDIDATES = 16  # nearest neighbours among which the judge chooses

_DIGITS = re.compile(r"\d+")
_NUMBER_WORDS = (
    "two three four five six seven eight nine ten eleven twelve "
    "twenty thirty forty fifty sixty seventy eighty ninety"
).split()
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)

# One or more consecutive capitalised words, not at the beginning of the sentence.
_NAME = r"[A-Z]\w*(?:['\u2019][A-Z]\w*)?"
_ENTITY = re.compile(rf"(?<=[a-z,;] ){_NAME}(?:[ -]{_NAME})*")

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|will|would|can|could|should|must|may|might|has been|have been|had been)\b"
    r"(?! not\b|n['\u2019]t)"
)
_NOT = re.compile(r"(?<=\w) not\b|(?<=\w)n['\u2019]t\b")
_OPPOSITES = (
    "more less increase decrease increased decreased rise fall rose fell high low higher lower "
    "before after above below always never all none first last new old large small best worst "
    "better worse good bad long short win lose won lost with without"
).split()
_PAIRS = list(zip(_OPPOSITES[::2], _OPPOSITES[1::2], strict=True))
_OPPOSITE = {word: opposite for pair in _PAIRS for word, opposite in (pair, pair[::-1])}
_WITH_OPPOSITE = re.compile(rf"\b({'|'.join(_OPPOSITE)})\b")


class HardNegative(NamedTuple):
    """A changed copy of sentence ``row``, of kind number, entity or negation."""

    row: int
    kind: str
    text: str


def hard_negatives(sentences: Sequence[str], *, seed: int = 0) -> list[HardNegative]:
    """Make changed copies of English sentences.

    Each sentence has up to 3 distinct copies per kind of change, which no sentence equals. The idea
    is that of xSIM++ (Chen et al. 2023), but figures are not comparable with published ones. Copies
    depend on the sentence, its row, ``seed``, and the names in all sentences.
    """
    names = sorted({match[0] for sentence in sentences for match in _names_in(sentence)})
    originals = set(sentences)
    copies: list[HardNegative] = []
    for row, sentence in enumerate(sentences):
        random = np.random.default_rng([seed, row])
        row_copies: set[str] = set()
        for kind, change in _CHANGES.items():
            texts = dict.fromkeys(change(sentence, names, random))
            new = [text for text in texts if text not in originals and text not in row_copies]
            row_copies.update(new[:MAX_VARIANTS])
            copies += [HardNegative(row, kind, text) for text in new[:MAX_VARIANTS]]
    return copies


def _numbers(sentence: str, names: Sequence[str], random: np.random.Generator) -> Iterator[str]:
    for match in _DIGITS.finditer(sentence):
        yield _substitute(sentence, match, _other_digits(match[0], random))
    for match in _NUMBER_WORD.finditer(sentence):
        others = [word for word in _NUMBER_WORDS if word != match[0].lower()]
        replacement = others[random.integers(len(others))]
        is_upper = match[0][0].isupper()
        yield _substitute(sentence, match, replacement.capitalize() if is_upper else replacement)


def _other_digits(digits: str, random: np.random.Generator) -> str:
    core = digits.strip("0") or "0"
    while True:
        first = str(random.integers(1, 10))
        replacement = first + "".join(str(random.integers(10)) for _ in core[1:])
        if replacement != core:
            return digits.replace(core, replacement, 1)


def _entities(sentence: str, names: Sequence[str], random: np.random.Generator) -> Iterator[str]:
    names_here = {match[0] for match in _names_in(sentence)}
    if others := [name for name in names if name not in names_here]:
        for match in _names_in(sentence):
            yield _substitute(sentence, match, others[random.integers(len(others))])


def _negations(sentence: str, names: Sequence[str], random: np.random.Generator) -> Iterator[str]:
    for match in _NOT.finditer(sentence):
        yield _substitute(sentence, match, "")
    for match in _AUXILIARY.finditer(sentence):
        first, _, rest = match[0].partition(" ")
        yield _substitute(sentence, match, f"{first} not {rest}".rstrip())
    for match in _WITH_OPPOSITE.finditer(sentence):
        yield _substitute(sentence, match, _OPPOSITE[match[0]])


def _names_in(sentence: str) -> Iterator[re.Match[str]]:
    return (match for match in _ENTITY.finditer(sentence) if match[0] != "I")


def _substitute(sentence: str, match: re.Match[str], replacement: str) -> str:
    return sentence[: match.start()] + replacement + sentence[match.end() :]


_CHANGES = {"number": _numbers, "entity": _entities, "negation": _negations}
KINDS = tuple(_CHANGES)
OTHER = "other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)
    text = (
        f"choose among the {CANDIDATES} nearest sentences by the score of adit rate --score texts "
        "(default: by margin)"
    )
    parser.add_argument("--rerank", action="store_true", help=text)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the aligned texts, and changed copies of English, as a suite.

    An error is of a kind if a changed copy of the correct sentence is chosen, or else ``other``.
    Errors of ``load_texts`` are raised.
    """
    data, english = load_texts(args)
    count = len(data.texts[english])
    copies = hard_negatives(data.texts[english])
    # The kind of each candidate (an index in KINDS, or -1 for an original), and its sentence.
    kinds = np.array([-1] * count + [KINDS.index(copy.kind) for copy in copies])
    owners = np.array([*range(count), *(copy.row for copy in copies)])
    more = {english: [copy.text for copy in copies]}
    targets = [*data.texts[english], *more[english]]

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, *sides in encoded_sides(encoder, data, english, more):
            if args.rerank:
                nearest, _ = find_nearest(*sides, k=CANDIDATES)
                pair = language, english
                best = best_by_judge(encoder, pair, data.texts[language], targets, nearest)
            else:
                best = best_by_margin(*find_nearest(*sides), margin="ratio")
            is_own = (best >= 0) & (owners[best] == np.arange(count))
            errors = {kind: is_own & (kinds[best] == index) for index, kind in enumerate(KINDS)}
            errors[OTHER] = ~is_own
            shares = {kind: float(mask.mean()) for kind, mask in errors.items()}
            figure = mean_figure(language, ~is_own | (kinds[best] >= 0))
            yield replace(figure, lower=True, beside=shares)

    search = {"k": NEIGHBOURS, "margin": "ratio"}
    if args.rerank:
        search = {"k": CANDIDATES, "judge": bundled_judge(is_given=True).name}
    fields = {**fields_of_texts(data), **search, "negatives": "adit-1"}
    fields |= {kind: sum(copy.kind == kind for copy in copies) for kind in KINDS}
    after, names = (*KINDS, OTHER), data.languages
    return Suite("xsim++", fields, measure, figure="errors", after=after, languages=names)


def best_by_judge(
    encoder: Encoder,
    languages: tuple[str, str],
    source: Sequence[str],
    targets: Sequence[str],
    nearest: Neighbours,
) -> IntArray:
    """Choose each sentence's neighbour with the judge's best score.

    ``languages`` are ISO 639 codes of both sides. ``nearest`` has neighbours of N sentences
    ``source``, in one or more columns, as positions in ``targets``. The result is a position per
    sentence, int64 (N,), -1 without neighbours, ties to the first. Errors are of ``word_encoders``.
    """
    ids = nearest.ids.T  # the first neighbours come first: run statistics are of them
    ranks, rows = np.nonzero(ids >= 0)
    chosen = ids[ranks, rows].tolist()
    pairs = [source[row] for row in rows.tolist()], [targets[row] for row in chosen]
    makers = word_encoders(encoder, languages)
    texts = read_texts(makers, *pairs, languages=languages, is_given=True)
    features = compute_features(texts, None, RunStatistics.of(texts, is_given=True))
    scores = np.full(ids.shape, -np.inf)
    scores[ranks, rows] = bundled_judge(is_given=True).scores(features)
    best: IntArray = ids[scores.argmax(axis=0), np.arange(len(source))]
    return best
