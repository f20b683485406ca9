"""xSIM: margin search among aligned texts, into English or between every two languages."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from encoder import Encoder, load_encoder
from eval.data.aligned import AlignedTexts, aligned_files, english_of, load_aligned
from eval.encoding import own_encoders
from eval.metrics.bootstrap import mean_samples
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest, search_errors, wrong
from eval.output import Record, Rows, Show, Table
from eval.tasks.aligned import add_aligned_data, encoded_sides, load_texts, sign
from eval.tasks.arguments import chosen_languages
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure
from miner.margin import MARGINS

SHOWN = ("absolute", "distance", "ratio")
TABLE = Table("language", ["sentences", *SHOWN, "95% interval"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = "Error rate of margin-best search from each language into English."
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
        return _into_english(args, show)
    known = list(aligned_files(args.directory))
    languages = chosen_languages(args, known)
    if args.lang is None:
        languages.append(english_of(known, args.directory))
    if len(languages) < 2:
        raise ValueError(f"--matrix: {languages[0]} alone has nothing to search in; name another")
    data = load_aligned(args.directory, languages)
    return _matrix(data, load_encoder(args.encoder), margin=args.matrix, show=show)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts, for ``adit evaluate compare``: errors of the search into English by ratio.

    Raises:
        ValueError: data is missing or malformed.
    """
    data, english = load_texts(args)

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, sources, targets in encoded_sides(encoder, data, english):
            missed = wrong(best_by_margin(*nearest(sources, targets), margin="ratio"))
            yield replace(mean_figure(language, missed), lower=True)

    fields = {"languages": ",".join(data.languages), "k": NEIGHBOURS, "margin": "ratio"}
    files = list(data.files.values())
    return Suite(task="xsim", label="language", fields=fields_of(files, **fields), measure=measure)


def _into_english(args: argparse.Namespace, show: Show) -> Record:
    data, english = load_texts(args)
    encoder = load_encoder(args.encoder)
    rows = Rows(TABLE, show)
    for language, *both in encoded_sides(encoder, data, english):
        forward, backward = nearest(*both)
        errors = {
            margin: wrong(best_by_margin(forward, backward, margin=margin)) for margin in SHOWN
        }
        rates = {margin: float(missed.mean()) for margin, missed in errors.items()}
        # The sentences are the same in all languages, so they are resampled together.
        rows.add(language, len(forward), {**rates, "interval": mean_samples(errors["ratio"])})
    mean = rows.mean()
    record = {"languages": rows.records, "mean": mean}
    return sign(show, "xsim", record, encoder, data, k=NEIGHBOURS, target=english)


def _matrix(data: AlignedTexts, encoder: Encoder, *, margin: str, show: Show) -> Record:
    """Search between every two languages, tabulated as by Schwenk & Douze 2017.

    Rows are the languages searched from, columns those searched in.
    """
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
    for name, row_rates, row_mean in zip(
        names, rates.tolist(), np.nanmean(rates, axis=1).tolist(), strict=True
    ):
        cells = [None if np.isnan(rate) else rate for rate in row_rates]
        show(table.row(name, *cells, row_mean))
    show(table.row("mean", *np.nanmean(rates, axis=0).tolist(), mean))
    by_language = {
        source: {
            target: float(rates[row, column])
            for column, target in enumerate(names)
            if row != column
        }
        for row, source in enumerate(names)
    }
    record = {"rates": by_language, "mean": mean}
    return sign(show, "xsim-matrix", record, encoder, data, k=NEIGHBOURS, margin=margin)
