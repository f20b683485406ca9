"""What would be mined for sentences of likely pairs if their translations were not there."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.parquet as pq

from miner.arrays import FloatArray, IntArray, Mask, Neighbours
from miner.judge.features import Near, Usual, features, read_texts
from miner.judge.model import load_judge
from miner.judge.prior import best_left
from miner.storage.layout import PAIRS, SOURCE, TARGET
from pipelines.context import RunContext
from pipelines.references import ChosenPairs, ShardNeighbours
from pipelines.stages.export import texts_of


def left_out_scores(
    run: RunContext, chosen: ChosenPairs, likely: Mapping[str, IntArray], usual: Usual
) -> FloatArray:
    """Return the judge's scores of what is mined without each other (``best_left``).

    Monotone alignments choose beads of sentences, not the best of a list, so there are none.

    Args:
        run: the run.
        chosen: its pairs, as they were chosen by margin.
        likely: rows of both sides of pairs that are likely right.
        usual: what is usual in the run.
    """
    if chosen.merges is not None:
        return np.empty(0)
    parts = []
    for own, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        lists = lists_of(run, chosen.of_side(own), likely[own])
        theirs = _means(run, chosen.of_side(other), lists.ids)
        taken = _taken(chosen, other, lists.ids)
        left = best_left(likely[other], lists, theirs, taken, margin=run.options.margin)
        rows = {own: likely[own][left.queries], other: left.rows}
        means = {own: left.own_mean, other: left.other_mean}
        parts.append((rows[SOURCE], rows[TARGET], left.cosine, means[SOURCE], means[TARGET]))
    source, target, *near = map(np.concatenate, zip(*parts, strict=True))
    texts = [
        texts_of([found.embedded.shard for found in chosen.of_side(side)], rows)
        for side, rows in ((SOURCE, source), (TARGET, target))
    ]
    known = read_texts(run.word_encoders(), *texts)
    return load_judge().scores(features(known, Near(*near), usual))


def lists_of(run: RunContext, shards: Sequence[ShardNeighbours], rows: IntArray) -> Neighbours:
    """Return the neighbours of some rows of a side, in their order."""
    found = Neighbours.none(len(rows), run.options.k)
    for shard in shards:
        wanted, places = _places(shard, rows)
        part = shard.load(run.options.scopes[0]).part(places)
        found.ids[wanted, : part.ids.shape[1]] = part.ids
        found.cosines[wanted, : part.ids.shape[1]] = part.cosines
    return found


def _means(run: RunContext, shards: Sequence[ShardNeighbours], rows: IntArray) -> FloatArray:
    """Return what margins are measured against at some rows, in the shape of these; 0 at -1."""
    means = np.zeros(rows.shape)
    for shard in shards:
        wanted, places = _places(shard, rows)
        means[wanted] = shard.load(run.options.scopes[-1]).part(places).means()
    return means


def _places(shard: ShardNeighbours, rows: IntArray) -> tuple[Mask, IntArray]:
    """Return which of the rows are in a shard, and where."""
    own = shard.embedded.row_ids()
    places = np.minimum(np.searchsorted(own, rows), max(0, len(own) - 1))
    wanted = own[places] == rows if len(own) else np.zeros(rows.shape, dtype=np.bool_)
    return wanted, places[wanted]


def _taken(chosen: ChosenPairs, side: str, rows: IntArray) -> FloatArray:
    """Return the best margin of the mined pairs that some rows of a side have, -inf if none."""
    if not rows.size:
        return np.empty(rows.shape)
    distinct, places = np.unique(rows, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    with pq.ParquetFile(chosen.pairs.file(PAIRS)) as file:
        for batch in file.iter_batches(columns=[f"{side}_row", "score"]):
            mined = batch[f"{side}_row"].to_numpy()
            at = np.minimum(np.searchsorted(distinct, mined), len(distinct) - 1)
            hits = distinct[at] == mined
            np.maximum.at(best, at[hits], batch["score"].to_numpy()[hits])
    return best[places].reshape(rows.shape)
