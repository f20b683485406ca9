"""Repair the texts of pairs that conversions have damaged."""

from collections.abc import Iterator
from dataclasses import replace

from miner.storage.documents.cleaning import INVISIBLE
from miner.storage.pair_files.base import FilePair, PairFile


def repair_text(text: str) -> str:
    """Repair mojibake, entities, ligatures, invisible characters and spaces.

    ftfy (Speer 2019) repairs the first three, makes curly quotes straight, and composes characters
    (NFC). White space becomes single spaces. Without ftfy, ModuleNotFoundError is raised.
    """
    from ftfy import fix_text

    fixed = fix_text(text, unescape_html=True, fix_character_width=False)
    return " ".join(INVISIBLE.sub("", fixed).split())


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
