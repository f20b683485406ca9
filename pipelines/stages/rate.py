"""The rate stage: of the scored pairs, those that keep to a share of wrong ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import PAIRS
from pipelines.options import MiningOptions
from pipelines.stages.select import Choice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from miner.score_calibration import Calibration

ADVISED = 0.05  # the share of wrong pairs that a run without --fdr advises a threshold for


def rate_pairs(options: MiningOptions, choice: Choice) -> Choice:
    """Keep the pairs above the threshold for ``options.fdr``, with probabilities; seals ``rated``.

    Without ``options.fdr`` the choice stays as it is.

    Raises:
        ValueError: how many pairs are wrong cannot be estimated.
    """
    if options.fdr is None:
        return choice
    wanted = options.fdr
    key = content_key("rate", pairs=choice.pairs.files[PAIRS], fdr=repr(wanted))

    def write(draft: Draft) -> Mapping[str, Any]:
        return _rate(choice.pairs, wanted, draft)

    return replace(choice, pairs=produce(options.work_dir / "rated", key=key, write=write))


def advise(options: MiningOptions, choice: Choice) -> dict[str, Any] | None:
    """What to expect above the threshold for ``ADVISED``; None where nothing can be estimated.

    That takes all pairs and scores by words.
    """
    is_whole = options.threshold == -math.inf and not options.filters
    if options.fdr is not None or not options.align or not is_whole:
        return None
    try:
        return estimate(calibrate(choice.pairs), ADVISED)
    except ValueError:
        return None


def calibrate(pairs: Artefact) -> Calibration:
    """Fit the scores of the pairs.

    Raises:
        ValueError: nothing can be estimated.
    """
    from miner.score_calibration import Calibration
    from miner.two_groups import Histogram

    ends = [(scores.min(), scores.max()) for scores in _scores(pairs) if len(scores)]
    lowest = min((low for low, _ in ends), default=0.0)
    highest = max((high for _, high in ends), default=0.0)
    histogram = Histogram.empty(float(lowest), float(highest))
    for scores in _scores(pairs):
        histogram.add(scores)
    return Calibration.fitted(histogram)


def _scores(pairs: Artefact) -> Iterator[NDArray[np.float64]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(pairs.file(PAIRS)) as file:
        for batch in file.iter_batches(columns=["score"]):
            yield batch["score"].to_numpy()


def estimate(calibration: Calibration, wanted: float) -> dict[str, Any]:
    """The threshold for a share of wrong pairs, and what to expect of the pairs above it."""
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


def _rate(pairs: Artefact, wanted: float, draft: Draft) -> Mapping[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    calibration = calibrate(pairs)
    threshold = calibration.threshold(wanted)
    kept = 0
    with pq.ParquetFile(pairs.file(PAIRS)) as file, draft.file(PAIRS) as path:
        field = pa.field("probability", pa.float64())
        with pq.ParquetWriter(path, file.schema_arrow.insert(1, field)) as writer:
            for batch in file.iter_batches():
                scores = batch["score"].to_numpy()
                above = pa.Table.from_batches([batch.slice(0, int((scores > threshold).sum()))])
                likely = calibration.probability(scores[: len(above)])
                writer.write_table(above.add_column(1, field, pa.array(likely)))
                kept += len(above)
    return {**pairs.facts, "pairs": kept, "fdr": estimate(calibration, wanted)}
