"""Measure the error rate of ratio-margin search among English sentences and falsified copies.

Copies have another number, another name or the opposite meaning. Errors are counted by kind.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from encoder import Encoder
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest_neighbours
from eval.tasks.aligned import add_aligned_data, encoded_sides, fields_of_texts, load_texts
from eval.tasks.suite import Figure, Suite, mean_figure

VARIANTS = 3  # of each kind and sentence, at most

_DIGITS = re.compile(r"\d+")
_NUMBER_WORDS = (
    "two three four five six seven eight nine ten eleven twelve "
    "twenty thirty forty fifty sixty seventy eighty ninety"
).split()
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)

# One or more capitalised words in a row that do not begin the sentence.
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
_OPPOSITE = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_TURNED = re.compile(rf"\b({'|'.join(_OPPOSITE)})\b")


class HardNegative(NamedTuple):
    """A changed copy of sentence ``row``; ``kind`` is one of ``KINDS``."""

    row: int
    kind: str
    text: str


def hard_negatives(sentences: Sequence[str], *, seed: int = 0) -> list[HardNegative]:
    """Make up to ``VARIANTS`` changed copies of each English sentence and kind.

    The idea is that of xSIM++ (Chen et al. 2023, "xSIM++: An Improved Proxy to Bitext Mining
    Performance for Low-Resource Languages"); the rules here are our own, so figures are not
    comparable with published ones.

    They are ordered by sentence, then kind; none equals any of the sentences or another copy of its
    own sentence. What a sentence becomes depends on it, its row, ``seed`` and the names that occur
    in all sentences.
    """
    names = sorted({match[0] for sentence in sentences for match in _names_in(sentence)})
    taken = set(sentences)
    made = []
    for row, sentence in enumerate(sentences):
        random = np.random.default_rng([seed, row])
        own: set[str] = set()
        for kind, change in _CHANGES.items():
            count = 0
            for text in change(sentence, names, random):
                if count < VARIANTS and text not in taken and text not in own:
                    own.add(text)
                    made.append(HardNegative(row, kind, text))
                    count += 1
    return made


def _numbers(sentence: str, names: Sequence[str], random: np.random.Generator) -> Iterator[str]:
    """Replace one number at a time by another of as many digits or by another number word."""
    for match in _DIGITS.finditer(sentence):
        yield _with(sentence, match, _other_digits(match[0], random))
    for match in _NUMBER_WORD.finditer(sentence):
        others = [word for word in _NUMBER_WORDS if word != match[0].lower()]
        other = others[random.integers(len(others))]
        yield _with(sentence, match, other.capitalize() if match[0][0].isupper() else other)


def _other_digits(digits: str, random: np.random.Generator) -> str:
    """Draw another number of as many digits, with the same zeros in front and at the end."""
    core = digits.strip("0") or "0"
    while True:
        first = str(random.integers(1, 10))
        other = first + "".join(str(random.integers(10)) for _ in core[1:])
        if other != core:
            return digits.replace(core, other, 1)


def _entities(sentence: str, names: Sequence[str], random: np.random.Generator) -> Iterator[str]:
    """Replace one name at a time by one of another sentence."""
    own = {match[0] for match in _names_in(sentence)}
    if others := [name for name in names if name not in own]:
        for match in _names_in(sentence):
            yield _with(sentence, match, others[random.integers(len(others))])


def _negations(sentence: str, names: Sequence[str], random: np.random.Generator) -> Iterator[str]:
    """Put in or leave out a ``not``, or turn a word into its opposite."""
    for match in _NOT.finditer(sentence):
        yield _with(sentence, match, "")
    for match in _AUXILIARY.finditer(sentence):
        first, _, rest = match[0].partition(" ")
        yield _with(sentence, match, f"{first} not {rest}".rstrip())
    for match in _TURNED.finditer(sentence):
        yield _with(sentence, match, _OPPOSITE[match[0]])


def _names_in(sentence: str) -> Iterator[re.Match[str]]:
    return (match for match in _ENTITY.finditer(sentence) if match[0] != "I")


def _with(sentence: str, match: re.Match[str], other: str) -> str:
    return sentence[: match.start()] + other + sentence[match.end() :]


_CHANGES = {"number": _numbers, "entity": _entities, "negation": _negations}
KINDS = tuple(_CHANGES)
OTHER = "other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts, and falsify the English ones.

    An error is counted as a kind where the changed copy of that kind of the right sentence was
    found, and as ``other`` where it was another sentence, or a copy of one, or nothing.
    """
    data, english = load_texts(args)
    count = len(data.texts[english])
    copies = hard_negatives(data.texts[english])
    # What each candidate is (a position in KINDS, -1 an original), and of which sentence.
    kinds = np.array([-1] * count + [KINDS.index(copy.kind) for copy in copies])
    owners = np.array([*range(count), *(copy.row for copy in copies)])
    more = {english: [copy.text for copy in copies]}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, *both in encoded_sides(encoder, data, english, more):
            found = best_by_margin(*nearest_neighbours(*both), margin="ratio")
            own = (found >= 0) & (owners[found] == np.arange(count))
            missed = ~own | (kinds[found] >= 0)
            instead = {kind: own & (kinds[found] == at) for at, kind in enumerate(KINDS)}
            shares = {kind: float(each.mean()) for kind, each in {**instead, OTHER: ~own}.items()}
            yield replace(mean_figure(language, missed), lower=True, beside=shares)

    fields = {**fields_of_texts(data), "k": NEIGHBOURS, "margin": "ratio", "negatives": "adit-1"}
    fields |= {kind: sum(copy.kind == kind for copy in copies) for kind in KINDS}
    after, names = (*KINDS, OTHER), data.languages
    return Suite("xsim++", fields, measure, figure="errors", after=after, languages=names)
