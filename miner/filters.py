"""Filters: rules that reject mined pairs, each by a name that is the reason given.

Axes: ``P`` pairs, ``N`` rows, ``K`` neighbours.
"""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from miner.addresses import addresses_in
from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Mask
from miner.languages import identifier, known_label
from miner.numbers import compare_numbers, numbers_in

MIN_LETTERS = 3
LENGTH_ODDS = 0.7  # in powers of 2; the best on the `sample` splits, see docs/results-full.md
RATIO_PAIRS = 1 << 15
COPIED_TRIGRAMS = 0.7  # of those of both texts together
MAX_LISTS = 50
MIN_CHANCE = 0.001
MIN_OWN_SCRIPT = 0.5  # of a sentence's letters
SCRIPT_TEXTS = 1000  # that say what script is usual

# By the first word of its letters' names in Unicode; Japanese is written in several scripts.
_JAPANESE = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK"}


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """What filters know of P pairs.

    ``source`` and ``target`` are the texts, ``ratio`` the usual ``log_ratios`` of pairs like them.
    Only the filter ``hub`` needs ``lists``, (P,) each: how many neighbour lists hold each source,
    and each target; only ``language`` needs ``languages``, ISO 639-1, of both sides, and only
    ``script`` needs ``scripts``, the ``usual_script`` of both sides.
    """

    source: Sequence[str]
    target: Sequence[str]
    ratio: float
    lists: Sequence[IntArray] = ()
    languages: tuple[str | None, str | None] = (None, None)
    scripts: tuple[str | None, str | None] = (None, None)

    def each(self, rule: Callable[[str, str], bool]) -> Mask:
        """Return what a rule says of each pair of texts."""
        pairs = zip(self.source, self.target, strict=True)
        return np.fromiter((rule(*pair) for pair in pairs), np.bool_, count=len(self.source))


def log_ratios(source: Sequence[str], target: Sequence[str]) -> FloatArray:
    """Return the binary logarithm of each pair's ratio of lengths in characters: (P,)."""
    ratios = [(len(one) + 1) / (len(other) + 1) for one, other in zip(source, target, strict=True)]
    return np.log2(np.array(ratios, dtype=np.float64))


def usual_ratio(source: Sequence[str], target: Sequence[str]) -> float:
    """Return the median of ``log_ratios`` of the first pairs, the best ones; 0 of no pairs."""
    ratios = log_ratios(source[:RATIO_PAIRS], target[:RATIO_PAIRS])
    return float(np.median(ratios)) if len(ratios) else 0.0


def length_odds(suspects: Suspects) -> FloatArray:
    """Return how far each pair's ratio of lengths is from the usual one: (P,), in powers of 2."""
    return np.abs(log_ratios(suspects.source, suspects.target) - suspects.ratio)


def occurrences(ids: IntArray, rows: int) -> IntArray:
    """Return how many of the lists ``ids`` (N, K) hold each of the rows 0, 1, ...: (rows,).

    k-occurrence, after Radovanović, Nanopoulos & Ivanović 2010, "Hubs in Space".
    """
    return np.bincount(ids[ids != NO_NEIGHBOUR], minlength=rows)


@lru_cache(maxsize=1 << 16)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _JAPANESE.get(name, name)


def _scripts(texts: Iterable[str]) -> Counter[str]:
    return Counter(_script(letter) for text in texts for letter in text if letter.isalpha())


def usual_script(texts: Sequence[str]) -> str | None:
    """Return the script of most letters in the first texts, such as LATIN; None without any."""
    most = _scripts(texts[:SCRIPT_TEXTS]).most_common(1)
    return most[0][0] if most else None


def short(suspects: Suspects) -> Mask:
    """Either side has hardly a letter."""

    def letters(text: str) -> int:
        return sum(map(str.isalpha, text))

    return suspects.each(lambda *texts: min(map(letters, texts)) < MIN_LETTERS)


def length(suspects: Suspects) -> Mask:
    """Reject a ratio of lengths that is far from the languages' median."""
    return length_odds(suspects) > LENGTH_ODDS


def copied(suspects: Suspects) -> Mask:
    """Both sides have nearly the same letters and digits in the same order."""

    def trigrams(text: str) -> set[str]:
        bare = "".join(filter(str.isalnum, text.casefold()))
        return {bare[start : start + 3] for start in range(max(1, len(bare) - 2))}

    def alike(*texts: str) -> bool:
        one, other = map(trigrams, texts)
        return len(one & other) > COPIED_TRIGRAMS * len(one | other)

    return suspects.each(alike)


def numbers(suspects: Suspects) -> Mask:
    """Both sides have numbers in digits, and share none."""

    def differ(*texts: str) -> bool:
        one, other = map(numbers_in, texts)
        return bool(one and other) and compare_numbers(one, other)[0] == 0

    return suspects.each(differ)


def urls(suspects: Suspects) -> Mask:
    """Only one side has a web or mail address, or both have different ones."""
    return suspects.each(lambda source, target: addresses_in(source) != addresses_in(target))


def script(suspects: Suspects) -> Mask:
    """Less than half of either side's letters are in the script that is usual there."""

    def is_foreign(text: str, usual: str | None) -> bool:
        letters = _scripts([text])
        return usual is not None and letters[usual] < MIN_OWN_SCRIPT * letters.total()

    return suspects.each(lambda *texts: any(map(is_foreign, texts, suspects.scripts)))


def hub(suspects: Suspects) -> Mask:
    """Either sentence is near to very many of the other side."""
    source, target = suspects.lists
    return np.maximum(source, target) > MAX_LISTS


def language(suspects: Suspects) -> Mask:
    """Either side is hardly in the language that it should be in."""
    labels = [known_label(code or "") for code in suspects.languages]

    def chance(text: str, expected: str | None) -> float:
        return float(dict(identifier().rank(text))[expected])

    return suspects.each(lambda *texts: min(map(chance, texts, labels)) < MIN_CHANCE)


FILTERS: dict[str, Callable[[Suspects], Mask]] = {
    rule.__name__: rule for rule in (short, length, copied, numbers, urls, script, hub, language)
}


def check_filters(names: Sequence[str], languages: tuple[str | None, str | None]) -> None:
    """Refuse names of no filter, and a language filter that could not work, with a ValueError."""
    for name in names:
        if name not in FILTERS:
            raise ValueError(f"unknown filter {name!r}; use {', '.join(FILTERS)}")
    if "language" not in names:
        return
    if None in languages:
        raise ValueError("the filter 'language' requires --src-lang and --tgt-lang")
    for code in languages:
        if known_label(code or "") is None:
            all_known = ", ".join(sorted(identifier().labels))
            raise ValueError(
                f"the filter 'language' does not support {code!r}; it supports {all_known}"
            )


def reasons(suspects: Suspects, names: Sequence[str]) -> list[str]:
    """For each of P pairs the filters that reject it, joined by commas; "" if none does."""
    masks = [FILTERS[name](suspects).tolist() for name in names]
    rows = zip(*masks, strict=True) if masks else [()] * len(suspects.source)
    return [",".join(itertools.compress(names, row)) for row in rows]
