"""Sentences with ids, and the gold that joins them: the files of the BUCC task."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.data.textfiles import read_lines
from eval.metrics.bucc import IdPair, Ids
from miner.storage.places import Place


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
    ids: list[str] = []
    texts: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        identifier, tab, text = line.partition("\t")
        if not tab or not identifier.strip():
            raise ValueError(f"{path} line {number}: expected ID TAB sentence, not {line[:60]!r}")
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


def read_gold(path: Place) -> frozenset[IdPair]:
    """Read ``source id TAB target id`` lines. Blank lines do not count.

    Raises:
        ValueError: no pair, or a line that is not two ids.
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
    return frozenset(gold)


def check_gold(
    gold: Collection[IdPair], *, source: Sentences, target: Sentences, path: Path
) -> None:
    """Check that every gold id names a sentence.

    Raises:
        ValueError: one does not; the message names the first, how many there are, and ``path``.
    """
    for side, sentences, column in (("source", source, 0), ("target", target, 1)):
        unknown = sorted({pair[column] for pair in gold}.difference(sentences.ids))
        if unknown:
            raise ValueError(
                f"{path}: {len(unknown)} of its {side} ids are not among the {side} sentences, "
                f"first {unknown[0]!r}; the sentences have ids such as {sentences.ids[0]!r}"
            )


def _checked(ids: list[str], texts: list[str], path: Path) -> Sentences:
    if not ids:
        raise ValueError(f"{path}: empty; expected one sentence a line")
    if len(set(ids)) < len(ids):
        repeated = next(name for name, count in Counter(ids).items() if count > 1)
        raise ValueError(f"{path}: the id {repeated!r} occurs more than once; ids must be unique")
    return Sentences(ids=ids, texts=texts)
