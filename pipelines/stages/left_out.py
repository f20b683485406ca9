"""What would be mined for sentences of certain pairs if their translations were not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.arrays import Neighbours
from miner.left_out import CERTAIN, best_left, certain_places, check_translated
from miner.score_calibration import Calibration
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import LEFT_OUT, PAIRS, SIDES, SOURCE, TARGET
from miner.word_match import align_texts, aligned_scores
from pipelines.context import RunContext
from pipelines.references import ChosenPairs, ShardNeighbours
from pipelines.stages.export import texts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    FloatArray = NDArray[np.float64]


def left_out_scores(run: RunContext, chosen: ChosenPairs, calibration: Calibration) -> FloatArray:
    """Return the scores by words of what is mined without the partner (``miner.left_out``).

    Seals ``left_out``. ``calibration`` says which pairs are certain. Monotone alignments choose
    beads of sentences, not the best of a list, so there are none.
    """
    if chosen.merges is not None:
        return np.empty(0)
    key = content_key(
        "left out",
        pairs=chosen.pairs.files[PAIRS],
        neighbours=[found.content for found in chosen.shards],
        maker=run.words_name,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        draft.array(LEFT_OUT, _scores(run, chosen, calibration))
        return {}

    scores: FloatArray = np.load(produce(run.folder.left_out, key=key, write=write).file(LEFT_OUT))
    return scores


def _scores(run: RunContext, chosen: ChosenPairs, calibration: Calibration) -> FloatArray:
    certain = _certain(chosen, calibration)
    check_translated(*_texts(chosen, certain))
    words, parts = run.word_encoders(), []
    for own, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        lists = lists_of(run, chosen.of_side(own), certain[own])
        theirs = _means(run, chosen.of_side(other), lists.ids)
        taken = _taken(chosen, other, lists.ids)
        mined = best_left(certain[other], lists, theirs, taken, margin=run.options.margin)
        rows = {own: certain[own][mined.queries], other: mined.rows}
        matches = align_texts(words, *_texts(chosen, rows))
        usual = chosen.pairs.facts["usual_log_ratio"]
        parts.append(aligned_scores(mined.scores, matches, usual=usual))
    return np.concatenate(parts)


def _texts(chosen: ChosenPairs, rows: Mapping[str, Rows]) -> list[list[str]]:
    """Return the sentences of both sides at some rows."""
    return [
        texts_of([found.embedded.shard for found in chosen.of_side(side)], rows[side])
        for side in SIDES
    ]


def _certain(chosen: ChosenPairs, calibration: Calibration) -> dict[str, Rows]:
    """Return the rows on each side of some pairs that are as good as certain."""
    likely, parts = [], []
    for batch in _batches(chosen, "score", *map(_row, SIDES)):
        probabilities = calibration.probability(batch["score"].to_numpy())
        likely.append(probabilities[probabilities >= CERTAIN])
        parts.append(batch.slice(0, len(likely[-1])))
        if len(likely[-1]) < len(batch):
            break  # the best come first
    places = pa.array(certain_places(np.concatenate(likely)))
    certain = pa.Table.from_batches(parts).take(places)
    return {side: certain[_row(side)].to_numpy() for side in SIDES}


def _batches(chosen: ChosenPairs, *columns: str) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(chosen.pairs.file(PAIRS)) as file:
        yield from file.iter_batches(columns=list(columns))


def _row(side: str) -> str:
    return f"{side}_row"


def lists_of(run: RunContext, shards: Sequence[ShardNeighbours], rows: Rows) -> Neighbours:
    """Return the neighbours of some rows of a side, in their order."""
    found = Neighbours.none(len(rows), run.options.k)
    for shard in shards:
        wanted, places = _places(shard, rows)
        part = shard.load(run.options.scopes[0]).part(places)
        found.ids[wanted, : part.ids.shape[1]] = part.ids
        found.cosines[wanted, : part.ids.shape[1]] = part.cosines
    return found


def _means(run: RunContext, shards: Sequence[ShardNeighbours], rows: Rows) -> FloatArray:
    """Return what margins are measured against at some rows, in the shape of these; 0 at -1."""
    means = np.zeros(rows.shape)
    for shard in shards:
        wanted, places = _places(shard, rows)
        means[wanted] = shard.load(run.options.scopes[-1]).part(places).means()
    return means


def _places(shard: ShardNeighbours, rows: Rows) -> tuple[NDArray[np.bool_], Rows]:
    """Return which of the rows are in a shard, and where."""
    own = shard.embedded.row_ids()
    places = np.minimum(np.searchsorted(own, rows), max(0, len(own) - 1))
    wanted = own[places] == rows if len(own) else np.zeros(rows.shape, dtype=np.bool_)
    return wanted, places[wanted]


def _taken(chosen: ChosenPairs, side: str, rows: Rows) -> FloatArray:
    """Return the best margin of the mined pairs that some rows of a side have, -inf if none."""
    if not rows.size:
        return np.empty(rows.shape)
    distinct, places = np.unique(rows, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    for batch in _batches(chosen, _row(side), "margin"):
        mined = batch[_row(side)].to_numpy()
        at = np.minimum(np.searchsorted(distinct, mined), len(distinct) - 1)
        hits = distinct[at] == mined
        np.maximum.at(best, at[hits], batch["margin"].to_numpy()[hits])
    return best[places].reshape(rows.shape)
