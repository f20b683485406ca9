"""The files of the BUCC task: sentences with ids, and the gold that joins them.

``DIR/xx-en/xx-en.SPLIT.xx`` and ``.en`` hold ``ID TAB sentence`` lines, ``xx-en.SPLIT.gold`` holds
``xxID TAB enID`` lines.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval.data.textfiles import read_lines
from eval.metrics.bucc import IdPair, Ids
from miner.storage.corpus.formats import format_of
from miner.storage.corpus.reader import open_corpus
from miner.storage.layout import SIDES
from miner.storage.places import Place

# A column's name in the header of gold.
_HEADER = re.compile(
    r"#?\s*((source|src|target|tgt|trg|[a-z]{2,3})[ _-]?(sentence[ _-]?)?ids?"
    r"|source|src|target|tgt|trg)",
    re.IGNORECASE,
)
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
    """Read ``ID TAB sentence`` lines, or sentences and a file of ids.

    Line i of the ids names line i of the sentences. The first tab of a line ends its id, and blank
    lines are skipped. JSON lines and Parquet are read as for mining.

    Raises:
        ValueError: There is no sentence, an id is missing or comes again, or numbers of lines
            differ.
    """
    if ids is not None:
        rows = _split(path, ids)
    elif format_of(path, "auto") in ("jsonl", "parquet"):
        rows = _records(path)
    else:
        rows = _with_ids(path)
    path, texts, lines = ids or path, list[str](), dict[str, int]()
    for number, name, text in rows:
        if (first := lines.setdefault(name, number)) != number:
            raise ValueError(
                f"{path}: the id {name!r} is in line {first} and again in line {number}; ids must "
                "be unique"
            )
        texts.append(text)
    if not texts:
        raise ValueError(f"{path}: empty; expected one sentence per line")
    return Sentences(ids=list(lines), texts=texts)


def _records(path: Path) -> Iterator[tuple[int, str, str]]:
    for records in open_corpus(path):
        rows = zip(records.ids(), records.texts, strict=True)
        for number, (name, text) in enumerate(rows, start=records.first_row + 1):
            if number - 1 - records.first_row not in records.rejected:
                yield number, name, text


def _with_ids(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, text = line.partition("\t")
        if tab and name.strip():
            yield number, name.strip(), text
        elif line.strip():
            raise ValueError(f"{path} line {number}: expected ID TAB sentence, not {line[:60]!r}")


def _split(path: Path, ids: Path) -> Iterator[tuple[int, str, str]]:
    texts, names = read_lines(path), [line.strip() for line in read_lines(ids)]
    if len(texts) != len(names):
        raise ValueError(
            f"{path} has {len(texts)} lines but {ids} has {len(names)}; "
            "line i of one must name line i of the other"
        )
    if "" in names:
        raise ValueError(f"{ids} line {names.index('') + 1}: blank where an id is expected")
    return zip(range(1, len(names) + 1), names, texts, strict=True)


def read_gold(path: Place, sides: tuple[Sentences, Sentences] | None = None) -> frozenset[IdPair]:
    """Read ``source id TAB target id`` lines, one at least.

    Blank lines do not count, and neither does a header such as ``source_id TAB target_id``.

    Raises:
        ValueError: A line is something else, or ids are none of the ``sides``.
    """
    gold: set[IdPair] = set()
    is_first = True
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        fields = tuple(field.strip() for field in line.split("\t"))
        if len(fields) != 2 or not all(fields):
            raise ValueError(
                f"{path} line {number}: expected SOURCE_ID TAB TARGET_ID, not {line[:60]!r}"
            )
        is_header = is_first and all(map(_HEADER.fullmatch, fields)) and not _are_ids(fields, sides)
        is_first = False
        if not is_header:
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


def _are_ids(pair: IdPair, sides: tuple[Sentences, Sentences] | None) -> bool:
    return any(one in side.ids for one, side in zip(pair, sides or (), strict=False))


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
