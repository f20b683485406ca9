"""The score stages: the chosen pairs in batches, each scored by its words and all else known of it.

Scores are the judge's. What is usual in a run, which pairs are measured by, is decided before.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.arrays import Direction, FloatArray, JudgedPairs, Pairs
from miner.judge.features import USUAL_PAIRS, Near, Texts, Usual, features, read_texts, spacing_of
from miner.judge.model import load_judge
from miner.score_ranges import sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, SCORED, SIDES
from miner.storage.pair_tables import numbers_schema, pairs_of
from miner.threads import all_threads, even_blocks
from pipelines.context import RunContext
from pipelines.references import ChosenPairs, PairBatch, ScoredPairs
from pipelines.stages.export import EXPORT_ROWS, completed_pairs

# Pairs of a batch at most, where there are many: they take a worker a minute. Not what memory
# has room for at the time, or a run that goes on would cut others.
BATCH = 1 << 20
BATCHES = 4  # or a multiple, if they have ``EXPORT_ROWS`` pairs or more: workers end together


def cut_pairs(run: RunContext, chosen: ChosenPairs) -> list[PairBatch]:
    """Cut the chosen pairs into batches.

    Seals ``usual``: what is usual of the first pairs, the best by margin. Without
    ``options.by_words`` there is one batch, which nothing is to be done to.
    """
    if not run.options.by_words:
        return [PairBatch(chosen=chosen, index=0, of=1, rows=range(0), usual=None)]
    rows = pq.read_metadata(chosen.pairs.file(PAIRS)).num_rows

    def write(draft: Draft) -> Mapping[str, Any]:
        if not rows:
            return {}
        first = completed_pairs(run, chosen, PAIRS, rows=range(min(rows, USUAL_PAIRS)))
        lists = (found.load(run.options.scopes[-1]) for found in chosen.shards)
        return asdict(Usual.of(_texts(run, pa.concat_tables(first)), spacing_of(lists)))

    with all_threads():
        usual = produce(run.folder.usual, key=scores_key(run, chosen, "usual"), write=write)
    count = BATCHES * max(1, -(-rows // (BATCHES * BATCH)))
    size = max(EXPORT_ROWS, -(-rows // count))
    cut = even_blocks(rows, size) or [slice(0, 0)]
    return [
        PairBatch(
            chosen=chosen,
            index=index,
            of=len(cut),
            rows=range(part.start, part.stop),
            usual=usual,
        )
        for index, part in enumerate(cut)
    ]


def score_pairs(run: RunContext, batch: PairBatch) -> ScoredPairs:
    """Score the pairs of a batch; seals ``scored/NNNNN``, sorted by their scores."""
    if batch.usual is None:
        return ScoredPairs(batch=batch, scores=None)
    rows, usual, chosen = batch.rows, batch.usual.facts, batch.chosen
    key = scores_key(run, chosen, "score", rows=[rows.start, rows.stop], usual=usual)

    def write(draft: Draft) -> Mapping[str, Any]:
        numbers, scores = [numbers_schema().empty_table()], [np.empty(0)]
        part = f"{batch.index + 1}/{batch.of}" if batch.of > 1 else ""
        with run.monitor.stage("score", len(rows), "pairs", part) as meter:
            for table in completed_pairs(run, chosen, PAIRS, rows=rows):
                numbers.append(table.select(numbers[0].schema.names))
                texts = _texts(run, table, meter.advance)
                # Merged sentences are in no list of neighbours.
                near = None if chosen.merges else Near.of(pairs_of(table))
                scores.append(load_judge().scores(features(texts, near, Usual(**usual))))
        with draft.file(SCORED) as path:
            pairs = _judged(pairs_of(pa.concat_tables(numbers)), np.concatenate(scores))
            sort_pairs(path, pairs, Direction.BOTH)
        return {}

    folder = run.folder.scored(batch.index)
    return ScoredPairs(batch=batch, scores=produce(folder, key=key, write=write))


def scores_key(run: RunContext, chosen: ChosenPairs, stage: str, **more: object) -> str:
    """Return the key of what a stage makes of pairs, their texts and neighbours by the judge."""
    return content_key(
        stage,
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        sentences=[found.embedded.shard.digest for found in chosen.shards],
        neighbours=[lists for found in chosen.shards for lists in found.content],
        maker=run.words_name,
        judge=load_judge().name,
        **more,
    )


def _texts(
    run: RunContext, table: pa.Table, progress: Callable[[int], object] = lambda pairs: None
) -> Texts:
    texts = (table[f"{side}_text"].to_pylist() for side in SIDES)
    return read_texts(run.word_encoders(), *texts, progress=progress)


def _judged(pairs: Pairs, scores: FloatArray) -> JudgedPairs:
    known = {field.name: getattr(pairs, field.name) for field in fields(Pairs)}
    known |= {"score": scores, "margin": pairs.score, "probability": scores}  # not known yet
    return JudgedPairs(**known)
