"""Filters that reject mined pairs, and whose names are the reasons.

Each filter takes ``Suspects`` and returns a mask (P,) of the rejected pairs. Axes: ``P`` pairs.
"""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from miner.addresses import addresses_in
from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Mask
from miner.languages import identifier, known_label
from miner.numbers import compare_numbers

MIN_LETTERS = 3
LENGTH_ODDS = 0.7  # in log2; the best on the `sample` splits, see docs/log/results.md
RATIO_PAIRS = 1 << 15  # whose median ratio counts
COPIED_TRIGRAMS = 0.7  # shared, of the trigrams of both texts
MAX_LISTS = 50  # neighbour lists that contain a sentence
MIN_PROBABILITY = 0.001  # of a text's language
MIN_OWN_SCRIPT = 0.5  # share of a sentence's letters
SCRIPT_TEXTS = 1000  # whose letters decide the main script

# Scripts are first words of Unicode names. Japanese scripts count as one.
_JAPANESE = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK"}


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """P pairs of texts to filter, and the facts that filters need.

    ``ratio`` is the ``median_log_ratio`` of the corpus. ``lists`` are two arrays (P,): how many
    neighbour lists contain each source, and each target. ``languages`` are ISO 639-1 codes of both
    sides. The filter ``hub`` raises ValueError without ``lists``, ``language`` without both codes.
    ``scripts`` are the ``main_script`` of both sides, or None to accept any script.
    """

    source: Sequence[str]
    target: Sequence[str]
    ratio: float
    lists: Sequence[IntArray] = ()
    languages: Sequence[str | None] = (None, None)
    scripts: tuple[str | None, str | None] = (None, None)

    @classmethod
    def of(
        cls,
        source: Sequence[str],
        target: Sequence[str],
        *,
        lists: Sequence[IntArray] = (),
        languages: Sequence[str | None] = (None, None),
    ) -> Self:
        """Build suspects with the length ratio and main scripts of these pairs.

        Pass the best pairs first: the first 32,768 decide the ratio, and 1,000 the scripts.
        """
        return cls(
            source=source,
            target=target,
            ratio=median_log_ratio(source, target),
            lists=lists,
            languages=languages,
            scripts=(main_script(source), main_script(target)),
        )

    def each(self, rule: Callable[[str, str], bool]) -> Mask:
        """Return a mask (P,) of the pairs with a true ``rule(source, target)``."""
        pairs = zip(self.source, self.target, strict=True)
        return np.fromiter((rule(*pair) for pair in pairs), np.bool_, count=len(self.source))


def log_ratios(source: Sequence[str], target: Sequence[str]) -> FloatArray:
    """Return log2((source characters + 1) / (target characters + 1)), (P,)."""
    ratios = [(len(one) + 1) / (len(other) + 1) for one, other in zip(source, target, strict=True)]
    return np.log2(np.array(ratios, dtype=np.float64))


def median_log_ratio(source: Sequence[str], target: Sequence[str]) -> float:
    """Return the median ``log_ratios`` of the first 32,768 pairs, 0 if none."""
    ratios = log_ratios(source[:RATIO_PAIRS], target[:RATIO_PAIRS])
    return float(np.median(ratios)) if len(ratios) else 0.0


def length_odds(suspects: Suspects) -> FloatArray:
    """Return ``abs(log_ratios - suspects.ratio)`` of the pairs, float64 (P,)."""
    return np.abs(log_ratios(suspects.source, suspects.target) - suspects.ratio)


def occurrences(ids: IntArray, rows: int) -> IntArray:
    """Count the neighbour lists that contain each row, int64 (``rows``,).

    ``ids`` are the lists, int64 of any shape, of rows below ``rows``, -1 in unused columns. The
    counts are k-occurrences (Radovanović, Nanopoulos & Ivanović 2010, "Hubs in Space").
    """
    return np.bincount(ids[ids != NO_NEIGHBOUR], minlength=rows)


@lru_cache(maxsize=1 << 16)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _JAPANESE.get(name, name)


def _scripts(texts: Iterable[str]) -> Counter[str]:
    return Counter(_script(letter) for text in texts for letter in text if letter.isalpha())


def main_script(texts: Sequence[str]) -> str | None:
    """Return the most frequent script of letters in the first 1,000 texts.

    It is the first word of the letters' Unicode names, such as LATIN, or CJK for Chinese and
    Japanese, or None without letters.
    """
    most = _scripts(texts[:SCRIPT_TEXTS]).most_common(1)
    return most[0][0] if most else None


