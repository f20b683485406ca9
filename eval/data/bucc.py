"""Load data in the layout of the BUCC task.

``DIR/xx-en/xx-en.SPLIT.xx`` and ``.en`` hold ``ID TAB sentence`` lines, ``xx-en.SPLIT.gold`` holds
``xxID TAB enID`` lines.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval.data.sentences import Sentences, check_gold, read_gold, read_sentences
from eval.metrics.bucc import IdPair

_GOLD = re.compile(r"(?P<pair>[^.]+-[^.]+)\.(?P<split>.+)\.gold")


class BuccFiles(NamedTuple):
    """The three files of one split."""

    source: Path
    target: Path
    gold: Path


@dataclass(frozen=True, kw_only=True)
class BuccSplit:
    """One split of one language pair; ``gold`` holds (source id, target id)."""

    pair: str
    split: str
    source: Sentences
    target: Sentences
    gold: frozenset[IdPair]
    files: BuccFiles


def bucc_pairs(directory: Path) -> list[str]:
    """Return the language pairs (``de-en``) with a complete split in ``directory``, sorted.

    ``directory`` holds a folder for each pair, or is such a folder itself.

    Raises:
        ValueError: there is none.
    """
    return list(_find_splits(directory))


def bucc_splits(directory: Path, pair: str) -> list[str]:
    """Return the splits of ``pair`` that have both texts and gold, sorted.

    Raises:
        ValueError: there is no such pair.
    """
    found = _find_splits(directory)
    if pair not in found:
        raise ValueError(f"{directory}: no pair {pair!r}; it has {', '.join(found)}")
    return list(found[pair])


def bucc_files(directory: Path, pair: str, split: str) -> BuccFiles:
    """Return the files of one split.

    Raises:
        ValueError: there is no such pair or split; the message names those there are.
    """
    splits = bucc_splits(directory, pair)
    if split not in splits:
        raise ValueError(
            f"{directory}: {pair} has no split {split!r} with both texts and gold; "
            f"it has {', '.join(splits)}"
        )
    return _find_splits(directory)[pair][split]


def load_bucc(directory: Path, pair: str, split: str) -> BuccSplit:
    """Load one split, checked: ids unique, gold not empty and all of it among the sentences.

    Args:
        directory: holds the pair's folder, or is it.
        pair: ``xx-en``.
        split: ``training``, ``sample``, ...

    Raises:
        ValueError: something is missing or malformed; the message says what and where.
    """
    files = bucc_files(directory, pair, split)
    source, target = read_sentences(files.source), read_sentences(files.target)
    gold = read_gold(files.gold)
    check_gold(gold, source=source, target=target, path=files.gold)
    return BuccSplit(pair=pair, split=split, source=source, target=target, gold=gold, files=files)


def _find_splits(directory: Path) -> dict[str, dict[str, BuccFiles]]:
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    found: dict[str, dict[str, BuccFiles]] = {}
    for path in sorted([*directory.glob("*.gold"), *directory.glob("*/*.gold")]):
        match = _GOLD.fullmatch(path.name)
        if match and (path.parent == directory or path.parent.name == match["pair"]):
            source, _, target = match["pair"].rpartition("-")
            files = BuccFiles(path.with_suffix(f".{source}"), path.with_suffix(f".{target}"), path)
            if files.source.is_file() and files.target.is_file():
                found.setdefault(match["pair"], {})[match["split"]] = files
    if not found:
        raise ValueError(
            f"{directory}: no BUCC data; expected xx-en/xx-en.SPLIT.xx, .en and .gold in it"
        )
    return {pair: dict(sorted(splits.items())) for pair, splits in sorted(found.items())}
