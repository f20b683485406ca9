"""Correlate human scores with angular similarity: Pearson's r, in percent."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data.labelled import read_examples
from eval.data.languages import encoders_of_languages
from eval.tasks.arguments import add_sides, languages_of_sides
from eval.tasks.suite import Figure, Floats, Suite, correlation_figure, fields_of
from miner.languages import seen_language


def angular_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> Floats:
    """Return 1 - angle / pi of the rows of two float32 (P, D) of unit rows: float64 (P,), 0 to 1.

    A zero row is at a right angle to everything (Cer et al. 2018, "Universal Sentence Encoder",
    equation 1; Chidambaram et al. 2019, section 3.5).
    """
    cosines = np.einsum("pd,pd->p", first.astype(np.float64), second.astype(np.float64))
    similarity: Floats = 1 - np.arccos(np.clip(cosines, -1, 1)) / np.pi
    return similarity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    text = "file of SCORE TAB sentence TAB sentence lines"
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=text)
    add_sides(parser, default="detected from a sample of each side")


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
            owners = zip(encoders_of_languages(encoder, languages[path]), each.sides, strict=True)
            similarity = angular_similarity(*(own.encode(side) for own, side in owners))
            name = f"{path} {'-'.join(languages[path])}"
            yield correlation_figure(name, scores[path], similarity, stream=stream)

    named = ",".join("-".join(pair) for pair in languages.values())
    fields = fields_of(list(pairs), languages=named, similarity="angular")
    width = max(len(str(path)) for path in pairs) + 8
    return Suite("sts", fields, measure, label="file", unit="pairs", width=width)


def _seen(path: Path, sides: Sequence[Sequence[str]]) -> tuple[str, str]:
    found = [seen_language(side) for side in sides]
    if None in found:
        raise ValueError(
            f"{path}: the language of side {1 + found.index(None)} was not recognised; give --lang"
        )
    return str(found[0]), str(found[1])
