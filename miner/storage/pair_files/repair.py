"""Repair the texts of pairs that conversions have damaged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from miner.storage.documents.cleaning import INVISIBLE
from miner.storage.pair_files.base import FilePair, PairFile

if TYPE_CHECKING:
    from ftfy import TextFixerConfig


def repair_text(text: str) -> str:
    """Repair mojibake, entities, ligatures, invisible characters and spaces.

    ftfy (Speer 2019) repairs the first three, makes curly quotes straight, and composes characters
    (NFC). White space becomes single spaces. Without ftfy, ModuleNotFoundError is raised.
    """
    from ftfy import fix_text

    return " ".join(INVISIBLE.sub("", fix_text(text, _config())).split())


def repaired(pairs: PairFile) -> PairFile:
    """Return a file of pairs whose texts are repaired when they are read.

    Unrepaired texts are the pairs' ``originals``. Entries with a problem stay as they are. Reading
    raises ModuleNotFoundError if ftfy is not installed.
    """

    def read() -> Iterator[FilePair]:
        for pair in pairs.read():
            if pair.texts and not pair.problem:
                source, target = map(repair_text, pair.texts)
                pair = replace(pair, texts=(source, target), originals=pair.texts)
            yield pair

    return replace(pairs, read=read)


@cache
def _config() -> TextFixerConfig:
    from ftfy import TextFixerConfig

    return TextFixerConfig(unescape_html=True, fix_character_width=False)
