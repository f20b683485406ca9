"""A finished run, read from its work folder."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from encoder import load_encoder
from encoder.words import WordEncoder, word_encoders
from eval.metrics.bucc import Candidates, Ids
from eval.runs.side import Side
from miner.arrays import FloatArray, IntArray, JudgedPairs, Pairs, load_array
from miner.choices import LINES, MONOTONE, SCORES
from miner.filters import Suspects, occurrences
from miner.given import lines_of
from miner.storage import layout
from miner.storage.artefacts import open_artefact, read_json
from miner.storage.layout import IDENTICAL, PAIRS, REJECTED, SIDES, WorkFolder
from miner.storage.pair_tables import pairs_of
from miner.storage.places import Place

WORDS, _ = SCORES
Column = TypeVar("Column")
Texts = tuple[list[str], list[str]]


class PairFile:
    """The file ``name`` of pairs in the artefact ``folder``.

    Pairs are best first. In the file ``REJECTED``, the filtered pairs and then the identical pairs
    are best first. The file is read when it is needed. If it changed, ValueError is raised.
    """

    def __init__(self, folder: Place, name: str = PAIRS) -> None:
        self._folder, self._name = folder, name

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs, in file order."""
        return pairs_of(self._file.read())

    @property
    def scores(self) -> FloatArray:
        """The scores of all pairs, float64 (P,), in file order."""
        scores: FloatArray = self._file.read(columns=["score"])["score"].to_numpy()
        return scores

    @property
    def digest(self) -> str:
        """The SHA-256, in hexadecimal, that the run recorded for the file."""
        return open_artefact(self._folder).files[self._name]

    def by_reason(self, count: int) -> dict[str, tuple[int, pa.Table]]:
        """Return the number of pairs with each value of ``reason``, and a sample.

        A reason is ``identical``, or all rejecting filters, joined by commas. The sample is a table
        of up to ``count`` pairs in file order, random but the same each time. KeyError says that
        the file is not ``REJECTED``.
        """
        table = self._file.read()
        samples = {}
        for reason in pc.unique(table["reason"]).to_pylist():
            rows = np.flatnonzero(pc.equal(table["reason"], reason))
            drawn = np.random.default_rng(0).permutation(rows)[:count]
            samples[reason] = len(rows), table.take(np.sort(drawn))
        return samples

    def find(self, source: int, target: int) -> list[dict[str, Any]]:
        """Return all pairs that contain the source row or the target row.

        Each is a dictionary of the file's columns, and of the position, from 0, as ``place``.
        """
        hits, start = [], 0
        for batch in self._file.iter_batches():
            of_source = pc.equal(batch["source_row"], source)
            mask = pc.or_(of_source, pc.equal(batch["target_row"], target))
            positions = (np.flatnonzero(mask) + start).tolist()
            pairs = zip(batch.filter(mask).to_pylist(), positions, strict=True)
            hits += [{**pair, "place": position} for pair, position in pairs]
            start += len(batch)
        return hits

    @cached_property
    def _file(self) -> pq.ParquetFile:
        return pq.ParquetFile(open_artefact(self._folder).checked(self._name))


