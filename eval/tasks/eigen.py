"""Psi: how unlike the spaces of languages are to that of English, by the graphs of sentences.

Squared differences of the Laplacian spectra of the graphs of aligned sentences, mean over samples;
0 for spaces of one shape.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from encoder import Encoder
from eval.metrics.eigen import GRAPHS, NEIGHBOURS, spectral_difference, spectrum
from eval.tasks.aligned import add_aligned_data, encoded_sides, load_texts
from eval.tasks.arguments import positive
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure

SEED = 1
REMARK = (
    "Chidambaram et al. 2019, table 7, by 1,000 samples of 10 pairs of their training data: en-fr "
    "0.592, en-de 0.761, en-zh 2.366 (by ranking alone 1.036, 2.187, 0.393); the paper does not "
    "say how distances become edges"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)
    add = parser.add_argument
    add("--samples", type=positive, default=1000, metavar="N", help="samples (default: 1000)")
    add("--sentences", type=positive, default=10, metavar="K", help="of each sample (default: 10)")
    add(
        "--graph",
        choices=GRAPHS,
        default="distances",
        help="edges: cosine distances, or 1 between each and its 10 nearest (default: distances)",
    )


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts.

    Raises:
        ValueError: data is missing or malformed, or too little for a sample.
    """
    data, english = load_texts(args)
    count = len(data.texts[english])
    if args.sentences > count:
        raise ValueError(
            f"--sentences {args.sentences}: {args.directory} has {count}; ask for at most as many"
        )
    if args.graph == "neighbours" and args.sentences <= NEIGHBOURS + 1:
        raise ValueError(
            f"--graph neighbours: of {args.sentences} sentences all are the nearest of each other; "
            f"ask for more than {NEIGHBOURS + 1} with --sentences"
        )
    random = np.random.default_rng(SEED)
    samples = [
        np.sort(random.choice(count, args.sentences, replace=False)) for _ in range(args.samples)
    ]

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, *both in encoded_sides(encoder, data, english):
            psi = [
                spectral_difference(*(spectrum(side[rows], args.graph) for side in both))
                for rows in samples
            ]
            yield replace(mean_figure(language, np.array(psi)), lower=True, percent=False)

    return Suite(
        task="eigen",
        label="language",
        fields=fields_of(
            list(data.files.values()),
            languages=",".join(data.languages),
            graph=args.graph,
            samples=args.samples,
            sentences=args.sentences,
        ),
        measure=measure,
        remark=REMARK,
        unit="samples",
    )
