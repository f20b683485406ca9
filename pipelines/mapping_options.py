"""The options of ``adit map``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from encoder.monolingual.options import WordOptions
from miner.storage.places import Place

STARTS = ("identical", "similarity", "adversarial", "adversarial-alone")
IDENTICAL, SIMILARITY, ADVERSARIAL, ALONE = STARTS
VEC = ".vec"


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """Two languages to be brought into one space.

    ``source`` and ``target`` are corpora, or files of vectors (``VEC``). ``start`` is one
    of ``STARTS`` or a file of words and their translations.
    """

    source: Place
    target: Place
    languages: tuple[str, str]
    output: Path
    start: str = IDENTICAL
    refinements: int = 5
    vec: Path | None = None
    input_format: str = "auto"
    words: WordOptions = field(default_factory=WordOptions)
