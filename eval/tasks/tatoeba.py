"""Similarity search by cosine between sentences and their English translations: error rates."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from eval.data.languages import code_of, iso_639_3
from eval.data.published import published
from eval.data.tatoeba import load_tatoeba, tatoeba_languages
from eval.encoding import own_encoders
from eval.metrics.bootstrap import SIGNED, mean_samples
from eval.metrics.similarity import SearchErrors, search_errors
from eval.output import Measured, Record, Rows, Show, Table, encoder_names, signed
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import Figure, Suite, mean_figure

PUBLISHED_SOURCE = (
    "Artetxe & Schwenk 2019, Massively Multilingual Sentence Embeddings for Zero-Shot "
    "Cross-Lingual Transfer and Beyond, TACL 7, tables 1 and 9"
)
Texts = dict[str, tuple[list[str], list[str]]]  # of each language, and their translations

TABLE = Table("language", ["sentences", "xx->en", "en->xx", "mean", "95% interval", "LASER"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "Error rate of nearest-neighbour search by cosine, both ways, beside LASER's."
    )
    add_directory(parser, holds="tatoeba.xxx-eng.xxx and .eng")
    add_languages(parser, named="ISO 639-3 or 639-1 codes")


def run(args: argparse.Namespace, show: Show) -> Record:
    """Search in every language, beside LASER's published error rates."""
    texts = _load(args)
    encoder = load_encoder(args.encoder)
    rows = Rows(TABLE, show)
    for stream, (name, both) in enumerate(texts.items()):
        errors = language_errors(encoder, name, *both)
        others = published("tatoeba", iso_639_3(name), size=errors.sentences)
        figures: dict[str, Measured] = {
            "xx_en": errors.forward_rate,
            "en_xx": errors.backward_rate,
            "mean": errors.rate,
            "interval": mean_samples(_mean_errors(errors), stream=stream),
            "published": others["LASER"],
        }
        rows.add(name, errors.sentences, figures)
    languages = {
        name: {"sentences": len(texts[name][0]), **row} for name, row in rows.records.items()
    }
    record = signed(
        show,
        "tatoeba",
        {"languages": languages, "mean": rows.mean(), "published_source": PUBLISHED_SOURCE},
        languages=",".join(texts),
        sentences=_count(texts),
        encoder=encoder_names(encoder, map(code_of, texts)),
        similarity="cosine",
        interval=SIGNED,
    )
    show(f"LASER: {PUBLISHED_SOURCE}")
    return record


def prepare(args: argparse.Namespace) -> Suite:
    """Load the sentences, for ``adit evaluate compare``.

    Raises:
        ValueError: there are none, or not of a language.
    """
    texts = _load(args)

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (name, both) in enumerate(texts.items()):
            errors = language_errors(encoder, name, *both)
            yield replace(mean_figure(name, _mean_errors(errors), stream=stream), lower=True)

    fields = {"languages": ",".join(texts), "sentences": _count(texts), "similarity": "cosine"}
    return Suite(task="tatoeba", label="language", fields=fields, measure=measure)


def language_errors(
    encoder: Encoder, language: str, foreign: Sequence[str], english: Sequence[str]
) -> SearchErrors:
    """Search by cosine between sentences of a language and their translations.

    Raises:
        ValueError: there are no sentences.
    """
    own, other = own_encoders(encoder, (language, "en"))
    return search_errors(own.encode(foreign), other.encode(english))


def _load(args: argparse.Namespace) -> Texts:
    names = chosen_languages(args, tatoeba_languages(args.directory))
    return {name: load_tatoeba(args.directory, name) for name in names}


def _count(texts: Texts) -> int:
    return sum(len(foreign) for foreign, _ in texts.values())


def _mean_errors(errors: SearchErrors) -> NDArray[np.float64]:
    """Return the mean of each pair's errors in both directions, float64 (N,): a pair is a unit."""
    return (errors.forward.astype(np.float64) + errors.backward) / 2
