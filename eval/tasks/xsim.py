"""Error rate of margin-best search from each language into English, or between every two."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from encoder import Encoder, load_encoder
from eval.data.aligned import AlignedTexts, aligned_files, english_of, load_aligned
from eval.data.languages import code_of
from eval.encoding import own_encoders
from eval.metrics.bootstrap import SIGNED
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest, search_errors, wrong
from eval.output import Record, Show, Table, encoder_names, signed
from eval.tasks.aligned import add_aligned_data, encoded_sides, fields_of_texts, load_texts
from eval.tasks.arguments import chosen_languages
from eval.tasks.suite import Figure, Suite, mean_figure, run_suite
from miner.margin import MARGINS

SHOWN = ("absolute", "distance", "ratio")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)
    parser.add_argument(
        "--matrix",
        choices=MARGINS,
        help="search between every two of the languages instead, by this margin (English is among "
        "them if --lang names it, or is left out)",
    )


def run(args: argparse.Namespace, show: Show) -> Record:
    """Search into English, or between all languages."""
    if args.matrix is None:
        return run_suite(prepare(args), args.encoder, show)
    known = list(aligned_files(args.directory))
    languages = chosen_languages(args, known)
    if args.lang is None:
        languages.append(english_of(known, args.directory))
    if len(languages) < 2:
        raise ValueError(f"--matrix: {languages[0]} alone has nothing to search in; name another")
    data = load_aligned(args.directory, languages)
    return _matrix(data, load_encoder(args.encoder), margin=args.matrix, show=show)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts for the search into English."""
    data, english = load_texts(args)

    def measure(encoder: Encoder) -> Iterator[Figure]:
        # The sentences are the same in all languages, so they are resampled together.
        for language, *both in encoded_sides(encoder, data, english):
            found = nearest(*both)
            missed = {margin: wrong(best_by_margin(*found, margin=margin)) for margin in SHOWN}
            beside = {margin: float(each.mean()) for margin, each in missed.items()}
            figure = mean_figure(language, missed["ratio"])
            yield replace(figure, lower=True, beside=beside)

    return Suite(
        task="xsim",
        fields={**fields_of_texts(data), "k": NEIGHBOURS, "target": english},
        measure=measure,
        before=SHOWN[:2],
        figure="ratio",
        languages=data.languages,
    )


def _matrix(data: AlignedTexts, encoder: Encoder, *, margin: str, show: Show) -> Record:
    """Search between every two languages, tabulated as by Schwenk & Douze 2017."""
    names = data.languages
    vectors = {
        name: own.encode(data.texts[name])
        for name, own in zip(names, own_encoders(encoder, names), strict=True)
    }
    rates = np.full((len(names), len(names)), np.nan)
    for row, source in enumerate(names):
        for column, target in enumerate(names[:row]):
            errors = search_errors(vectors[source], vectors[target], margin=margin)
            rates[row, column] = errors.forward_rate
            rates[column, row] = errors.backward_rate
    table = Table("from", [*names, "mean"])
    mean = float(np.nanmean(rates))
    show(table.header)
    by_language: Record = {}
    means = np.nanmean(rates, axis=1).tolist()
    for name, row_rates, row_mean in zip(names, rates.tolist(), means, strict=True):
        cells = {to: rate for to, rate in zip(names, row_rates, strict=True) if to != name}
        show(table.row(name, *map(cells.get, names), row_mean))
        by_language[name] = cells
    show(table.row("mean", *np.nanmean(rates, axis=0).tolist(), mean))
    record = {"rates": by_language, "mean": mean}
    fields = {**fields_of_texts(data), "k": NEIGHBOURS, "margin": margin}
    encoder_name = encoder_names(encoder, map(code_of, names))
    return signed(show, "xsim-matrix", record, **fields, encoder=encoder_name, interval=SIGNED)
