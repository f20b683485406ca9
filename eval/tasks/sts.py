"""Semantic textual similarity: Pearson's r between people's scores and the vectors'."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from encoder import load_encoder
from eval.data.scored_pairs import read_scored_pairs
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import SIGNED, interval, resampled
from eval.metrics.sts import angular_similarity, moments, pearson
from eval.output import Record, Table, signature

TABLE = Table("pairs", ["100 r", "95% interval", "file"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = "Pearson's r between people's scores and angular similarity."
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="SCORE TAB sentence TAB sentence lines"
    )


def run(args: argparse.Namespace, show: Callable[[str], None]) -> Record:
    """Correlate in each file."""
    texts = {path: read_scored_pairs(path) for path in args.files}
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    results: dict[str, Record] = {}
    for stream, (path, (scores, first, second)) in enumerate(texts.items()):
        similarity = angular_similarity(encoder.encode(first), encoder.encode(second))
        units = moments(scores, similarity)
        r = float(pearson(units.sum(axis=0)[None])[0])
        between = interval(resampled(units, pearson, stream=stream))
        results[str(path)] = {"pairs": len(scores), "pearson": r, "interval": between}
        show(TABLE.row(str(len(scores)), r, between, f"  {path.name}"))
    mean = float(np.mean([result["pearson"] for result in results.values()]))
    if len(results) > 1:
        show(TABLE.row("mean", mean))
    signed = signature(
        "sts",
        sha256=fingerprint(*args.files),
        encoder=encoder.name,
        similarity="angular",
        interval=SIGNED,
    )
    show(signed)
    return {"task": "sts", "files": results, "mean": mean, "signature": signed}
