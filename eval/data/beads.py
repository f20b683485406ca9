"""Alignments of two documents as Vecalign writes them: ``[i, j]:[k]`` a line, from 0.

A third part, the cost, may follow: ``[0]:[0, 1]:0.4137``. An empty list says that nothing is
aligned with the other one.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from eval.data.textfiles import read_lines
from eval.metrics.beads import Bead

_LINE = re.compile(r"\[([\d, ]*)\]:\[([\d, ]*)\](?::\S*)?")


def read_beads(path: Path) -> list[Bead]:
    """Read the beads of a file; blank lines mean nothing.

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
