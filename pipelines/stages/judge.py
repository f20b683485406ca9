"""The judge stage: the chosen pairs scored by their words and all else that is known of them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from miner.arrays import Direction, FloatArray, JudgedPairs, Pairs
from miner.judge.features import Near, Usual, features, read_texts, spacing_of
from miner.judge.left_out import likely_places
from miner.judge.model import load_judge
from miner.judge.prior import LIKELY, Probabilities
from miner.score_ranges import Sorted, merge_in_ranges, sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import LEFT_OUT, PAIRS, SIDES
from miner.storage.pair_numbers import numbers_schema, pairs_of, table_of
from pipelines.context import RunContext
from pipelines.options import MARGIN, WORDS
from pipelines.references import ChosenPairs
from pipelines.stages.export import completed_pairs, pair_meter
from pipelines.stages.left_out import left_out_scores
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
    if why and options.needs_words:
        raise ValueError(f"{about}{'--fdr' if options.fdr else '--score words'}: {why}")
    if why:
        logger.info("%spairs are scored by margin alone, and all are written: %s", about, why)
    return MARGIN if why else options.score or WORDS


def judge_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Score the chosen pairs, say how likely each is right, and sort them anew; seals ``judged``.

    The first block of pairs, the best by margin, says what is usual. Without ``options.by_words``
    the pairs stay as they are.
    """
    if not run.options.by_words:
        return chosen
    key = content_key(
        "judge",
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        sentences=[found.embedded.shard.digest for found in chosen.shards],
        neighbours=[lists for found in chosen.shards for lists in found.content],
        maker=run.words_name,
        judge=load_judge().name,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            return _judge(run, chosen, scratch, draft)

    return replace(chosen, pairs=produce(run.folder.judged, key=key, write=write))


def _judge(run: RunContext, chosen: ChosenPairs, scratch: Path, draft: Draft) -> Mapping[str, Any]:
    """Score the pairs block by block, then write them in the order of their scores."""
    files: list[Sorted] = []
    usual, scope = None, run.options.scopes[-1]
    with pair_meter(run, chosen, PAIRS, "judge") as meter:
        for table in completed_pairs(run, chosen, PAIRS):
            pairs = pairs_of(table)
            texts = read_texts(
                run.word_encoders(),
                *(table[f"{side}_text"].to_pylist() for side in SIDES),
                progress=meter.advance,
            )
            usual = usual or Usual.of(
                texts, spacing_of(found.load(scope) for found in chosen.shards)
            )
            near = None if chosen.merges else Near.of(pairs)  # merged sentences are in no list
            scores = load_judge().scores(features(texts, near, usual))
            path = scratch / f"{len(files):05d}.npy"
            files.append(sort_pairs(path, _judged(pairs, scores), Direction.BOTH))
    found, left_out = _probabilities(run, chosen, files, usual) if usual else (Probabilities(), [])
    draft.array(LEFT_OUT, np.array(left_out))
    with draft.file(PAIRS) as path, pq.ParquetWriter(path, numbers_schema(judged=True)) as writer:
        for part in merge_in_ranges(files, size=range_pairs(run.options)):
            assert isinstance(part, JudgedPairs)
            judged = replace(part, probability=found.of_scores(part.score))
            writer.write_table(table_of(judged))
    about = {"judge": load_judge().name, "words": run.words_name, "usual": usual and asdict(usual)}
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


def _judged(pairs: Pairs, scores: FloatArray) -> JudgedPairs:
    known = {field.name: getattr(pairs, field.name) for field in fields(Pairs)}
    known |= {"score": scores, "margin": pairs.score, "probability": scores}  # not known yet
    return JudgedPairs(**known)
