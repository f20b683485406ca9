"""The files of the BUCC task: sentences with ids, and the gold that joins them.

``DIR/xx-en/xx-en.SPLIT.xx`` and ``.en`` hold ``ID TAB sentence`` lines, ``xx-en.SPLIT.gold`` holds
``xxID TAB enID`` lines.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval.data.textfiles import read_lines
from eval.metrics.bucc import IdPair, Ids
from miner.storage.places import Place

_GOLD = re.compile(r"(?P<pair>[^.]+-[^.]+)\.(?P<split>.+)\.gold")


def text_key(text: str) -> str:
    """Return what two texts must share to be the same sentence: all but the white space."""
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Sentences of one side: ``ids[i]`` names ``texts[i]``; no id occurs twice."""

    ids: Sequence[str]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def ids_by_text(self) -> dict[str, Ids]:
        """Map every ``text_key``, in order of first occurrence, to all ids that have it."""
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for identifier, text in zip(self.ids, self.texts, strict=True):
            ids[text_key(text)].append(identifier)
        return {text: tuple(same) for text, same in ids.items()}


def read_sentences(path: Path) -> Sentences:
    """Read ``ID TAB sentence`` lines; the first tab is the one that counts, blank lines do not.

    Raises:
        ValueError: no sentence, a line without a tab or an id, or an id that comes again.
    """
    ids, texts = [], []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            identifier, tab, text = line.partition("\t")
            if not tab or not identifier.strip():
                raise ValueError(
                    f"{path} line {number}: expected ID TAB sentence, not {line[:60]!r}"
                )
            ids.append(identifier.strip())
            texts.append(text)
    return _checked(ids, texts, path)


def read_split_sentences(texts: Path, ids: Path) -> Sentences:
    """Read sentences from one file and their ids, line by line, from another.

    Raises:
        ValueError: no sentence, different numbers of lines, or an id that is blank or comes again.
    """
    sentences = read_lines(texts)
    identifiers = [line.strip() for line in read_lines(ids)]
    if len(sentences) != len(identifiers):
        raise ValueError(
            f"{texts} has {len(sentences)} lines but {ids} has {len(identifiers)}; "
            "line i of one must name line i of the other"
        )
    if "" in identifiers:
        raise ValueError(f"{ids} line {identifiers.index('') + 1}: blank where an id is expected")
    return _checked(identifiers, sentences, ids)


def _checked(ids: list[str], texts: list[str], path: Path) -> Sentences:
    if not ids:
        raise ValueError(f"{path}: empty; expected one sentence a line")
    if repeated := [name for name, count in Counter(ids).items() if count > 1]:
        again = repeated[0]
        raise ValueError(f"{path}: the id {again!r} occurs more than once; ids must be unique")
    return Sentences(ids=ids, texts=texts)


def read_gold(path: Place) -> frozenset[IdPair]:
    """Read ``source id TAB target id`` lines, one at least; blank ones do not count."""
    gold: set[IdPair] = set()
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        fields = tuple(field.strip() for field in line.split("\t"))
        if len(fields) != 2 or not all(fields):
            raise ValueError(
                f"{path} line {number}: expected SOURCE_ID TAB TARGET_ID, not {line[:60]!r}"
            )
        gold.add(fields)
    if not gold:
        raise ValueError(f"{path}: empty; expected SOURCE_ID TAB TARGET_ID lines")
    return frozenset(gold)


def check_gold(
    gold: Collection[IdPair], *, source: Sentences, target: Sentences, path: Path
) -> None:
    """Check that every gold id names a sentence; a ValueError about ``path`` counts the others."""
    for side, sentences, column in (("source", source, 0), ("target", target, 1)):
        unknown = sorted({pair[column] for pair in gold}.difference(sentences.ids))
        if unknown:
            raise ValueError(
                f"{path}: {len(unknown)} of its {side} ids are not among the {side} sentences, "
                f"first {unknown[0]!r}; the sentences have ids such as {sentences.ids[0]!r}"
            )


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

    ``directory`` holds a folder for each pair, or is such a folder itself. A ValueError says that
    there is none.
    """
    return list(_find_splits(directory))


def bucc_splits(directory: Path, pair: str) -> dict[str, BuccFiles]:
    """Return the splits of ``pair`` that have both texts and gold, sorted, with their files.

    A ValueError names the pairs there are, where this is none of them.
    """
    found = _find_splits(directory)
    if pair not in found:
        raise ValueError(f"{directory}: no pair {pair!r}; it has {', '.join(found)}")
    return found[pair]


def bucc_files(directory: Path, pair: str, split: str) -> BuccFiles:
    """Return the files of one split; a ValueError names the pairs or splits there are."""
    splits = bucc_splits(directory, pair)
    if split not in splits:
        raise ValueError(
            f"{directory}: {pair} has no split {split!r} with both texts and gold; "
            f"it has {', '.join(splits)}"
        )
    return splits[split]


def load_bucc(directory: Path, pair: str, split: str) -> BuccSplit:
    """Load one split, checked: ids unique, gold not empty and all of it among the sentences.

    A ValueError says what is missing or malformed, and where.
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
