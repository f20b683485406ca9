"""A finished mining run, read from the folder that a run with ``--work-dir`` left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from eval.metrics.bucc import Candidates
from eval.runs.side import Side
from miner.arrays import AlignedPairs, Pairs
from miner.filters import Suspects, occurrences, usual_ratio
from miner.storage.artefacts import open_artefact
from miner.storage.layout import PAIRS, REJECTED, SIDES, WorkFolder
from miner.storage.pair_numbers import pairs_of
from miner.storage.places import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: what ``run.json`` says, its pairs, best first, and both corpora."""

    directory: Place
    summary: dict[str, Any]
    source: Side
    target: Side

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run."""
        options: dict[str, Any] = self.summary["options"]
        return options

    @property
    def score_name(self) -> str:
        """What the scores of its pairs are, by which they are ordered and a threshold decides."""
        return "aligned score" if self.options["align"] else "margin"

    @cached_property
    def chosen(self) -> Pairs:
        """The pairs as chosen by their margins, before words and filters were looked at."""
        return self._read(WorkFolder(self.directory).pairs, PAIRS)[0]

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of the output."""
        return self._read(self._last, PAIRS)[0]

    @cached_property
    def rejected(self) -> tuple[Pairs, list[str]]:
        """The pairs that filters rejected, and the names of these filters."""
        if "filters" not in self.summary:
            return self.pairs.take(np.empty(0, dtype=np.int64)), []
        return self._read(self._last, REJECTED)

    @property
    def margins(self) -> NDArray[np.float64]:
        """The margins of the pairs: float64 (P,)."""
        return self.pairs.margin if isinstance(self.pairs, AlignedPairs) else self.pairs.score

    @cached_property
    def texts(self) -> tuple[list[str], list[str]]:
        """The sources and the targets of all pairs."""
        return self.source.texts(self.pairs.source), self.target.texts(self.pairs.target)

    @cached_property
    def lists(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many neighbour lists of the other side each row of either file is in."""
        return (
            occurrences(self.target.neighbours.ids, int(self.source.searched[-1]) + 1),
            occurrences(self.source.neighbours.ids, int(self.target.searched[-1]) + 1),
        )

    @cached_property
    def suspects(self) -> Suspects:
        """The pairs as filters see them."""
        return Suspects(
            source=self.texts[0],
            target=self.texts[1],
            ratio=usual_ratio(*self.texts),
            lists=(self.lists[0][self.pairs.source], self.lists[1][self.pairs.target]),
        )

    def candidates(self) -> Candidates:
        """Return the pairs as ``eval.metrics.bucc`` scores them."""
        return Candidates(
            scores=self.pairs.score,
            sources=self.source.all_ids(self.pairs.source),
            targets=self.target.all_ids(self.pairs.target),
        )

    @property
    def _last(self) -> Place:
        """The artefact of the last stage that chose among the pairs."""
        work = WorkFolder(self.directory)
        if "filters" in self.summary:
            return work.filtered
        return work.aligned if self.options["align"] else work.pairs

    def _read(self, folder: Place, file: str) -> tuple[Pairs, list[str]]:
        """Read pairs, and the reasons they were rejected for, if there are any."""
        table = pq.read_table(open_artefact(folder).checked(file))
        reasons = table["reason"].to_pylist() if "reason" in table.column_names else []
        return pairs_of(table), reasons


def open_run(directory: Place) -> Run:
    """Open a finished run; little is read before it is asked for.

    Raises:
        ValueError: there is none, or it was cleaned.
    """
    work = WorkFolder(directory)
    if not work.summary.is_file():
        raise ValueError(
            f"{directory}: no finished run in it; make one with adit mine ... --work-dir DIR"
        )
    summary = json.loads(work.summary.read_text(encoding="utf-8"))
    if not work.pairs.is_dir():
        raise ValueError(
            f"{directory}: adit clean removed what this needs of the run that was there; "
            "give the run's command again"
        )
    source, target = (Side(work, name, summary["options"]) for name in SIDES)
    return Run(directory=directory, summary=summary, source=source, target=target)
