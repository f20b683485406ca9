"""Readers of BUCC files, sentences with ids and gold pairs of ids.

``xx-en/xx-en.SPLIT.xx`` and ``.en`` have ``ID TAB sentence`` lines, and ``.gold`` ``ID TAB ID``.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eval.data.textfiles import choose, read_aligned
from eval.metrics.bucc import IdPair, Ids
from miner.storage.corpus.formats import format_of
from miner.storage.corpus.reader import open_corpus
from miner.storage.layout import SIDES
from miner.storage.places import Place
from miner.storage.streams import check_directory, read_lines

# The name of a column in the header of a gold file.
_HEADER = re.compile(
    r"#?\s*((source|src|target|tgt|trg|[a-z]{2,3})[ _-]?(sentence[ _-]?)?ids?"
    r"|source|src|target|tgt|trg)",
    re.IGNORECASE,
)
_GOLD = re.compile(r"(?P<pair>[^.]+-[^.]+)\.(?P<split>.+)\.gold")


def text_key(text: str) -> str:
    """Strip a text, and replace each run of white space by one space."""
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """N sentences of one side, with unique ids."""

    ids: Sequence[str]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def ids_by_text(self) -> dict[str, Ids]:
        """Return the ids, in order, of the sentences with each ``text_key``."""
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for identifier, text in zip(self.ids, self.texts, strict=True):
            ids[text_key(text)].append(identifier)
        return {text: tuple(text_ids) for text, text_ids in ids.items()}


def read_sentences(path: Path, ids: Path | None = None) -> Sentences:
    """Read ``ID TAB sentence`` lines, JSON lines, or Parquet, by the suffix.

    Blank lines, and JSON and Parquet records that mining rejects, are skipped. A record without an
    id gets its number in the file, from 1. If ``ids`` is not None, ``path`` has one sentence per
    line, maybe blank, whose id is the same line of ``ids``. Ids in lines are stripped.

    Raises:
        ValueError: A file cannot be read or has no sentences, a line lacks an id, an id is
            repeated, or the two files differ in their numbers of lines.
    """
    if ids is not None:
        rows = _split(path, ids)
    elif format_of(path, "auto") in ("jsonl", "parquet"):
        rows = _records(path)
    else:
        rows = _with_ids(path)
    path, texts, lines = ids or path, list[str](), dict[str, int]()
    for number, name, text in rows:
        if (first_line := lines.setdefault(name, number)) != number:
            raise ValueError(
                f"{path}: the id {name!r} is in line {first_line} and again in line {number}; give "
                "each line its own id"
            )
        texts.append(text)
    if not texts:
        raise ValueError(f"{path}: no sentences; expected ID TAB sentence lines, or records")
    return Sentences(ids=list(lines), texts=texts)


def _records(path: Path) -> Iterator[tuple[int, str, str]]:
    for records in open_corpus(path):
        rows = zip(records.ids(), records.texts, strict=True)
        for position, (name, text) in enumerate(rows):
            if position not in records.rejected:
                yield records.first_row + position + 1, name, text


def _with_ids(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, text = line.partition("\t")
        if tab and name.strip():
            yield number, name.strip(), text
        elif line.strip():
            raise ValueError(f"{path} line {number}: expected ID TAB sentence, not {line[:60]!r}")


def _split(path: Path, ids: Path) -> Iterator[tuple[int, str, str]]:
    texts, lines = read_aligned(path, ids)
    names = [line.strip() for line in lines]
    if "" in names:
        raise ValueError(f"{ids} line {names.index('') + 1}: blank; expected an id in each line")
    return zip(range(1, len(names) + 1), names, texts, strict=True)


def read_gold(path: Place, sides: tuple[Sentences, Sentences] | None = None) -> frozenset[IdPair]:
    """Read the distinct gold pairs of ``SOURCE_ID TAB TARGET_ID`` lines.

    Blank lines are skipped. So is a first line of column names, such as ``source_id TAB
    target_id``, unless a name is an id in ``sides``. If ``sides`` is None, ids are not checked.

    Raises:
        PlaceError: A remote file cannot be reached.
        ValueError: The file is unreadable or malformed, has no pairs, or an id is not in ``sides``.
    """
    pairs: list[IdPair] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        fields = tuple(field.strip() for field in line.split("\t"))
        if len(fields) != 2 or not all(fields):
            raise ValueError(
                f"{path} line {number}: expected SOURCE_ID TAB TARGET_ID, not {line[:60]!r}"
            )
        pairs.append(fields)
    names = pairs[0] if pairs else ()
    are_ids = (name in side.ids for name, side in zip(names, sides or (), strict=False))
    if names and all(map(_HEADER.fullmatch, names)) and not any(are_ids):
        del pairs[0]
    if not pairs:
        raise ValueError(f"{path}: no gold pairs; expected SOURCE_ID TAB TARGET_ID lines")
    for side, sentences, ids in zip(SIDES, sides or (), zip(*pairs, strict=True), strict=False):
        if unknown := sorted(set(ids).difference(sentences.ids)):
            raise ValueError(
                f"{path}: the {side} id {unknown[0]!r} is not among the {side} sentences "
                f"(such ids: {len(unknown)}); pass gold pairs of ids such as {sentences.ids[0]!r}"
            )
    return frozenset(pairs)


class BuccFiles(NamedTuple):
    """The paths of the sentences and of the gold pairs of one split."""

    source: Path
    target: Path
    gold: Path


@dataclass(frozen=True, kw_only=True)
class BuccSplit:
    """A split of a language pair ``xx-yy``, with gold pairs of ids."""

    pair: str
    split: str
    source: Sentences
    target: Sentences
    gold: frozenset[IdPair]
    files: BuccFiles


def languages_of(pair: str) -> tuple[str, str]:
    """Split a pair at the last hyphen, ``zh-Hant-en`` into zh-Hant and en."""
    source, _, target = pair.rpartition("-")
    return source, target


def bucc_pairs(directory: Path) -> dict[str, dict[str, BuccFiles]]:
    """Find the files of each language pair, by pair and by split.

    The files are in ``directory``, or in a folder in it that is named after the pair, such as
    ``de-en``. A split has two files of sentences and one of gold pairs. Results are sorted by name.

    Raises:
        ValueError: ``directory`` is not a folder, or contains no complete split.
    """
    check_directory(directory)
    pairs: dict[str, dict[str, BuccFiles]] = {}
    for path in sorted([*directory.glob("*.gold"), *directory.glob("*/*.gold")]):
        match = _GOLD.fullmatch(path.name)
        if match and (path.parent == directory or path.parent.name == match["pair"]):
            source, target = languages_of(match["pair"])
            files = BuccFiles(path.with_suffix(f".{source}"), path.with_suffix(f".{target}"), path)
            if files.source.is_file() and files.target.is_file():
                pairs.setdefault(match["pair"], {})[match["split"]] = files
    if not pairs:
        expected = "xx-en/xx-en.SPLIT.xx, .en and .gold"
        raise ValueError(f"{directory}: contains no BUCC data; expected {expected}")
    return {pair: dict(sorted(splits.items())) for pair, splits in sorted(pairs.items())}


def bucc_splits(directory: Path, pair: str) -> dict[str, BuccFiles]:
    """Return a pair's files by split, or raise ValueError if there are none."""
    return choose(bucc_pairs(directory), pair, f"{directory}: has no language pair", "--pair")


def bucc_files(directory: Path, pair: str, split: str) -> BuccFiles:
    """Return the files of a split, or raise ValueError if it is not complete."""
    problem = f"{directory}: {pair} lacks .gold or a file of sentences for the split"
    return choose(bucc_splits(directory, pair), split, problem)


def load_bucc(directory: Path, pair: str, split: str) -> BuccSplit:
    """Load a split's sentences and gold pairs, or raise ValueError."""
    files = bucc_files(directory, pair, split)
    source, target = read_sentences(files.source), read_sentences(files.target)
    gold = read_gold(files.gold, (source, target))
    return BuccSplit(pair=pair, split=split, source=source, target=target, gold=gold, files=files)
