"""Make sets of two probing tasks from text (BShift and SOMO).

Conneau et al. 2018, "What you can cram into a single $&!#* vector", section 2. There, text is
parsed, and a noun or a verb is replaced; here, words stand for them that are neither frequent, as
words of grammar are, nor rare, whatever their part of speech. Labels are those of the published
files. Axes: ``P`` places of words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

ORIGINAL, SWAPPED, REPLACED = "O", "I", "C"
FREQUENT = 150  # words, the most frequent ones, are not replaced
RARE = 20  # occurrences, below which a word is not replaced, either
ROUNDS = 200  # of looking for partners, after which few are found

Labelled = list[tuple[str, str]]
Ints = NDArray[np.int64]

_TOKEN = re.compile(r"\w+(?:['\u2019]\w+)*|[^\w\s]")
_NEIGHBOURS = re.compile(r"(?<= )([a-z]+)(?= ([a-z]+) )")
_CONTENT = re.compile(r"[a-z]{3,}")


def bigram_shift(sentences: Sequence[str], *, seed: int = 0) -> Labelled:
    """Swap two neighbouring lower-case words in every second sentence.

    Returns:
        A label and a text per sentence, in random order. A changed text is none of ``sentences``.
    """
    random = np.random.default_rng(seed)
    known = set(sentences)
    made: Labelled = []
    for row in random.permutation(len(sentences)).tolist():
        sentence = sentences[row]
        found = [match for match in _NEIGHBOURS.finditer(sentence) if match[1] != match[2]]
        if not found:
            continue
        match = found[random.integers(len(found))]
        swapped = sentence[: match.start()] + f"{match[2]} {match[1]}" + sentence[match.end(2) :]
        if swapped not in known:
            known.add(swapped)
            made.append((SWAPPED, swapped) if len(made) % 2 else (ORIGINAL, sentence))
    return made


def odd_man_out(sentences: Sequence[str], text: Sequence[str], *, seed: int = 0) -> Labelled:
    """Exchange one word between sentences, in every second pair of sentences.

    In ``text``, each new bigram is as frequent as the one it replaces, within a factor of about
    two. Words are exchanged so that each occurs equally often with both labels.

    Args:
        sentences: Distinct sentences.
        text: Distinct sentences that include ``sentences``.
        seed: Decides the words and the pairs.

    Returns:
        A label and a text per sentence, by pairs in random order. A changed text is not in
        ``text``.
    """
    random = np.random.default_rng(seed)
    counts = _Counts.of(text)
    places = counts.places(sentences, random)
    words = list(counts.numbers)
    known = set(text)
    made: Labelled = []
    for pair in random.permutation(_partners(places, counts, random)).tolist():
        originals = [sentences[places.row[place]] for place in pair]
        replaced = [
            _replaced(sentence, places.token[place], words[places.word[other]])
            for sentence, place, other in zip(originals, pair, reversed(pair), strict=True)
        ]
        if known.isdisjoint(replaced):
            known.update(replaced)
            label, texts = (REPLACED, replaced) if len(made) % 4 else (ORIGINAL, originals)
            made += [(label, one) for one in texts]
    return made


@dataclass(frozen=True, kw_only=True)
class _Places:
    """Words and their neighbours as numbers, with positions, int64 (P,)."""

    row: Ints
    token: Ints
    left: Ints
    word: Ints
    right: Ints


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """The frequencies of words and of bigrams in a text."""

    numbers: dict[str, int]
    words: Ints
    bigrams: Ints  # left * words + right, in ascending order
    times: Ints  # of each bigram

    @classmethod
    def of(cls, text: Sequence[str]) -> _Counts:
        """Count a text. The empty word is before and after each sentence."""
        numbers = {"": 0}
        ids = np.fromiter(
            (
                numbers.setdefault(token, len(numbers))
                for sentence in text
                for token in chain(_TOKEN.findall(sentence), [""])
            ),
            dtype=np.int64,
        )
        words = np.bincount(ids, minlength=len(numbers))
        before = np.concatenate(([0], ids[:-1]))
        bigrams, times = np.unique(before * len(numbers) + ids, return_counts=True)
        return cls(numbers=numbers, words=words, bigrams=bigrams, times=times)

    def places(self, sentences: Sequence[str], random: np.random.Generator) -> _Places:
        """Draw a word to replace in each sentence that has one."""
        frequent = set((1 + np.argsort(-self.words[1:], kind="stable")[:FREQUENT]).tolist())
        fit = {
            number
            for word, number in self.numbers.items()
            if self.words[number] >= RARE and number not in frequent and _CONTENT.fullmatch(word)
        }
        found = []
        for row, sentence in enumerate(sentences):
            ids = [0, *(self.numbers[token] for token in _TOKEN.findall(sentence)), 0]
            fitting = [place for place, number in enumerate(ids) if number in fit]
            if fitting:
                place = fitting[random.integers(len(fitting))]
                found.append((row, place - 1, *ids[place - 1 : place + 2]))
        rows, tokens, left, words, right = np.array(found, dtype=np.int64).reshape(-1, 5).T
        return _Places(row=rows, token=tokens, left=left, word=words, right=right)

    def magnitude(self, left: Ints, right: Ints, *, but: int = 0) -> Ints:
        """Return the frequency of bigrams less ``but`` as a power of two.

        Its ranges are 0, 1-2, 3-6, and higher.
        """
        bigrams = left * len(self.words) + right
        at = np.searchsorted(self.bigrams, bigrams).clip(max=len(self.bigrams) - 1)
        times = np.where(self.bigrams[at] == bigrams, self.times[at], but)
        found: Ints = np.log2(times - but + 1).astype(np.int64)
        return found


def _partners(places: _Places, counts: _Counts, random: np.random.Generator) -> Ints:
    """Return pairs of places (pairs, 2) whose words can be exchanged.

    Partners are drawn repeatedly among places with bigrams of equal frequency.
    """
    before = counts.magnitude(places.left, places.word, but=1)
    after = counts.magnitude(places.word, places.right, but=1)

    def fits(place: Ints, other: Ints) -> NDArray[np.bool_]:
        word = places.word[other]
        left = counts.magnitude(places.left[place], word) == before[place]
        right = counts.magnitude(word, places.right[place]) == after[place]
        both: NDArray[np.bool_] = left & right
        return both

    found = []
    free = np.arange(len(places.word))
    for _ in range(ROUNDS):
        free = free[np.lexsort((random.random(len(free)), after[free], before[free]))]
        tried, rest = free[: len(free) // 2 * 2].reshape(-1, 2), free[len(free) // 2 * 2 :]
        one, other = tried.T
        good = (places.word[one] != places.word[other]) & fits(one, other) & fits(other, one)
        found.append(tried[good])
        free = np.concatenate([tried[~good].ravel(), rest])
    return np.concatenate(found)


def _replaced(sentence: str, token: int, word: str) -> str:
    match = next(islice(_TOKEN.finditer(sentence), token, None))
    return sentence[: match.start()] + word + sentence[match.end() :]
