"""Translation retrieval among aligned texts: P@1, P@5 and P@10."""

from __future__ import annotations

import argparse

from encoder import load_encoder
from eval.metrics.bootstrap import mean_samples
from eval.metrics.retrieval import DEPTHS, translation_ranks
from eval.output import Record, Rows, Show, Table
from eval.tasks.aligned import add_aligned_data, encoded_sides, load_texts, sign
from eval.tasks.arguments import ALL, positive

TABLE = Table("pair", ["sentences", *(f"P@{depth}" for depth in DEPTHS), "95% of P@1"])


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


def run(args: argparse.Namespace, show: Show) -> Record:
    """Retrieve from each language into English and back."""
    data, english = load_texts(args)
    encoder = load_encoder(args.encoder)
    rows = Rows(TABLE, show)
    for language, vectors, of_english in encoded_sides(encoder, data, english):
        for source, target, pair in (
            (vectors, of_english, f"{language}-{english}"),
            (of_english, vectors, f"{english}-{language}"),
        ):
            ranks = translation_ranks(source, target, others=args.others)
            shares = {f"P@{depth}": float((ranks <= depth).mean()) for depth in DEPTHS}
            rows.add(pair, len(ranks), {**shares, "interval": mean_samples(ranks == 1)})
    mean = rows.mean()
    others = ALL if args.others is None else args.others
    record = {"pairs": rows.records, "mean": mean}
    fields = {"others": others, "similarity": "cosine"}
    return sign(show, "retrieval", record, encoder, data, **fields)
