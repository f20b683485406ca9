"""Filters: rules that reject mined pairs, each by a name that is the reason given.

Axes: ``P`` pairs, ``N`` rows, ``K`` neighbours.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Mask
from miner.languages import identifier

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
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
# Digits, with what groups them by three and what begins their fraction.
_NUMBER = re.compile(r"\d+(?:[.,'\u00a0\u202f ]\d{3})*(?:[.,]\d+)?")


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


def numbers_in(text: str) -> set[str]:
    """Return the numbers written in digits, without the marks between these."""
    return {re.sub(r"\D", "", match[0]) for match in _NUMBER.finditer(text)}


def shared_and_unmatched_numbers(source: Sequence[str], target: Sequence[str]) -> FloatArray:
    """Return how many numbers both texts of each pair have, and how many only one: (2, P)."""
    counts, none = np.zeros((2, len(source))), set[str]()
    found = [
        {place: numbers_in(texts[place]) for place in _places_of_digits(texts).tolist()}
        for texts in (source, target)
    ]
    for place in found[0].keys() | found[1].keys():
        one, two = (numbers.get(place, none) for numbers in found)
        counts[:, place] = len(one & two), len(one ^ two)
    return counts


def code_points(texts: Sequence[str]) -> tuple[NDArray[np.uint32], IntArray]:
    """Return the code points of N texts, and where in them each begins, and the last ends."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return codes, np.cumsum([0, *map(len, texts)])


def _places_of_digits(texts: Sequence[str]) -> IntArray:
    """Return the places of all texts with a digit, and of some others: much faster than a search.

    Digits are those of ASCII, and some of the characters from U+0660 on.
    """
    codes, starts = code_points(texts)
    digits = np.flatnonzero((codes - ord("0") < 10) | (codes >= 0x660))
    return np.unique(np.searchsorted(starts, digits, side="right")) - 1


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
    """The ratio of lengths is far from the usual one."""
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
        return bool(one and other) and one.isdisjoint(other)

    return suspects.each(differ)


def urls(suspects: Suspects) -> Mask:
    """Only one side has a web or mail address, or both have different ones."""

    def addresses(text: str) -> set[str]:
        return {found.casefold().rstrip(".,;:!?)'") for found in _URL.findall(text)}

    return suspects.each(lambda source, target: addresses(source) != addresses(target))


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

    def chance(text: str, expected: str | None) -> float:
        return float(dict(identifier().rank(text))[expected])

    return suspects.each(lambda *texts: min(map(chance, texts, suspects.languages)) < MIN_CHANCE)


FILTERS: dict[str, Callable[[Suspects], Mask]] = {
    rule.__name__: rule for rule in (short, length, copied, numbers, urls, script, hub, language)
}


def check_filters(names: Sequence[str], languages: tuple[str | None, str | None]) -> None:
    """Refuse names of no filter, and a language filter that could not work, with a ValueError."""
    for name in names:
        if name not in FILTERS:
            raise ValueError(f"no filter {name!r}; choose of {', '.join(FILTERS)}")
    if "language" not in names:
        return
    if None in languages:
        raise ValueError(
            "the filter 'language' needs to know both languages: --src-lang and --tgt-lang"
        )
    known = identifier().labels
    for code in languages:
        if code not in known:
            all_known = ", ".join(sorted(known))
            raise ValueError(f"the filter 'language' knows no {code!r}; it knows {all_known}")


def reasons(suspects: Suspects, names: Sequence[str]) -> list[str]:
    """For each of P pairs the filters that reject it, joined by commas; "" if none does."""
    masks = [FILTERS[name](suspects).tolist() for name in names]
    rows = zip(*masks, strict=True) if masks else [()] * len(suspects.source)
    return [",".join(itertools.compress(names, row)) for row in rows]
