"""The files of the BUCC task: sentences with ids, and the gold that joins them.

``DIR/xx-en/xx-en.SPLIT.xx`` and ``.en`` hold ``ID TAB sentence`` lines, ``xx-en.SPLIT.gold`` holds
``xxID TAB enID`` lines.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval.data.textfiles import read_lines
from eval.metrics.bucc import IdPair, Ids
from miner.storage.layout import SIDES
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


def read_sentences(path: Path, ids: Path | None = None) -> Sentences:
    """Read ``ID TAB sentence`` lines, or sentences whose ids are in another file, line by line.

    The first tab is the one that counts, blank lines do not. A ValueError: there is no sentence, an
    id is missing, or comes again, or numbers of lines differ.
    """
    rows = list(_with_ids(path)) if ids is None else _split(path, ids)
    path = ids or path
    if not rows:
        raise ValueError(f"{path}: empty; expected one sentence a line")
    counts = Counter(name for name, _ in rows)
    if again := next((name for name, count in counts.items() if count > 1), None):
        raise ValueError(f"{path}: the id {again!r} occurs more than once; ids must be unique")
    return Sentences(ids=list(counts), texts=[text for _, text in rows])


def _with_ids(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, text = line.partition("\t")
        if tab and name.strip():
            yield name.strip(), text
        elif line.strip():
            raise ValueError(f"{path} line {number}: expected ID TAB sentence, not {line[:60]!r}")


def _split(path: Path, ids: Path) -> list[tuple[str, str]]:
    texts, names = read_lines(path), [line.strip() for line in read_lines(ids)]
    if len(texts) != len(names):
        raise ValueError(
            f"{path} has {len(texts)} lines but {ids} has {len(names)}; "
            "line i of one must name line i of the other"
        )
    if "" in names:
        raise ValueError(f"{ids} line {names.index('') + 1}: blank where an id is expected")
    return list(zip(names, texts, strict=True))


def read_gold(path: Place, sides: tuple[Sentences, Sentences] | None = None) -> frozenset[IdPair]:
    """Read ``source id TAB target id`` lines, one at least; blank ones do not count.

    A ValueError says that a line is something else, or how many ids are none of the ``sides``.
    """
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
    for side, sentences, ids in zip(SIDES, sides or (), zip(*gold, strict=True), strict=False):
        if unknown := sorted(set(ids).difference(sentences.ids)):
            raise ValueError(
                f"{path}: {len(unknown)} of its {side} ids are not among the {side} sentences, "
                f"first {unknown[0]!r}; the sentences have ids such as {sentences.ids[0]!r}"
            )
    return frozenset(gold)


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


def bucc_pairs(directory: Path) -> dict[str, dict[str, BuccFiles]]:
    """Return the complete splits of each language pair (``de-en``), sorted; one pair at least.

    ``directory`` holds a folder for each pair, or is such a folder itself.
    """
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
        expected = "xx-en/xx-en.SPLIT.xx, .en and .gold"
        raise ValueError(f"{directory}: no BUCC data; expected {expected} in it")
    return {pair: dict(sorted(splits.items())) for pair, splits in sorted(found.items())}


def bucc_splits(directory: Path, pair: str) -> dict[str, BuccFiles]:
    """Return the splits of a pair, as ``bucc_pairs``; a ValueError names the pairs there are."""
    found = bucc_pairs(directory)
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
    gold = read_gold(files.gold, (source, target))
    return BuccSplit(pair=pair, split=split, source=source, target=target, gold=gold, files=files)
