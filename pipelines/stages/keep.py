"""The keep stage: of the judged pairs, those that are likely enough to be right."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from miner.judge.prior import LIKELY, MAX_ALIKE, count_kept
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import PAIRS
from pipelines.context import RunContext
from pipelines.options import MiningOptions
from pipelines.references import ChosenPairs


def keep_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Keep the pairs that the options ask for; seals ``kept``.

    These are the first ones: as many as keep to the share ``options.fdr`` of wrong ones, those
    above ``options.threshold``, all, or else those that are more likely right than wrong. Without
    ``options.by_words`` the pairs stay as they are.
    """
    options = run.options
    if not options.by_words:
        return chosen
    key = content_key("keep", pairs=chosen.pairs.files[PAIRS], rule=repr(_rule(options)))
    write = partial(_keep, chosen.pairs, options)
    return replace(chosen, pairs=produce(run.folder.kept, key=key, write=write))


def _rule(options: MiningOptions) -> tuple[str, float]:
    """Return what decides which pairs are kept."""
    if options.fdr is not None:
        return "fdr", options.fdr
    if options.threshold != -math.inf:
        return "threshold", options.threshold
    return ("all", 0.0) if options.keeps_all else ("probability", LIKELY)


def _keep(judged: Artefact, options: MiningOptions, draft: Draft) -> Mapping[str, Any]:
    with pq.ParquetFile(judged.file(PAIRS)) as file:
        numbers = file.read(columns=["score", "probability"])
        scores, wrong = numbers["score"].to_numpy(), 1 - numbers["probability"].to_numpy()
        kept = count_kept(scores, wrong, *_rule(options))
        left = kept
        with draft.file(PAIRS) as path, pq.ParquetWriter(path, file.schema_arrow) as writer:
            for batch in file.iter_batches():
                writer.write_batch(batch.slice(0, left))
                left = max(0, left - len(batch))
    estimate = {
        "by": _rule(options)[0],
        "judged": len(scores),
        "pairs": kept,
        "threshold": float(np.nextafter(scores[kept - 1], -np.inf)) if kept else None,
        "wrong": math.fsum(wrong[:kept]),
        **_doubt(judged.facts["probabilities"]["alike"]),
    }
    return {**judged.facts, "pairs": kept, "kept": estimate}


def _doubt(alike: float) -> Mapping[str, str]:
    """Return what the run's own wrong pairs say against its probabilities, if anything."""
    if alike <= MAX_ALIKE:
        return {}
    return {
        "doubt": f"{alike:.0%} of the likely pairs' sentences would find another that looks like "
        "a translation without theirs; near-copies may be among the pairs"
    }
