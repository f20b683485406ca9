"""Align documents with their translations, and score with gold beads.

A bead is a group of sentences that translate each other. The scores are precision, recall and F1.
Strict scores count beads with the gold bead's sentences on both sides. Lax scores also count beads
that share a sentence pair with a gold bead.
"""

import argparse
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from encoder import Encoder, load_encoder
from encoder.words import WordEncoder
from eval.data.languages import encoders_of_languages
from eval.data.textfiles import files_matching, fingerprint
from eval.output import Record, Show, Table, sign
from eval.tasks.arguments import add_directory
from miner.arrays import FloatArray
from miner.storage.streams import read_lines

Bead = tuple[tuple[int, ...], tuple[int, ...]]  # ascending positions in source and target

TABLE = Table("documents", ["source", "target", "gold", "P", "R", "F1", "lax P", "lax R", "lax F1"])
_LINE = re.compile(r"\[([\d, ]*)\]:\[([\d, ]*)\](?::\S*)?")


def judge_beads(beads: Collection[Bead], gold: Collection[Bead]) -> FloatArray:
    """Judge whether each bead is correct, by two rules.

    A bead is a tuple of source positions, and one of target positions. The result, float64 (B, 2),
    has a row per distinct bead except for the empty one, in order, 1 if correct, else 0. By the
    strict rule of the first column, the bead is gold. By the lax rule of the second, it is gold, or
    a gold bead has a source and a target sentence of it.
    """
    gold_set = set(gold)
    links = {link for bead in gold for link in product(*bead)}
    distinct = [bead for bead in dict.fromkeys(beads) if bead != ((), ())]
    strict = [bead in gold_set for bead in distinct]
    linked = [not links.isdisjoint(product(*bead)) for bead in distinct]
    return np.stack([strict, np.logical_or(strict, linked)], axis=1).astype(np.float64)


def score_beads(beads: Collection[Bead], gold: Collection[Bead]) -> list[dict[str, float]]:
    """Return precision, recall and F1, by the strict and by the lax rule.

    Each rule of ``judge_beads`` has a dictionary of ``precision``, ``recall`` and ``f1``. A share
    of no beads is 0. Precision counts all beads with sentences, also with an empty side. Recall
    counts only beads with two sides, as Vecalign's score.py does.
    """
    two_sided = ([bead for bead in side_beads if all(bead)] for side_beads in (gold, beads))
    judged = judge_beads(beads, gold), judge_beads(*two_sided)
    shares = ((rows.mean(axis=0) if len(rows) else np.zeros(2)).tolist() for rows in judged)
    return [
        {"precision": p, "recall": r, "f1": 2 * p * r / (p + r) if p + r else 0.0}
        for p, r in zip(*shares, strict=True)
    ]


def read_beads(path: Path) -> list[Bead]:
    """Read the beads of a file in Vecalign's format.

    A line is ``[i, j]:[k]`` with positions from 0, after which the cost may follow, as in ``[0]:[0,
    1]:0.4137``. Blank lines are skipped.

    Raises:
        ValueError: A line is malformed, or the file has no beads or cannot be read.
    """
    beads: list[Bead] = []
    for number, line in enumerate(map(str.strip, read_lines(path)), 1):
        if match := _LINE.fullmatch(line):
            beads.append((_positions(match[1]), _positions(match[2])))
        elif line:
            raise ValueError(
                f"{path} line {number}: expected positions such as [0, 1]:[0], not {line[:60]!r}"
            )
    if not beads:
        raise ValueError(f"{path}: no alignments; expected lines such as [0, 1]:[0]")
    return beads


def _positions(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(number) for number in text.replace(",", " ").split()))


def _check_beads(beads: Iterable[Bead], source: int, target: int, *, path: Path) -> None:
    for bead in beads:
        for positions, count in zip(bead, (source, target), strict=True):
            if positions and max(positions) >= count:
                raise ValueError(
                    f"{path}: position {max(positions)} (from 0) is beyond the {count} sentences "
                    "of its document; pass the alignment of these documents"
                )


def find_documents(directory: Path) -> dict[Path, tuple[Path, Path]]:
    """Find the gold alignments in a folder, with both documents.

    Keys are paths ``NAME.xxyy``, sorted, and values paths of the documents ``NAME.xx`` and
    ``NAME.yy``. A file without both is skipped.

    Raises:
        ValueError: ``directory`` is not a folder, or has no such alignment with both documents.
    """
    documents = {}
    for gold, match in files_matching(directory, r".+\.([a-z]{2})([a-z]{2})").items():
        source, target = (gold.with_suffix(f".{language}") for language in match.groups())
        if source.is_file() and target.is_file():
            documents[gold] = source, target
    if not documents:
        raise ValueError(
            f"{directory}: contains no aligned documents; expected NAME.de, NAME.en and the "
            "alignment NAME.deen"
        )
    return documents


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    holds = "NAME.xx, NAME.yy and gold NAME.xxyy of line numbers from 0, such as [0, 1]:[0]"
    add_directory(parser, holds=holds)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run as in ``TaskModule``, with scores by gold file in ``documents``."""
    files = find_documents(args.directory)
    texts = {path: [read_lines(file) for file in sides] for path, sides in files.items()}
    golds = {path: read_beads(path) for path in files}
    for path, gold in golds.items():
        _check_beads(gold, *map(len, texts[path]), path=path)
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    results: dict[str, Record] = {}
    for path, gold in golds.items():
        languages = [file.suffix[1:] for file in files[path]]
        strict, lax = score_beads(_align(texts[path], languages, encoder), gold)
        source, target = map(len, texts[path])
        counts = {"source": source, "target": target, "gold": len(gold)}
        show(TABLE.row(path.name, *counts.values(), *strict.values(), *lax.values()))
        results[path.name] = {**counts, "strict": strict, "lax": lax}
    digest = fingerprint(*(file for gold, sides in files.items() for file in (*sides, gold)))
    return sign(show, "align", {"documents": results}, sha256=digest, encoder=encoder.name)


def _align(sides: Sequence[list[str]], languages: Sequence[str], encoder: Encoder) -> list[Bead]:
    from miner.monotone.align import align  # loads Numba
    from miner.monotone.blocks import text_blocks

    source, target = (
        text_blocks(texts, model.encode, is_bag=isinstance(model, WordEncoder))
        for texts, model in zip(sides, encoders_of_languages(encoder, languages), strict=True)
    )
    return align(source, target).beads()
