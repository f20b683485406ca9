"""Pearson's r, in per cent, between people's scores and angular similarity."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from encoder import Encoder
from eval.data.labelled import read_examples
from eval.encoding import own_encoders
from eval.metrics.sts import angular_similarity
from eval.tasks.arguments import add_sides, languages_of_sides
from eval.tasks.suite import Figure, Suite, correlation_figure, fields_of
from miner.languages import seen_language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="SCORE TAB sentence TAB sentence lines"
    )
    add_sides(parser, default="by a sample of each side")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the files."""
    pairs = {path: read_examples(path, sides=2) for path in dict.fromkeys(args.files)}
    scores = {path: each.scores() for path, each in pairs.items()}
    for path, each in scores.items():
        if (count := len(set(each.tolist()))) < 2:
            raise ValueError(f"{path}: {count} different scores; at least 2 are needed")
    given = languages_of_sides(args)
    languages = {path: given or _seen(path, each.sides) for path, each in pairs.items()}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (path, each) in enumerate(pairs.items()):
            owners = zip(own_encoders(encoder, languages[path]), each.sides, strict=True)
            similarity = angular_similarity(*(own.encode(side) for own, side in owners))
            name = f"{path} {'-'.join(languages[path])}"
            yield correlation_figure(name, scores[path], similarity, stream=stream)

    named = ",".join("-".join(pair) for pair in languages.values())
    fields = fields_of(list(pairs), languages=named, similarity="angular")
    width = max(len(str(path)) for path in pairs) + 8
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
