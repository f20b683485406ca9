"""A finished mining run, read from the folder that ``mine-corpus --work-dir`` left."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.metrics.bucc import Candidates, Ids
from miner.arrays import Neighbours, Pairs
from miner.filters import Suspects, occurrences, usual_ratio
from miner.storage.artefacts import Artefact, open_artefact
from miner.storage.layout import (
    DUPLICATES,
    PAIRS,
    REJECTED,
    ROWS,
    SIDES,
    VECTORS,
    WorkFolder,
    list_files,
    shard_file,
    shard_name,
)
from miner.storage.pair_numbers import pairs_of
from miner.storage.places import Place

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Side:
    """One corpus of a run: its unique sentences, ascending by row of the file.

    ``rows`` is int64 (S,); ``ids``, ``texts`` and ``repeats`` (the ids of what repeats each) have
    as many items. ``searched`` (int64, ascending) are the rows that have a vector, ``neighbours``
    the candidates of each of them in the other corpus, by row, and ``means`` (float64) what their
    margins are measured against.
    """

    rows: NDArray[np.int64]
    ids: list[str]
    texts: list[str]
    repeats: dict[int, list[str]]
    searched: NDArray[np.int64]
    neighbours: Neighbours
    means: NDArray[np.float64]
    embedded: list[Artefact]

    def text(self, row: int) -> str:
        """The sentence at a row of the file."""
        return self.texts[self.place(row)]

    def id(self, row: int) -> str:
        """Its id."""
        return self.ids[self.place(row)]

    def all_ids(self, row: int) -> Ids:
        """Its id and those of its repetitions."""
        return (self.id(row), *self.repeats.get(row, ()))

    def place(self, row: int) -> int:
        """The position of a row among ``rows``."""
        return int(np.searchsorted(self.rows, row))

    @cached_property
    def row_by_id(self) -> dict[str, int]:
        """The row of the sentence that each id names or repeats."""
        rows = dict(zip(self.ids, self.rows.tolist(), strict=True))
        for row, names in self.repeats.items():
            rows |= dict.fromkeys(names, row)
        return rows

    def vectors(self) -> NDArray[np.float32]:
        """The vectors of the searched rows: float32 (N, D)."""
        parts = [np.load(artefact.file(VECTORS)) for artefact in self.embedded]
        vectors: NDArray[np.float32] = np.concatenate(parts).astype(np.float32)
        return vectors


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: what ``run.json`` says, its pairs, best first, and both corpora.

    ``chosen`` are the pairs as they were chosen by their margins, which are their scores, before
    words and filters were looked at; ``rejected`` those that filters rejected, and ``reasons`` the
    names of these.
    """

    directory: Place
    summary: dict[str, Any]
    chosen: Pairs
    pairs: Pairs
    rejected: Pairs
    reasons: list[str]
    source: Side
    target: Side

    @cached_property
    def texts(self) -> tuple[list[str], list[str]]:
        """The sources and the targets of all pairs."""
        return (
            [self.source.text(row) for row in self.pairs.source.tolist()],
            [self.target.text(row) for row in self.pairs.target.tolist()],
        )

    @cached_property
    def lists(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many neighbour lists of the other side each row of either file is in."""
        return (
            occurrences(self.target.neighbours.ids, int(self.source.rows[-1]) + 1),
            occurrences(self.source.neighbours.ids, int(self.target.rows[-1]) + 1),
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
        """The pairs as ``eval.metrics.bucc`` scores them."""
        return Candidates(
            scores=self.pairs.score,
            sources=[self.source.all_ids(row) for row in self.pairs.source.tolist()],
            targets=[self.target.all_ids(row) for row in self.pairs.target.tolist()],
        )


def open_run(directory: Place) -> Run:
    """Read a finished run.

    Raises:
        ValueError: there is none, or something in it is damaged.
    """
    import pyarrow.parquet as pq

    work = WorkFolder(directory)
    if not work.summary.is_file():
        raise ValueError(
            f"{directory}: no finished run in it; make one with mine-corpus ... --work-dir DIR"
        )
    summary = json.loads(work.summary.read_text(encoding="utf-8"))
    source, target = (_side(work, name, summary["options"]) for name in SIDES)
    chosen = pairs_of(pq.read_table(open_artefact(work.pairs).file(PAIRS)))
    pairs, rejected, reasons = _kept(work, summary)
    return Run(
        directory=directory,
        summary=summary,
        chosen=chosen,
        pairs=pairs,
        rejected=rejected,
        reasons=reasons,
        source=source,
        target=target,
    )


def _side(work: WorkFolder, name: str, options: dict[str, Any]) -> Side:
    import pyarrow as pa
    import pyarrow.parquet as pq

    corpus = open_artefact(work.sentences(name))
    count = len(corpus.facts["shards"])
    shards = [shard_name(name, index) for index in range(count)]
    columns = ["row", "id", "text"]
    sentences = pa.concat_tables(
        [pq.read_table(corpus.file(shard_file(index)), columns=columns) for index in range(count)]
    )
    embedded = [open_artefact(work.embeddings(shard)) for shard in shards]

    def joined(artefacts: list[Artefact], file: str) -> NDArray[Any]:
        return np.concatenate([np.load(artefact.file(file)) for artefact in artefacts])

    def nearest(scope: str) -> Neighbours:
        found = [open_artefact(work.neighbours(shard, scope)) for shard in shards]
        ids, cosines = (joined(found, file) for file in list_files(name))
        return Neighbours(ids=ids, cosines=cosines)

    return Side(
        rows=sentences["row"].to_numpy(),
        ids=sentences["id"].to_pylist(),
        texts=sentences["text"].to_pylist(),
        repeats=_repeats(pq.read_table(corpus.file(DUPLICATES))),
        searched=joined(embedded, ROWS),
        neighbours=nearest(options["scope"]),
        means=nearest(options["margin_scope"] or options["scope"]).means(),
        embedded=embedded,
    )


def _repeats(table: pa.Table) -> dict[int, list[str]]:
    repeats: defaultdict[int, list[str]] = defaultdict(list)
    for row, name in zip(table["first_row"].to_pylist(), table["id"].to_pylist(), strict=True):
        repeats[row].append(name)
    return dict(repeats)


def _kept(work: WorkFolder, summary: dict[str, Any]) -> tuple[Pairs, Pairs, list[str]]:
    """The pairs, those that filters rejected, and the reasons of these."""
    import pyarrow.parquet as pq

    filtered = "filters" in summary
    chosen = work.aligned if summary["options"]["align"] else work.pairs
    artefact = open_artefact(work.filtered if filtered else chosen)
    kept = pq.read_table(artefact.file(PAIRS))
    if not filtered:
        return pairs_of(kept), pairs_of(kept.slice(0, 0)), []
    rejected = pq.read_table(artefact.file(REJECTED))
    return pairs_of(kept), pairs_of(rejected), rejected["reason"].to_pylist()
