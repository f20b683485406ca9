"""The judge stage: the chosen pairs scored by their words and all else that is known of them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from miner.arrays import Direction, FloatArray, JudgedPairs
from miner.judge.features import Usual
from miner.judge.model import load_judge
from miner.judge.prior import LIKELY, Probabilities, likely_places
from miner.score_ranges import Sorted, merge_in_ranges
from miner.storage.artefacts import Draft, produce
from miner.storage.layout import LEFT_OUT, PAIRS, SCORED, SIDES
from miner.storage.pair_tables import numbers_schema, table_of
from miner.threads import all_threads
from pipelines.context import RunContext
from pipelines.options import MARGIN, WORDS
from pipelines.references import ChosenPairs, ScoredPairs, check_whole
from pipelines.stages.left_out import left_out_scores
from pipelines.stages.score import scores_key
from pipelines.stages.select import range_pairs

logger = logging.getLogger(__name__)


def decide_score(run: RunContext) -> RunContext:
    """Return the run with the score of each pair decided: by words where they can be compared.

    Raises:
        ValueError: they cannot, and the options ask for them.
    """
    parts = {}
    for name in run.job.pairs:
        own = run.of(name)
        parts[name] = replace(own.options, score=_decided_score(own, f"{name}: " if name else ""))
    return run.decided(parts)


def _decided_score(run: RunContext, about: str) -> str:
    options = run.options
    why = None
    if options.score != MARGIN:
        try:
            run.word_encoders()
        except ValueError as error:
            why = str(error)
    if why and (options.by_words or options.fdr is not None):
        raise ValueError(f"{about}{'--fdr' if options.fdr else '--score words'}: {why}")
    if why:
        logger.info("%spairs are scored by margin alone, and all are written: %s", about, why)
    return MARGIN if why else options.score or WORDS


def judge_pairs(run: RunContext, scored: Sequence[ScoredPairs]) -> ChosenPairs:
    """Say how likely each of the scored pairs is right, and sort them anew; seals ``judged``.

    Without ``options.by_words`` the pairs stay as they are.
    """
    scored = sorted(scored, key=lambda part: part.batch.index)
    batch = scored[0].batch
    check_whole([part.batch.index for part in scored], batch.of, "batches of pairs")
    chosen, usual = batch.chosen, batch.usual
    if usual is None:
        return chosen
    parts = [part.scores for part in scored if part.scores is not None]
    key = scores_key(run, chosen, "judge", scores=[part.files[SCORED] for part in parts])

    def write(draft: Draft) -> Mapping[str, Any]:
        files = [Sorted(path=part.file(SCORED), side=Direction.BOTH) for part in parts]
        with all_threads():
            return _judge(run, chosen, files, usual.facts, draft)

    return replace(chosen, pairs=produce(run.folder.judged, key=key, write=write))


def _judge(
    run: RunContext,
    chosen: ChosenPairs,
    files: Sequence[Sorted],
    usual: Mapping[str, float],
    draft: Draft,
) -> Mapping[str, Any]:
    """Write the pairs in the order of their scores, each with its probability."""
    found, left_out = Probabilities(), np.empty(0)
    if usual:
        found, left_out = _probabilities(run, chosen, files, Usual(**usual))
    draft.array(LEFT_OUT, left_out)
    with draft.file(PAIRS) as path, pq.ParquetWriter(path, numbers_schema(judged=True)) as writer:
        for part in merge_in_ranges(files, size=range_pairs(run.options)):
            assert isinstance(part, JudgedPairs)
            judged = replace(part, probability=found.of_scores(part.score))
            writer.write_table(table_of(judged))
    about = {"judge": load_judge().name, "words": run.words_name, "usual": usual or None}
    return {**chosen.pairs.facts, **about, "probabilities": asdict(found)}


def _probabilities(
    run: RunContext, chosen: ChosenPairs, files: Sequence[Sorted], usual: Usual
) -> tuple[Probabilities, FloatArray]:
    """Estimate by all scores and those of sentences that are without their translation; and these.

    Which pairs are likely right is first estimated by all scores alone.
    """
    usual_scores = load_judge().usual
    first = Probabilities.estimated(usual_scores, (file.records()["score"] for file in files))
    rows = {side: [np.empty(0, np.int64)] for side in SIDES}
    likely = [np.empty(0)]
    for part in merge_in_ranges(files, size=range_pairs(run.options)):
        likely.append(first.of_scores(part.score))
        best = part.take(likely[-1] >= LIKELY)
        for side, own in zip(SIDES, (best.source, best.target), strict=True):
            rows[side].append(own)
        if len(best) < len(part):
            break  # the best come first
    places = likely_places(np.concatenate(likely))
    chosen_rows = {side: np.concatenate(own)[places] for side, own in rows.items()}
    left_out = left_out_scores(run, chosen, chosen_rows, usual)
    scores = (file.records()["score"] for file in files)
    return Probabilities.estimated(usual_scores, scores, left_out), left_out
