"""Find pairs with the same text on both sides, which are not translations.

A text is the same as another if both have the same letters, marks and digits in the same order,
whatever their case, their Unicode form (NFKC), punctuation and white space. Two texts without any
of these are the same if they are equal in NFKC.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from miner.arrays import Mask

_COUNTED = "LMN"  # categories of Unicode: letters, marks (vowels in many scripts) and numbers


def same_texts(source: Sequence[str], target: Sequence[str]) -> Mask:
    """Return a mask (P,) of the pairs with the same text on both sides."""
    pairs = zip(source, target, strict=True)
    return np.fromiter((_is_same(*pair) for pair in pairs), np.bool_, count=len(source))


def _is_same(source: str, target: str) -> bool:
    if source == target:
        return True
    start, end = source[:1].lower(), target[:1].lower()
    if start != end and (start + end).isascii() and start.isalnum() and end.isalnum():
        return False  # most pairs end here
    one, other = (unicodedata.normalize("NFKC", text) for text in (source, target))
    return _first(one) == _first(other) and _bare(one) == _bare(other)


def _first(text: str) -> str:
    """Return the first letter, mark or digit, folded, or "" if none."""
    return next(filter(_counts, text), "").casefold()[:1]


def _bare(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text.casefold())
    return "".join(filter(_counts, folded)) or text


@lru_cache(maxsize=1 << 16)
def _counts(character: str) -> bool:
    return unicodedata.category(character)[0] in _COUNTED