class Run:
    """A finished run, with both corpora and its pairs.

    Attributes:
        directory: the work folder.
        summary, options: the contents of ``run.json``, and the options in it.
        by_words: whether the judge scored the pairs by their words.
        score_name: "score" or "margin", which orders pairs and is compared with the threshold.
        source, target: the ``Side`` of each corpus; ``sides`` is the tuple of both.
        chosen: ``PairFile`` of the pairs selected or given, before the judge and filters.
        judged: ``PairFile`` of judged pairs, without ``identical``; None without a judge.
        identical: ``PairFile`` of judged pairs with one text on both sides, or None likewise.
        rejected: ``PairFile`` of filtered pairs, which may lack pairs that score below the written
            ones, then identical pairs, with ``reason``; None if the run had no filters.
        output: ``PairFile`` of the written pairs.
    """

    def __init__(self, directory: Place, summary: dict[str, Any]) -> None:
        self.directory, self.summary = directory, summary
        self.options: dict[str, Any] = summary["options"]
        self.by_words = bool(self.options["score"] == WORDS)
        self.score_name = "score" if self.by_words else "margin"
        corpora = tuple(self.options.get("corpus_names", SIDES))
        work = self._work = WorkFolder(directory, corpora=corpora)
        self.source, self.target = (Side(work, name, summary) for name in SIDES)
        self.sides = self.source, self.target
        written = directory / summary["written"]
        self.chosen, self.output = PairFile(work.pairs), PairFile(written)
        self.judged = PairFile(work.judged) if self.by_words else None
        self.identical = PairFile(work.judged, IDENTICAL) if self.by_words else None
        self.rejected = PairFile(written, REJECTED) if "filters" in summary else None

    @property
    def pairs(self) -> Pairs:
        """All pairs that were written, best first."""
        return self.output.pairs

    @property
    def probabilities(self) -> FloatArray | None:
        """Each written pair's probability, float64 (P,), or None without a judge."""
        return self.pairs.probability if isinstance(self.pairs, JudgedPairs) else None

    @property
    def best_unwritten_score(self) -> float:
        """The best score below written pairs, or the threshold if higher.

        Only pairs below all written ones count. Either is -inf if there is none.
        """
        scores = (self.chosen if self.judged is None else self.judged).scores
        limit = self.options["threshold"]
        lower = scores[scores < self.pairs.score.min(initial=np.inf)]
        return float(lower.max(initial=-np.inf if limit is None else limit))

    def both(
        self, read: Callable[[Side, IntArray], Column], pairs: Pairs | None = None
    ) -> tuple[Column, Column]:
        """Call ``read`` with each side and its rows of ``pairs``, by default all."""
        pairs = self.pairs if pairs is None else pairs
        return read(self.source, pairs.source), read(self.target, pairs.target)

    @cached_property
    def _lines(self) -> IntArray | None:
        if self.options.get("alignment") != LINES:
            return None
        return load_array(open_artefact(self._work.pairs).checked(layout.LINES))

    def lines(self, sources: IntArray, targets: IntArray) -> IntArray | None:
        """Return the first line of each given pair, from 0, int64 (P,).

        The rows, (P,) each, are of chosen pairs. The result is None if no lines were rated.
        """
        return None if self._lines is None else lines_of(self._lines, sources, targets)

    def all_ids(self, pairs: Pairs | None = None) -> tuple[list[Ids], list[Ids]]:
        """Return the ids of both sides of pairs, with duplicates' ids.

        ``pairs`` are by default all written. A merged side has its first sentence's ids. If lines
        were rated, the first id is the first line's. Repeated ids of a side raise ValueError.
        """
        pairs = self.pairs if pairs is None else pairs
        lines = self.lines(pairs.source, pairs.target)
        return self.source.all_ids(pairs.source, lines), self.target.all_ids(pairs.target, lines)

    def pair_ids(self, pairs: Pairs | None = None) -> tuple[list[list[str]], list[list[str]]]:
        """Return the ids of the sentences of both sides of pairs.

        ``pairs`` are by default all written. A side has several sentences if they were merged. If
        lines were rated, ids are of the pair's first line, and repeated ids raise ValueError.
        """
        if self._lines is None:
            return self.both(Side.pair_ids, pairs)
        source, target = ([[first_id] for first_id, *_ in side] for side in self.all_ids(pairs))
        return source, target

    @cached_property
    def texts(self) -> Texts:
        """The texts of all written pairs, sources first, by ``Side.pair_texts``."""
        return self.both(Side.pair_texts)

    @cached_property
    def docs(self) -> Texts:
        """The documents of all written pairs, sources first, "" for none."""
        return self.both(Side.docs)

    @cached_property
    def word_encoders(self) -> tuple[WordEncoder, ...]:
        """The word encoders of the source and the target side.

        Errors of ``load_encoder`` and ``word_encoders`` are raised.
        """
        has_vectors = self.summary["encoder"] == "precomputed"
        encoder = None if has_vectors else load_encoder(self.options["encoder"])
        return word_encoders(encoder, self.languages)

    @property
    def languages(self) -> list[str | None]:
        """The languages of source and target, None if not recognised."""
        return [self.summary[side]["language"]["decided"] for side in SIDES]

    @cached_property
    def lists(self) -> tuple[IntArray, IntArray]:
        """The number of neighbour lists that contain each row, int64.

        The first array is by source row, the second by target row, up to the last searched row.
        """
        return (
            occurrences(self.target.neighbours.ids, int(self.source.searched[-1]) + 1),
            occurrences(self.source.neighbours.ids, int(self.target.searched[-1]) + 1),
        )

    @cached_property
    def suspects(self) -> Suspects:
        """The written pairs, as input of filters that need no languages."""
        return Suspects.of(
            *self.texts, lists=(self.lists[0][self.pairs.source], self.lists[1][self.pairs.target])
        )

    def candidates(self) -> Candidates:
        """Return written pairs as candidates, ValueError if an id is repeated."""
        sources, targets = self.all_ids()
        if self.options.get("alignment") == MONOTONE:
            sources, targets = ([*map(tuple, side)] for side in self.pair_ids())
        return Candidates(scores=self.pairs.score, sources=sources, targets=targets)


def open_run(directory: Place) -> Run:
    """Open a finished run in a work folder.

    Raises:
        OSError: A file cannot be read, or a remote folder not be reached (``PlaceError``).
        ValueError: The run is missing, unfinished, damaged, cleaned or of an earlier version.
    """
    work = WorkFolder(directory)
    if not work.summary.is_file():
        found = "contains no finished run" if directory.is_dir() else "is a file"
        problem = found if directory.exists() else "folder not found"
        part = " (of --languages: its subfolder mined/XX-YY)"
        raise ValueError(f"{directory}: {problem}; pass the --work-dir of a finished run{part}")
    summary = read_json(work.summary)
    if "written" not in summary:
        raise ValueError(
            f"{directory}: the run is by an earlier version of Adit, which selected pairs "
            "differently; rerun its command (nothing is encoded or searched again)"
        )
    if not work.pairs.is_dir():
        raise ValueError(
            f"{directory}: 'adit clean' removed the files that this command needs; rerun the "
            "run's command"
        )
    return Run(directory, summary)
