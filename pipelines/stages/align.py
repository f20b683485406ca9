"""The align stage: the chosen pairs scored anew, by their words, too."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from miner.arrays import Direction
from miner.score_ranges import Sorted, sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, SIDES
from miner.storage.pair_numbers import numbers_schema, pairs_of
from miner.word_match import align_texts, aligned_pairs, usual_log_ratio, why_unfitted
from pipelines.context import RunContext
from pipelines.options import MARGIN, WORDS
from pipelines.references import ChosenPairs
from pipelines.stages.export import completed_pairs, pair_meter
from pipelines.stages.select import write_sorted

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
    why = None if options.score == MARGIN else _why_not_words(run)
    if why and options.needs_words:
        raise ValueError(f"{about}{'--fdr' if options.fdr else '--score words'}: {why}")
    if why:
        logger.info("%spairs are scored by margin alone: %s", about, why)
    return MARGIN if why else options.score or WORDS


def _why_not_words(run: RunContext) -> str | None:
    if why := why_unfitted(run.options.margin):
        return why
    try:
        run.word_encoders()
    except ValueError as error:
        return str(error)
    return None


def align_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Score the chosen pairs by margin and words and sort them anew; seals ``aligned``.

    The first block of pairs, the best by margin, says what ratio of words is usual. Without
    ``options.by_words`` the pairs stay as they are.
    """
    if not run.options.by_words:
        return chosen
    key = content_key(
        "align",
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        sentences=[found.embedded.shard.digest for found in chosen.shards],
        maker=run.words_name,
        threshold=repr(run.options.threshold),
        numbers=numbers_schema(aligned=True).names,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            return _rescore(run, chosen, scratch, draft)

    return replace(chosen, pairs=produce(run.folder.aligned, key=key, write=write))


def _rescore(
    run: RunContext, chosen: ChosenPairs, scratch: Path, draft: Draft
) -> Mapping[str, Any]:
    options = run.options
    files: list[Sorted] = []
    usual = None
    with pair_meter(run, chosen, PAIRS, "align") as meter:
        for table in completed_pairs(run, chosen, PAIRS):
            texts = [table[f"{side}_text"].to_pylist() for side in SIDES]
            found = align_texts(run.word_encoders(), *texts, progress=meter.advance)
            if usual is None:
                usual = usual_log_ratio(found)
            path = scratch / f"{len(files):05d}.npy"
            aligned = aligned_pairs(pairs_of(table), found, usual=usual)
            files.append(sort_pairs(path, aligned, Direction.BOTH))
    kept = write_sorted(draft, files, options, threshold=options.threshold, aligned=True)
    facts = {"pairs": kept, "usual_log_ratio": usual or 0.0, "words": run.words_name}
    return {**chosen.pairs.facts, **facts}
