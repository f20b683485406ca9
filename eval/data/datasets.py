"""Loaders for the evaluation sets: the BUCC layout and the Tatoeba similarity search.

BUCC layout: ``DIR/xx-en/xx-en.SPLIT.xx`` and ``.en`` hold ``ID TAB sentence`` lines,
``xx-en.SPLIT.gold`` holds ``xxID TAB enID``. Tatoeba: line i of ``tatoeba.xxx-eng.xxx`` translates
line i of ``tatoeba.xxx-eng.eng``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.data.sentences import Sentences, check_gold, read_gold, read_sentences
from eval.data.textfiles import read_lines

if TYPE_CHECKING:
    from eval.metrics.bucc import IdPair

@dataclass(frozen=True, kw_only=True)
class BuccFiles:
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
    """The language pairs (``de-en``) with a complete split in ``directory``, sorted.

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
    """The splits of ``pair`` that have both texts and gold, sorted.

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
    """The files of one split.

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


def tatoeba_languages(directory: Path) -> list[str]:
    """The ISO 639-3 codes that ``directory`` has files for, sorted.

    Raises:
        ValueError: there is none.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    found = (re.fullmatch(r"tatoeba\.(\w+)-eng\.\1", entry.name) for entry in directory.iterdir())
    codes = sorted(match[1] for match in found if match)
    if not codes:
        raise ValueError(f"{directory}: no Tatoeba data; expected tatoeba.xxx-eng.xxx and .eng")
    return codes


def load_tatoeba(directory: Path, language: str) -> tuple[list[str], list[str]]:
    """The sentences of ``language`` and their English translations, line by line.

    Args:
        directory: holds ``tatoeba.xxx-eng.xxx`` and ``tatoeba.xxx-eng.eng``.
        language: ISO 639-3 code, or ISO 639-1 for those in ``ISO_639_3``.

    Raises:
        ValueError: no such language, no sentence, or numbers of lines that differ.
    """
    code = ISO_639_3.get(language, language)
    codes = tatoeba_languages(directory)
    if code not in codes:
        raise ValueError(f"{directory}: no language {language!r}; it has {', '.join(codes)}")
    path = directory / f"tatoeba.{code}-eng.{code}"
    foreign, english = read_lines(path), read_lines(path.with_suffix(".eng"))
    if len(foreign) != len(english):
        raise ValueError(
            f"{path} has {len(foreign)} lines but its English side has {len(english)}; "
            "line i of one must translate line i of the other"
        )
    if not foreign:
        raise ValueError(f"{path}: empty")
    return foreign, english


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
