"""Load data in the layout of the BUCC task.

``DIR/xx-en/xx-en.SPLIT.xx`` and ``.en`` hold ``ID TAB sentence`` lines, ``xx-en.SPLIT.gold`` holds
``xxID TAB enID`` lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from eval.data.sentences import Sentences, check_gold, read_gold, read_sentences
from eval.metrics.bucc import IdPair


@dataclass(frozen=True, kw_only=True)
class BuccFiles:
    """The three files of one split."""

    source: Path
    target: Path
    gold: Path

    @property
    def all(self) -> tuple[Path, Path, Path]:
        """Both sides, then gold."""
        return self.source, self.target, self.gold


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
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    names = {entry.name for entry in directory.iterdir() if entry.is_dir()}
    names.update(entry.name.partition(".")[0] for entry in directory.iterdir() if entry.is_file())
    pairs = sorted(name for name in names if "-" in name and _complete_splits(directory, name))
    if not pairs:
        raise ValueError(
            f"{directory}: no BUCC data; expected xx-en/xx-en.SPLIT.xx, .en and .gold in it"
        )
    return pairs


def bucc_splits(directory: Path, pair: str) -> list[str]:
    """Return the splits of ``pair`` that have both texts and gold, sorted.

    Raises:
        ValueError: there is no such pair.
    """
    splits = _complete_splits(directory, pair)
    if not splits:
        raise ValueError(
            f"{directory}: no pair {pair!r}; it has {', '.join(bucc_pairs(directory))}"
        )
    return splits


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
    return _named_files(_pair_folder(directory, pair), pair, split)


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


def _pair_folder(directory: Path, pair: str) -> Path:
    folder = directory / pair
    return folder if folder.is_dir() else directory


def _named_files(folder: Path, pair: str, split: str) -> BuccFiles:
    source, _, target = pair.rpartition("-")
    source_file, target_file, gold_file = (
        folder / f"{pair}.{split}.{suffix}" for suffix in (source, target, "gold")
    )
    return BuccFiles(source=source_file, target=target_file, gold=gold_file)


def _complete_splits(directory: Path, pair: str) -> list[str]:
    folder = _pair_folder(directory, pair)
    if not folder.is_dir():
        return []
    pattern = re.compile(rf"{re.escape(pair)}\.(.+)\.gold")
    splits = [match[1] for entry in folder.iterdir() if (match := pattern.fullmatch(entry.name))]
    files = [_named_files(folder, pair, split) for split in splits]
    return sorted(
        split
        for split, file in zip(splits, files, strict=True)
        if file.source.is_file() and file.target.is_file()
    )
