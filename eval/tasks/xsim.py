"""Measure how often search by three margins does not find the translation."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from encoder import Encoder, load_encoder
from eval.data.languages import encoders_of_languages, iso_639_1
from eval.metrics.bootstrap import INTERVAL_METHOD
from eval.metrics.similarity import (
    NEIGHBOURS,
    best_by_margin,
    find_nearest,
    is_wrong,
    search_errors,
)
from eval.output import Record, Show, Table, encoder_names, sign
from eval.tasks import aligned
from eval.tasks.arguments import chosen_languages
from eval.tasks.suite import Figure, Suite, mean_figure, run_suite
from miner.choices import MARGINS, MARGINS_HELP

SHOWN = ("absolute", "distance", "ratio")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    aligned.add_aligned_data(parser)
    text = (
        "search between every two languages, instead of from each language into English (which is "
        f"among them if --lang names it, or without --lang); the value is the {MARGINS_HELP}"
    )
    parser.add_argument("--matrix", choices=MARGINS, help=text)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run the suite or, with ``--matrix``, search between all languages.

    Errors are as in ``TaskModule``. The record of ``--matrix`` has error ``rates`` by source and by
    target language, and their ``mean``.
    """
    return _matrix(args, show) if args.matrix else run_suite(prepare(args), args.encoder, show)


def prepare(args: argparse.Namespace) -> Suite:
    """Load texts to search into English, or raise errors of ``load_texts``."""
    data, english = aligned.load_texts(args)

    def measure(encoder: Encoder) -> Iterator[Figure]:
        # The sentences are the same in all languages, so they are resampled together.
        for language, *sides in aligned.encoded_sides(encoder, data, english):
            lists = find_nearest(*sides)
            errors = {name: is_wrong(best_by_margin(*lists, margin=name)) for name in SHOWN}
            beside = {name: float(mask.mean()) for name, mask in errors.items()}
            yield replace(mean_figure(language, errors["ratio"]), lower=True, beside=beside)

    fields = {**aligned.fields_of_texts(data), "k": NEIGHBOURS, "target": english}
    before, names = SHOWN[:2], data.languages
    return Suite("xsim", fields, measure, before=before, figure="ratio", languages=names)


def _matrix(args: argparse.Namespace, show: Show) -> Record:
    # The table is that of Schwenk & Douze 2017.
    available = list(aligned.aligned_files(args.directory))
    names = chosen_languages(args, available)
    if args.lang is None:
        names.append(aligned.english_of(available, args.directory))
    data = aligned.load_aligned(args.directory, names)
    if len(data.languages) < 2:
        raise ValueError(f"--matrix: {names[0]} is the only language; add another with --lang")
    names, encoder = data.languages, load_encoder(args.encoder)
    encoders = zip(names, encoders_of_languages(encoder, names), strict=True)
    vectors = [model.encode(data.texts[name]) for name, model in encoders]
    rates = np.full((len(names), len(names)), np.nan)
    for row, column in zip(*np.tril_indices(len(names), -1), strict=True):
        forward, backward = search_errors(vectors[row], vectors[column], margin=args.matrix)
        rates[row, column], rates[column, row] = forward.mean(), backward.mean()
    table = Table("from", [*names, "mean"])
    show(table.header)
    by_language: Record = {}
    means = np.nanmean(rates, axis=1).tolist()
    for name, row_rates, row_mean in zip(names, rates.tolist(), means, strict=True):
        cells = {key: rate for key, rate in zip(names, row_rates, strict=True) if key != name}
        show(table.row(name, *map(cells.get, names), row_mean))
        by_language[name] = cells
    mean = float(np.nanmean(rates))
    show(table.row("mean", *np.nanmean(rates, axis=0).tolist(), mean))
    record = {"rates": by_language, "mean": mean}
    fields = {**aligned.fields_of_texts(data), "k": NEIGHBOURS, "margin": args.matrix}
    fields |= {"encoder": encoder_names(encoder, map(iso_639_1, names))}
    return sign(show, "xsim-matrix", record, **fields, interval=INTERVAL_METHOD)
