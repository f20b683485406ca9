"""eval-encoder sts without its command line: Pearson's r for each file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import SIGNED, interval, resampled
from eval.metrics.sts import angular_similarity, moments, pearson, read_scored_pairs
from eval.output import signature
from eval.table import Table
from miner.commandline import product_version

TABLE = Table("pairs", ["100 r", "95% interval", "file"])


def run_sts(
    paths: Sequence[Path], *, encoder_spec: str, tell: Callable[[str], None]
) -> dict[str, object]:
    """Run the task; the report as a record for JSON.

    Raises:
        ValueError: a file is malformed, or the encoder is not there.
    """
    from encoder import load_encoder

    read = {path: read_scored_pairs(path) for path in paths}
    encoder = load_encoder(encoder_spec)
    tell(TABLE.header)
    results: dict[str, dict[str, object]] = {}
    for stream, (path, (scores, first, second)) in enumerate(read.items()):
        similarity = angular_similarity(encoder.encode(first), encoder.encode(second))
        units = moments(scores, similarity)
        r = float(pearson(units.sum(axis=0)[None])[0])
        between = interval(resampled(units, pearson, stream=stream))
        results[str(path)] = {"pairs": len(scores), "pearson": r, "interval": between}
        tell(TABLE.row(str(len(scores)), r, between, f"  {path.name}"))
    mean = float(np.mean([result["pearson"] for result in results.values()]))
    if len(results) > 1:
        tell(TABLE.row("mean", mean))
    signed = signature(
        "sts",
        {
            "sha256": fingerprint(*paths),
            "encoder": encoder.name,
            "similarity": "angular",
            "interval": SIGNED,
            "v": product_version(),
        },
    )
    tell(signed)
    return {"task": "sts", "files": results, "mean": mean, "signature": signed}
