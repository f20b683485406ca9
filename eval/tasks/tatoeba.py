"""Error rate of nearest-neighbour search by cosine, into English and back, beside LASER's."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from encoder import Encoder
from eval.data.languages import iso_639_3
from eval.data.published import published
from eval.data.tatoeba import load_tatoeba, tatoeba_languages
from eval.encoding import own_encoders
from eval.metrics.similarity import SearchErrors, search_errors
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import Figure, Suite, mean_figure

REMARK = (
    "LASER: Artetxe & Schwenk 2019, Massively Multilingual Sentence Embeddings for Zero-Shot "
    "Cross-Lingual Transfer and Beyond, TACL 7, tables 1 and 9"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="tatoeba.xxx-eng.xxx and .eng")
    add_languages(parser, named="ISO 639-3 or 639-1 codes")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the sentences.

    Raises:
        ValueError: there are none, or not of a language.
    """
    names = chosen_languages(args, tatoeba_languages(args.directory))
    texts = {name: load_tatoeba(args.directory, name) for name in names}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (name, both) in enumerate(texts.items()):
            errors = language_errors(encoder, name, *both)
            # A pair is a unit, with the mean of its errors in both directions.
            missed = (errors.forward.astype(np.float64) + errors.backward) / 2
            rates = {"xx->en": errors.forward_rate, "en->xx": errors.backward_rate}
            others = published("tatoeba", iso_639_3(name), size=errors.sentences)
            figure = mean_figure(name, missed, stream=stream)
            yield replace(figure, lower=True, beside={**rates, **others})

    return Suite(
        task="tatoeba",
        label="language",
        fields={
            "languages": ",".join(texts),
            "sentences": sum(len(foreign) for foreign, _ in texts.values()),
            "similarity": "cosine",
        },
        measure=measure,
        before=("xx->en", "en->xx"),
        figure="mean",
        after=("LASER",),
        remark=REMARK,
        languages=list(texts),
    )


def language_errors(
    encoder: Encoder, language: str, foreign: Sequence[str], english: Sequence[str]
) -> SearchErrors:
    """Search by cosine between sentences of a language and their translations.

    Raises:
        ValueError: there are no sentences.
    """
    own, other = own_encoders(encoder, (language, "en"))
    return search_errors(own.encode(foreign), other.encode(english))
