"""Latin letters for words, so that a name is spelt much alike in several alphabets.

Accents are taken off, Cyrillic and Greek letters transcribed one by one, as passports and maps do
it roughly: what matters is that the same name gives much the same letters, not which ones.
"""

from __future__ import annotations

import re
import string
import unicodedata

LETTERS = string.ascii_lowercase + string.digits  # what is left of a text

_CYRILLIC = (
    "а a б b в v г g д d е e ж zh з z и i к k л l м m н n о o п p р r с s т t у u ф f х kh ц ts "
    "ч ch ш sh щ shch ы y э e ю yu я ya і i є e ґ g ј j љ lj њ nj ћ c ђ dj џ dz ѕ dz"
)
_GREEK = (
    "α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s ς s τ t υ y φ f χ ch "
    "ψ ps ω o"
)
_LATIN = "ß ss æ ae ø o œ oe ł l đ d ð d þ th ı i"


def _table(*alphabets: str) -> dict[int, str]:
    pairs = " ".join(alphabets).split()
    return {ord(letter): latin for letter, latin in zip(pairs[::2], pairs[1::2], strict=True)}


_TABLE = _table(_CYRILLIC, _GREEK, _LATIN)
_OTHERS = re.compile(f"[^{LETTERS}]+")


def romanized(text: str) -> str:
    """The text in ``LETTERS``; what is neither digit nor of the three alphabets is left out."""
    return _OTHERS.sub("", unicodedata.normalize("NFKD", text.lower()).translate(_TABLE))