def short(suspects: Suspects) -> Mask:
    """Return a mask (P,) of the pairs with a side of fewer than 3 letters."""

    def letters(text: str) -> int:
        return sum(map(str.isalpha, text))

    return suspects.each(lambda *texts: min(map(letters, texts)) < MIN_LETTERS)


def length(suspects: Suspects) -> Mask:
    """Return a mask (P,) of the pairs with ``length_odds`` above 0.7."""
    return length_odds(suspects) > LENGTH_ODDS


def copied(suspects: Suspects) -> Mask:
    """Return a mask (P,) of the pairs whose sides are nearly the same.

    More than 70% of the pair's distinct trigrams are on both sides. A trigram is three letters or
    digits in a row, without other characters and case. A side with fewer has one, maybe empty.
    """

    def trigrams(text: str) -> set[str]:
        bare = "".join(filter(str.isalnum, text.casefold()))
        return {bare[start : start + 3] for start in range(max(1, len(bare) - 2))}

    def is_copy(*texts: str) -> bool:
        one, other = map(trigrams, texts)
        return len(one & other) > COPIED_TRIGRAMS * len(one | other)

    return suspects.each(is_copy)


def numbers(suspects: Suspects) -> Mask:
    """Return a mask (P,) of pairs with numbers on both sides, none shared."""

    def differ(*texts: str) -> bool:
        shared, _, contradicting = compare_numbers(*texts)
        return shared == 0 < contradicting

    return suspects.each(differ)


def urls(suspects: Suspects) -> Mask:
    """Return a mask (P,) of the pairs whose sides differ in ``addresses_in``."""
    return suspects.each(lambda source, target: addresses_in(source) != addresses_in(target))


def script(suspects: Suspects) -> Mask:
    """Return a mask (P,) of the pairs with a side in another script.

    Less than half of that side's letters are in its script of ``suspects.scripts``. A side without
    letters, or with None there, is accepted.
    """

    def is_foreign(text: str, main: str | None) -> bool:
        letters = _scripts([text])
        return main is not None and letters[main] < MIN_OWN_SCRIPT * letters.total()

    return suspects.each(lambda *texts: any(map(is_foreign, texts, suspects.scripts)))


def hub(suspects: Suspects) -> Mask:
    """Return a mask (P,) of pairs with a sentence in over 50 neighbour lists.

    Raises:
        ValueError: ``suspects.lists`` are not two arrays.
    """
    if len(suspects.lists) != 2:
        raise ValueError(f"the filter 'hub' requires 2 lists, not {len(suspects.lists)}; omit it")
    return np.maximum(*suspects.lists) > MAX_LISTS


def language(suspects: Suspects) -> Mask:
    """Return a mask (P,) of the pairs with a side in another language.

    A text's probability of being in its side's language, one of ``suspects.languages``, is below
    0.001. Raises ValueError if one of these is None, or not supported by py3langid.
    """
    check_filter_languages(["language"], suspects.languages)
    labels = [known_label(code or "") for code in suspects.languages]

    def probability(text: str, expected: str | None) -> float:
        return float(dict(identifier().rank(text))[expected])

    return suspects.each(lambda *texts: min(map(probability, texts, labels)) < MIN_PROBABILITY)


FILTERS: dict[str, Callable[[Suspects], Mask]] = {
    rule.__name__: rule for rule in (short, length, copied, numbers, urls, script, hub, language)
}


def check_filter_languages(names: Sequence[str], languages: Sequence[str | None]) -> None:
    """Check that filter ``language``, if in ``names``, knows both languages.

    Raises:
        ValueError: A language is None or not supported. Sets in ``names``, as ``web``, are ignored.
    """
    if "language" not in names:
        return
    if None in languages:
        raise ValueError(
            "--filters language (also in web): unknown language; pass --src-lang and --tgt-lang"
        )
    for code in languages:
        if known_label(code or "") is None:
            all_known = ", ".join(sorted(identifier().labels))
            raise ValueError(
                f"--filters language (also in web): does not recognise {code!r}; name other "
                f"filters (recognised are {all_known})"
            )


def reasons(suspects: Suspects, names: Sequence[str]) -> list[str]:
    """Return the names of the filters that reject each of P pairs.

    A pair's names are joined by commas, in the order of ``names``, which are keys of ``FILTERS``.
    The text is empty if all filters accept the pair. Errors of these filters are raised.
    """
    masks = [FILTERS[name](suspects).tolist() for name in names]
    rows = zip(*masks, strict=True) if masks else [()] * len(suspects.source)
    return [",".join(itertools.compress(names, row)) for row in rows]
