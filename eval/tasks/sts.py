"""Semantic textual similarity: Pearson's r between people's scores and the vectors'."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from encoder import Encoder
from eval.data.scored_pairs import read_scored_pairs
from eval.encoding import own_encoders
from eval.metrics.sts import angular_similarity
from eval.tasks.arguments import add_sides, languages_of_sides
from eval.tasks.suite import Figure, Suite, correlation_figure, fields_of
from miner.languages import seen_language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = "Pearson's r, in per cent, between people's scores and angular similarity."
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="SCORE TAB sentence TAB sentence lines"
    )
    add_sides(parser, default="by a sample of each side")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the files.

    Raises:
        ValueError: one is malformed, or its languages are not recognised.
    """
    texts = {path: read_scored_pairs(path) for path in dict.fromkeys(args.files)}
    given = languages_of_sides(args)
    languages = {path: given or _seen(path, both) for path, (_, *both) in texts.items()}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (path, (scores, first, second)) in enumerate(texts.items()):
            one, other = own_encoders(encoder, languages[path])
            similarity = angular_similarity(one.encode(first), other.encode(second))
            name = f"{path} {'-'.join(languages[path])}"
            yield correlation_figure(name, scores, similarity, stream=stream)

    pairs = ",".join("-".join(pair) for pair in languages.values())
    fields = fields_of(list(texts), languages=pairs, similarity="angular")
    width = max(len(str(path)) for path in texts) + 8
    return Suite(
        task="sts", label="file", fields=fields, measure=measure, unit="pairs", width=width
    )


def _seen(path: Path, sides: Sequence[Sequence[str]]) -> tuple[str, str]:
    found = [seen_language(side) for side in sides]
    if None in found:
        raise ValueError(
            f"{path}: the language of side {1 + found.index(None)} was not recognised; give --lang"
        )
    return str(found[0]), str(found[1])
