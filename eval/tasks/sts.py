"""Correlate human scores with angular similarity (Pearson's r in percent)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.labelled import read_examples
from eval.data.languages import encoders_of_languages
from eval.tasks.arguments import add_sides, languages_of_sides
from eval.tasks.suite import Figure, Suite, correlation_figure, fields_of
from miner.arrays import FloatArray, Matrix
from miner.languages import seen_language


def angular_similarity(first: Matrix, second: Matrix) -> FloatArray:
    """Return the angular similarity of P pairs of rows, float64 (P,).

    It is 1 - angle / pi (Cer et al. 2018, "Universal Sentence Encoder", equation 1). Rows, (P, D)
    each, are unit vectors or zero. A zero row has an angle of pi / 2 to every row.
    """
    cosines = np.einsum("pd,pd->p", first.astype(np.float64), second.astype(np.float64))
    similarity: FloatArray = 1 - np.arccos(np.clip(cosines, -1, 1)) / np.pi
    return similarity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    text = "file of SCORE TAB sentence TAB sentence lines, with human scores on any scale"
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=text)
    add_sides(parser, default="detected from a sample of each side")


def prepare(args: argparse.Namespace) -> Suite:
    """Load files of scored sentence pairs, as a suite.

    Raises:
        ValueError: A file is unreadable or malformed, all its scores are equal, its language is not
            recognised without ``--lang``, or that has more than two.
    """
    pairs = {path: read_examples(path, sides=2) for path in dict.fromkeys(args.files)}
    scores = {path: examples.scores() for path, examples in pairs.items()}
    for path, values in scores.items():
        if len(set(values.tolist())) < 2:
            raise ValueError(f"{path}: all scores are {values[0]:g}; pass different ones")
    requested = languages_of_sides(args)
    languages = {path: requested or _detect(path, file.sides) for path, file in pairs.items()}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (path, file) in enumerate(pairs.items()):
            sides = zip(encoders_of_languages(encoder, languages[path]), file.sides, strict=True)
            similarity = angular_similarity(*(model.encode(side) for model, side in sides))
            name = f"{path} {'-'.join(languages[path])}"
            yield correlation_figure(name, scores[path], similarity, stream=stream)

    names = ",".join("-".join(pair) for pair in languages.values())
    fields = fields_of(list(pairs), languages=names, similarity="angular")
    width = max(len(str(path)) for path in pairs) + 8
    return Suite("sts", fields, measure, label="file", unit="pairs", width=width)


def _detect(path: Path, sides: Sequence[Sequence[str]]) -> tuple[str, str]:
    codes = [seen_language(side) for side in sides]
    if None in codes:
        raise ValueError(
            f"{path}: the language of the {('first', 'second')[codes.index(None)]} sentences was "
            "not recognised; pass --lang XX YY"
        )
    return str(codes[0]), str(codes[1])
