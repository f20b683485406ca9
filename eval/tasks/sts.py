"""Semantic textual similarity: Pearson's r between people's scores and the vectors'."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from encoder import load_encoder
from eval.data.scored_pairs import read_scored_pairs
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import SIGNED, interval, resampled
from eval.metrics.sts import angular_similarity, moments, pearson
from eval.output import Record, Table, signature
from eval.tasks.arguments import add_sides, languages_of_sides
from eval.tasks.encoding import own_encoders
from miner.languages import seen_language

TABLE = Table("pairs", ["100 r", "95% interval", "languages", "file"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = "Pearson's r between people's scores and angular similarity."
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="SCORE TAB sentence TAB sentence lines"
    )
    add_sides(parser, default="by a sample of each side")


def run(args: argparse.Namespace, show: Callable[[str], None]) -> Record:
    """Correlate in each file."""
    texts = {path: read_scored_pairs(path) for path in dict.fromkeys(args.files)}
    given = languages_of_sides(args)
    languages = {path: given or _seen(path, both) for path, (_, *both) in texts.items()}
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    results: dict[str, Record] = {}
    for stream, (path, (scores, first, second)) in enumerate(texts.items()):
        one, other = own_encoders(encoder, languages[path])
        similarity = angular_similarity(one.encode(first), other.encode(second))
        units = moments(scores, similarity)
        r = float(pearson(units.sum(axis=0)[None])[0])
        between = interval(resampled(units, pearson, stream=stream))
        pair = "-".join(languages[path])
        results[str(path)] = {
            **{"pairs": len(scores), "languages": pair},
            **{"pearson": r, "interval": between},
        }
        show(TABLE.row(str(len(scores)), r, between, pair, f"  {path.name}"))
    mean = float(np.mean([result["pearson"] for result in results.values()]))
    if len(results) > 1:
        show(TABLE.row("mean", mean))
    signed = signature(
        "sts",
        languages=",".join("-".join(pair) for pair in languages.values()),
        sha256=fingerprint(*texts),
        encoder=encoder.name,
        similarity="angular",
        interval=SIGNED,
    )
    show(signed)
    return {"task": "sts", "files": results, "mean": mean, "signature": signed}


def _seen(path: Path, sides: Sequence[Sequence[str]]) -> tuple[str, str]:
    found = [seen_language(side) for side in sides]
    if None in found:
        raise ValueError(
            f"{path}: the language of side {1 + found.index(None)} was not recognised; give --lang"
        )
    return str(found[0]), str(found[1])
