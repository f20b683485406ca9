"""Align documents with their translations, in order: P, R and F1 against gold.

Strict: the same sentences on both sides as in gold; lax: a sentence pair in common.
"""

import argparse
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from encoder.words import WordEncoder
from eval.data.textfiles import fingerprint, read_lines
from eval.encoding import own_encoders
from eval.output import Record, Show, Table, signed
from eval.tasks.arguments import add_directory

Counts = NDArray[np.float64]

Bead = tuple[tuple[int, ...], tuple[int, ...]]
"""Positions of the source and of the target sentences, ascending."""


@dataclass(frozen=True, kw_only=True)
class BeadScore:
    """Fractions from 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 where both are 0."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def record(self) -> dict[str, float]:
        """Return the score for JSON."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


def judge_beads(found: Collection[Bead], gold: Collection[Bead]) -> Counts:
    """Return whether each different bead of ``found`` is right: 1 or 0, strict and lax, (B, 2)."""
    known = set(gold)
    partners: dict[int, set[int]] = {}
    for source, target in gold:
        for position in source:
            partners.setdefault(position, set()).update(target)
    judged = [
        (bead in known, bead in known or _overlaps(bead, partners))
        for bead in dict.fromkeys(found)
        if bead != ((), ())
    ]
    return np.array(judged, dtype=np.float64).reshape(-1, 2)


def score_beads(found: Iterable[Bead], gold: Iterable[Bead]) -> tuple[BeadScore, BeadScore]:
    """Return the strict and the lax score of an alignment, as Vecalign's score.py counts them.

    Strict: a bead is right if gold has the same one. Lax: if a sentence pair in it is also in a
    bead of gold. Precision counts all beads that were found, those with an empty side too; recall
    counts the beads of gold that have both sides.
    """
    found, gold = list(found), list(gold)
    precision = _shares(judge_beads(found, gold))
    recall = _shares(judge_beads(_two_sided(gold), _two_sided(found)))
    strict, lax = (
        BeadScore(precision=float(p), recall=float(r))
        for p, r in zip(precision, recall, strict=True)
    )
    return strict, lax


def _shares(judged: Counts) -> Counts:
    return judged.mean(axis=0) if len(judged) else np.zeros(2)


def _two_sided(beads: Iterable[Bead]) -> list[Bead]:
    return [bead for bead in beads if all(bead)]


def _overlaps(bead: Bead, partners: dict[int, set[int]]) -> bool:
    source, target = bead
    return any(not partners.get(position, set()).isdisjoint(target) for position in source)


_LINE = re.compile(r"\[([\d, ]*)\]:\[([\d, ]*)\](?::\S*)?")


def read_beads(path: Path) -> list[Bead]:
    """Read the beads of a file as Vecalign writes them: ``[i, j]:[k]`` a line, from 0.

    A third part, the cost, may follow: ``[0]:[0, 1]:0.4137``. Blank lines mean nothing.

    Raises:
        ValueError: a line is something else, or there is none.
        OSError: the file cannot be read.
    """
    beads: list[Bead] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{path} line {number}: expected an alignment such as [0, 1]:[0]")
        beads.append((_positions(match[1]), _positions(match[2])))
    if not beads:
        raise ValueError(f"{path}: no alignments; expected lines such as [0, 1]:[0]")
    return beads


def check_beads(beads: Iterable[Bead], source: int, target: int, *, path: Path) -> None:
    """Check that the beads are of documents of ``source`` and ``target`` sentences.

    Raises:
        ValueError: a position is past the end.
    """
    for bead in beads:
        for positions, count in zip(bead, (source, target), strict=True):
            if positions and max(positions) >= count:
                raise ValueError(
                    f"{path}: position {max(positions)} is past the end of a document of {count} "
                    "sentences (the first is 0); is it the gold of these files?"
                )


def _positions(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(number) for number in text.replace(",", " ").split()))


TABLE = Table("documents", ["source", "target", "gold", "P", "R", "F1", "lax P", "lax R", "lax F1"])
GOLD = re.compile(r"(?P<name>.+)\.(?P<source>[a-z]{2})(?P<target>[a-z]{2})")


@dataclass(frozen=True, kw_only=True)
class Documents:
    """A document, its translation, and the gold alignment: files by what they are called.

    ``languages`` are those of the source and of the target.
    """

    gold: Path
    languages: tuple[str, str]

    @property
    def sides(self) -> tuple[Path, Path]:
        """The files of the source and of the target, a sentence a line."""
        source, target = (self.gold.with_suffix(f".{language}") for language in self.languages)
        return source, target


def find_documents(directory: Path) -> list[Documents]:
    """Find every ``NAME.xxyy`` in the folder that has a ``NAME.xx`` and a ``NAME.yy`` beside it.

    Raises:
        ValueError: there is none.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    named = ((path, GOLD.fullmatch(path.name)) for path in sorted(directory.iterdir()))
    found = [
        Documents(gold=path, languages=(match["source"], match["target"]))
        for path, match in named
        if match
    ]
    found = [documents for documents in found if all(path.is_file() for path in documents.sides)]
    if not found:
        raise ValueError(
            f"{directory}: no documents with gold; expected NAME.xx, NAME.yy and the alignment "
            "NAME.xxyy"
        )
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="NAME.xx, NAME.yy and the gold alignment NAME.xxyy")


def run(args: argparse.Namespace, show: Show) -> Record:
    """Align the documents and score it."""
    every = find_documents(args.directory)
    texts = [tuple(read_lines(path) for path in documents.sides) for documents in every]
    golds = [read_beads(documents.gold) for documents in every]
    for documents, sides, gold in zip(every, texts, golds, strict=True):
        check_beads(gold, *map(len, sides), path=documents.gold)
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    results: dict[str, Record] = {}
    for documents, sides, gold in zip(every, texts, golds, strict=True):
        found = _aligned(sides, documents.languages, encoder)
        strict, lax = (score.record() for score in score_beads(found, gold))
        counts = {"source": len(sides[0]), "target": len(sides[1]), "gold": len(gold)}
        show(TABLE.row(documents.gold.name, *counts.values(), *strict.values(), *lax.values()))
        results[documents.gold.name] = {**counts, "strict": strict, "lax": lax}
    files = (path for documents in every for path in (*documents.sides, documents.gold))
    fields = {"sha256": fingerprint(*files), "encoder": encoder.name}
    return signed(show, "align", {"documents": results}, **fields)


def _aligned(sides: Sequence[list[str]], languages: Sequence[str], encoder: Encoder) -> list[Bead]:
    from miner.monotone.align import align  # loads Numba
    from miner.monotone.blocks import text_blocks

    source, target = (
        text_blocks(texts, own.encode, is_bag=isinstance(own, WordEncoder))
        for texts, own in zip(sides, own_encoders(encoder, languages), strict=True)
    )
    return align(source, target).beads()
