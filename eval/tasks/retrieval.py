"""Translation retrieval among aligned texts: P@1, P@5 and P@10."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eval.metrics.bootstrap import interval, mean_samples
from eval.metrics.retrieval import DEPTHS, translation_ranks
from eval.output import Record, Table
from eval.tasks.aligned import add_aligned_data, load, sign
from eval.tasks.arguments import ALL, positive

NAMES = tuple(f"P@{depth}" for depth in DEPTHS)
TABLE = Table("pair", ["sentences", *NAMES, "95% of P@1"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = "P@1, P@5 and P@10 of each translation among it and other sentences."
    add_aligned_data(parser)
    parser.add_argument(
        "--others",
        type=lambda text: None if text == ALL else positive(text),
        default=999,
        metavar="K",
        help="number of other sentences drawn for each, or all (default: 999)",
    )


def run(args: argparse.Namespace, show: Callable[[str], None]) -> Record:
    """Retrieve from each language into English and back."""
    loaded = load(args)
    show(TABLE.header)
    results: dict[str, Record] = {}
    shares: list[list[float]] = []
    samples: list[NDArray[np.float64]] = []
    for language, vectors, english in loaded.sides():
        for source, target, pair in (
            (vectors, english, f"{language}-{loaded.english}"),
            (english, vectors, f"{loaded.english}-{language}"),
        ):
            ranks = translation_ranks(source, target, others=args.others)
            shares.append([float((ranks <= depth).mean()) for depth in DEPTHS])
            samples.append(mean_samples(ranks == 1, stream=0))
            by_depth = dict(zip(NAMES, shares[-1], strict=True))
            results[pair] = {**by_depth, "interval": interval(samples[-1])}
            show(TABLE.row(pair, len(ranks), *results[pair].values()))
    mean = dict(zip(NAMES, np.mean(shares, axis=0).tolist(), strict=True))
    mean["interval"] = interval(np.mean(samples, axis=0))
    show(TABLE.row("mean", None, *mean.values()))
    others = ALL if args.others is None else args.others
    signed = sign("retrieval", loaded.encoder, loaded.data, others=others, similarity="cosine")
    show(signed)
    return {"task": "retrieval", "pairs": results, "mean": mean, "signature": signed}
