"""Write the lines of a parallel corpus in their order, with their scores."""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from miner.arrays import IntArray, load_array
from miner.given import NO_SENTENCE
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import IDENTICAL, LINES, PAIRS, REJECTED, SIDES
from miner.storage.pair_files.base import FilePair, PairFile
from miner.storage.writers import on_a_line
from pipelines.context import RunContext
from pipelines.references import ChosenPairs
from pipelines.stages.given import rows_of_lines

COLUMNS = ("score", "probability", "reason")
SCORES, PROBABILITIES, REASONS = "scores.npy", "probabilities.npy", "reasons.npy"
# Reasons other than filters and rejected lines; pairs that are written have none.
NOT_KEPT = "not kept"  # by --fdr or --threshold
UNUSABLE = "no sentence"
SAME_TEXT = "identical"
NEAR_COPY = "near-copy"


def order_lines(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Save the score, probability and reason of each line, in order.

    ``chosen``, of ``adit rate``, is returned. The artefact is ``ordered`` in the work folder.
    Duplicate pairs have the score of the first. The reason is "" for pairs that are kept. Lines
    that lack a sentence have NaN as score and probability. With scores by margin, each probability
    is NaN, and so is each score at or below ``threshold``.
    """
    lines = chosen.lines
    assert lines is not None
    key = content_key(
        "order lines",
        lines=lines.files[LINES],
        judged=chosen.identical and sorted(chosen.identical.files.items()),
        kept=sorted(chosen.pairs.files.items()),
        near=run.options.near_duplicates,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        verdicts = _verdicts(run, chosen, load_array(lines.file(LINES)))
        places, unusable = _places(chosen, verdicts)
        draft.array(SCORES, verdicts.scores[places])
        draft.array(PROBABILITIES, verdicts.probabilities[places])
        reasons = verdicts.reasons[places]
        for line, why in unusable.items():
            reasons[line] = verdicts.number(why)
        draft.array(REASONS, reasons)
        return {"reasons": verdicts.texts}

    produce(run.folder.ordered, key=key, write=write)
    return chosen


class _Verdicts:
    # Of each pair, last of lines without one.
    def __init__(self, pairs: IntArray) -> None:
        self._width = int(pairs[1].max(initial=0)) + 1
        self._codes = pairs[0] * self._width + pairs[1]
        self.scores, self.probabilities = (np.full(len(self._codes) + 1, np.nan) for _ in range(2))
        self.texts = [NOT_KEPT, UNUSABLE]
        self.reasons = np.zeros(len(self._codes) + 1, dtype=np.int32)
        self.reasons[-1] = self.number(UNUSABLE)

    def number(self, reason: str) -> int:
        if reason not in self.texts:
            self.texts.append(reason)
        return self.texts.index(reason)

    def places(self, source: IntArray, target: IntArray) -> IntArray:
        return np.searchsorted(self._codes, source * self._width + target)

    def batches(self, artefact: Artefact | None, name: str) -> Iterator[tuple[IntArray, Any]]:
        if artefact is None:
            return
        with pq.ParquetFile(artefact.file(name)) as file:
            for batch in file.iter_batches():
                source, target = (batch[f"{side}_row"].to_numpy() for side in SIDES)
                yield self.places(source, target), batch

    def score(self, artefact: Artefact | None, name: str, reason: str) -> None:
        for places, batch in self.batches(artefact, name):
            self.reasons[places] = self.number(reason)
            self.scores[places] = batch["score"].to_numpy()
            if "probability" in batch.schema.names:
                self.probabilities[places] = batch["probability"].to_numpy()


def _verdicts(run: RunContext, chosen: ChosenPairs, pairs: IntArray) -> _Verdicts:
    verdicts, judged = _Verdicts(pairs), chosen.identical
    verdicts.score(judged or chosen.lines, PAIRS, NOT_KEPT)
    verdicts.score(judged, IDENTICAL, SAME_TEXT)
    lowest = np.inf
    for places, _ in verdicts.batches(chosen.pairs, PAIRS):
        verdicts.reasons[places] = verdicts.number("")
        lowest = min(lowest, verdicts.scores[places].min(initial=np.inf))
    if run.options.near_duplicates:
        is_copy = (verdicts.reasons == 0) & (verdicts.scores >= lowest)
        verdicts.reasons[is_copy] = verdicts.number(NEAR_COPY)
    for places, batch in verdicts.batches(chosen.rejected, REJECTED):
        numbers = map(verdicts.number, batch["reason"].to_pylist())
        verdicts.reasons[places] = np.fromiter(numbers, np.int32, count=len(places))
    return verdicts


def _places(chosen: ChosenPairs, verdicts: _Verdicts) -> tuple[IntArray, dict[int, str]]:
    sides: list[IntArray] = []
    unusable: dict[int, str] = {}
    for side in SIDES:
        shards = chosen.of_side(side)
        sides.append(rows_of_lines(shards))
        rejected = pq.read_table(shards[0].shard.corpus.file(REJECTED), columns=["row", "why"])
        columns = (rejected[name].to_pylist() for name in ("row", "why"))
        unusable |= dict(zip(*columns, strict=True))
    source, target = sides
    whole = (source != NO_SENTENCE) & (target != NO_SENTENCE)
    places = np.full(len(source), -1)
    places[whole] = verdicts.places(source[whole], target[whole])
    return places, unusable


class RatedLine(NamedTuple):
    """A line of a file of pairs, with its rating.

    ``reason`` is why the pair is not kept, or "". Without a pair, score and probability are NaN.
    With scores by margin, the probability is NaN, and so is a score at or below ``--threshold``.
    """

    pair: FilePair
    score: float
    probability: float
    reason: str


def ordered_lines(pairs: PairFile, ordered: Artefact) -> Iterator[RatedLine]:
    """Yield the lines of a file of pairs, with the ratings that were saved.

    ``ordered`` is the artefact that ``order_lines`` saved. Different numbers of lines raise
    ValueError, at the end. Errors of ``PairFile.read`` are raised.
    """
    columns = (
        load_array(ordered.file(name), mmap_mode="r") for name in (SCORES, PROBABILITIES, REASONS)
    )
    reasons = ordered.facts["reasons"]
    for pair, score, probability, reason in zip(pairs.read(), *columns, strict=True):
        yield RatedLine(pair, score, probability, pair.problem or reasons[reason])


def write_lines(
    file: IO[bytes], header: str | None, lines: Iterable[RatedLine], *, add_texts: bool
) -> None:
    """Write lines with their score, probability and reason to an open file.

    Tabs separate cells. Numbers have 6 digits, or none if NaN. A ``header`` gets the new names. A
    pair that is not a line of its file is written as both texts. ``add_texts`` adds both to each.
    """
    if header is not None:
        _write_cells(file, header, *COLUMNS, *(SIDES if add_texts else ()))
    for pair, score, probability, reason in lines:
        both = [*map(on_a_line, pair.texts or ("", ""))]
        line = "\t".join(both) if pair.raw is None else pair.raw
        numbers = (f"{value:.6g}".replace("nan", "") for value in (score, probability))
        _write_cells(file, line, *numbers, reason, *(both if add_texts else ()))


def _write_cells(file: IO[bytes], *cells: str) -> None:
    file.write("\t".join(cells).encode(errors="surrogateescape") + b"\n")
