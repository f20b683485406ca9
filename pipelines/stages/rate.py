"""The rate stage: of the scored pairs, those that keep to a share of wrong ones."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from miner.score_calibration import Calibration
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import PAIRS, SIDES
from miner.two_groups import Histogram
from pipelines.context import RunContext
from pipelines.references import ChosenPairs
from pipelines.stages.left_out import left_out_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

ADVISED = 0.05  # the share of wrong pairs that a run without --fdr advises a threshold for


def rate_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Keep the pairs above the threshold for ``options.fdr``, with probabilities; seals ``rated``.

    Without ``options.fdr`` the pairs stay as they are.

    Raises:
        ValueError: how many pairs are wrong cannot be estimated.
    """
    wanted = run.options.fdr
    if wanted is None:
        return chosen
    try:
        calibration = _calibrate(run, chosen)
    except ValueError as error:
        if run.options.corpus_names == SIDES:
            raise
        return _refused(run, chosen, wanted, str(error))  # the other pairs of languages go on
    key = content_key(
        "rate",
        pairs=chosen.pairs.files[PAIRS],
        left_out=calibration.left_out.tolist(),
        fdr=repr(wanted),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        return _rate(chosen.pairs, calibration, wanted, draft)

    return replace(chosen, pairs=produce(run.folder.rated, key=key, write=write))


def _refused(run: RunContext, chosen: ChosenPairs, wanted: float, why: str) -> ChosenPairs:
    """Keep no pair, as nothing can be promised of any."""
    logger.warning("%s: %s; none of its pairs is written", "-".join(run.options.corpus_names), why)
    key = content_key("rate nothing", pairs=chosen.pairs.files[PAIRS], fdr=repr(wanted))
    nothing = {"pairs": 0, "wrong": 0.0, "share": 0.0, "interval": [0.0, 0.0]}
    estimate = {"wanted": wanted, "threshold": None, "refused": why, **nothing}

    def write(draft: Draft) -> Mapping[str, Any]:
        field = pa.field("probability", pa.float64())
        schema = pq.read_schema(chosen.pairs.file(PAIRS)).insert(1, field)
        with draft.file(PAIRS) as path:
            pq.write_table(schema.empty_table(), path)
        return {**chosen.pairs.facts, "pairs": 0, "fdr": estimate}

    return replace(chosen, pairs=produce(run.folder.rated, key=key, write=write))


def advise(run: RunContext, chosen: ChosenPairs) -> dict[str, Any] | None:
    """Return what to expect above the threshold for ``ADVISED``, or why that is ``refused``.

    None where it is not tried: that takes all pairs, and scores by words.
    """
    options = run.options
    is_whole = options.threshold == -math.inf and not (options.filters or options.near_duplicates)
    if options.fdr is not None or not options.by_words or not is_whole:
        return None
    try:
        return _estimate(_calibrate(run, chosen), ADVISED)
    except ValueError as error:
        return {"refused": str(error)}


def _rate(
    pairs: Artefact, calibration: Calibration, wanted: float, draft: Draft
) -> Mapping[str, Any]:
    threshold = calibration.threshold(wanted)
    kept, field = 0, pa.field("probability", pa.float64())
    with pq.ParquetFile(pairs.file(PAIRS)) as file, draft.file(PAIRS) as path:
        with pq.ParquetWriter(path, file.schema_arrow.insert(1, field)) as writer:
            for batch in file.iter_batches():
                scores = batch["score"].to_numpy()
                above = scores[scores > threshold]  # the first ones, as the best come first
                table = pa.Table.from_batches([batch.slice(0, len(above))])
                likely = pa.array(calibration.probability(above))
                writer.write_table(table.add_column(1, field, likely))
                kept += len(above)
    return {**pairs.facts, "pairs": kept, "fdr": _estimate(calibration, wanted)}


def _calibrate(run: RunContext, chosen: ChosenPairs) -> Calibration:
    """Fit the scores of the pairs and of what is left without each other's sentences."""
    pairs = chosen.pairs
    ends = [(scores.min(), scores.max()) for scores in _scores(pairs) if len(scores)]
    lowest = min((low for low, _ in ends), default=0.0)
    highest = max((high for _, high in ends), default=0.0)
    histogram = Histogram.empty(float(lowest), float(highest))
    for scores in _scores(pairs):
        histogram.add(scores)
    calibration = Calibration.fitted(histogram)
    return Calibration.fitted(histogram, left_out_scores(run, chosen, calibration))


def _scores(pairs: Artefact) -> Iterator[NDArray[np.float64]]:
    with pq.ParquetFile(pairs.file(PAIRS)) as file:
        for batch in file.iter_batches(columns=["score"]):
            yield batch["score"].to_numpy()


def _estimate(calibration: Calibration, wanted: float) -> dict[str, Any]:
    """Return the threshold for a share of wrong pairs, and what to expect of those above it."""
    threshold = calibration.threshold(wanted)
    expected = calibration.expected(threshold)
    return {
        "wanted": wanted,
        "threshold": None if threshold == math.inf else threshold,
        "pairs": expected.pairs,
        "wrong": expected.wrong,
        "share": expected.share,
        "interval": list(expected.interval),
        "separation": calibration.groups.separation,
    }
