"""Compare the sentence graphs of languages with the English graph.

Psi is the sum of squared differences of the Laplacian spectra of both graphs of aligned sentences,
as a mean over samples. It is 0 for spaces of the same shape.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from encoder import Encoder
from eval.tasks.aligned import add_aligned_data, encoded_sides, load_texts
from eval.tasks.arguments import positive
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure
from miner.arrays import FloatArray, Matrix

NEIGHBOURS = 10  # edges per sentence in the binary graph
GRAPHS = ("distances", "neighbours")
SEED = 1
REMARK = (
    "Chidambaram et al. 2019, table 7, by 1,000 samples of 10 pairs of their training data: en-fr "
    "0.592, en-de 0.761, en-zh 2.366 (by ranking alone 1.036, 2.187, 0.393); the paper does not "
    "say how distances become edges"
)


def spectrum(vectors: Matrix, graph: str) -> FloatArray:
    """Return the Laplacian eigenvalues of a graph of sentences.

    They are float64 (N,), ascending. ``vectors`` (N, D) have unit length. In the ``graph``
    ``distances``, the weights of edges are cosine distances. In ``neighbours``, edges of weight 1
    join each sentence and the 10 nearest to it.
    """
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, -np.inf if graph == "neighbours" else 1)
    if graph == "neighbours":
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
        edges = np.zeros_like(cosines)
        np.put_along_axis(edges, nearest, 1, axis=1)
        edges = np.maximum(edges, edges.T)
    else:
        edges = 1 - cosines
    values = np.linalg.eigvalsh(np.diag(edges.sum(axis=1)) - edges)
    return values.astype(np.float64)


def spectral_difference(first: FloatArray, second: FloatArray) -> float:
    """Sum squared differences of sorted spectra (N,) (Søgaard et al. 2018)."""
    return float(np.square(np.sort(first) - np.sort(second)).sum())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)
    add = parser.add_argument
    text = "number of random samples, 1 or more; more give a more precise figure (default: 1000)"
    add("--samples", type=positive, default=1000, metavar="N", help=text)
    text = (
        "sentences per sample, 1 to the lines of a file; with --graph neighbours 12 or more "
        "(default: 10)"
    )
    add("--sentences", type=positive, default=10, metavar="K", help=text)
    text = (
        "weights of edges; distances: cosine distances between all sentences; neighbours: 1 "
        "between each sentence and its 10 nearest, else 0 (default: distances)"
    )
    add("--graph", choices=GRAPHS, default="distances", help=text)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the aligned texts, and draw samples of lines, as a suite.

    Raises:
        ValueError: Data are wrong, or ``--sentences`` exceeds the lines, or is below 12 for the
            graph ``neighbours``.
    """
    data, english = load_texts(args)
    count, size = len(data.texts[english]), args.sentences
    if size > count:
        raise ValueError(
            f"--sentences {size}: {args.directory} has {count} lines; pass {count} or fewer"
        )
    if args.graph == "neighbours" and size <= NEIGHBOURS + 1:
        raise ValueError(
            f"--sentences {size}: too few for --graph neighbours; pass {NEIGHBOURS + 2} or more"
        )
    random = np.random.default_rng(SEED)
    samples = [np.sort(random.choice(count, size, replace=False)) for _ in range(args.samples)]

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, *sides in encoded_sides(encoder, data, english):
            spectra = ([spectrum(side[rows], args.graph) for side in sides] for rows in samples)
            psi = np.array([spectral_difference(*pair) for pair in spectra])
            yield replace(mean_figure(language, psi), lower=True, percent=False)

    options = {"graph": args.graph, "samples": args.samples, "sentences": size}
    fields = fields_of(list(data.files.values()), languages=",".join(data.languages), **options)
    return Suite("eigen", fields, measure, remark=REMARK, unit="samples")
