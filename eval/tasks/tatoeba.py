"""Measure the error rate of cosine search, into English and back."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.languages import encoders_of_languages, iso_639_3
from eval.data.textfiles import files_matching
from eval.metrics.similarity import Flags, search_errors
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import Figure, Suite, mean_figure, published
from miner.storage.streams import read_lines

DIRECTIONS = ("xx->en", "en->xx")
REMARK = (
    "LASER: Artetxe & Schwenk 2019, Massively Multilingual Sentence Embeddings for Zero-Shot "
    "Cross-Lingual Transfer and Beyond, TACL 7, tables 1 and 9"
)


def tatoeba_languages(directory: Path) -> list[str]:
    """Return the sorted ISO 639-3 codes of the folder's languages.

    Raises:
        ValueError: The folder contains no Tatoeba data.
    """
    matches = files_matching(directory, r"tatoeba\.(\w+)-eng\.\1")
    if not matches:
        raise ValueError(f"{directory}: no Tatoeba data; expected tatoeba.xxx-eng.xxx and .eng")
    return [match[1] for match in matches.values()]


def load_tatoeba(directory: Path, language: str) -> tuple[list[str], list[str]]:
    """Load the sentences of a language, with any code, and translations.

    Raises:
        ValueError: The language is missing, a file is empty, or numbers of lines differ.
    """
    code = iso_639_3(language)
    codes = tatoeba_languages(directory)
    if code not in codes:
        raise ValueError(f"{directory}: no language {language!r}; choose from {', '.join(codes)}")
    path = directory / f"tatoeba.{code}-eng.{code}"
    foreign, english = read_lines(path), read_lines(path.with_suffix(".eng"))
    if len(foreign) != len(english):
        raise ValueError(
            f"{path} has {len(foreign)} lines but its English side has {len(english)}; "
            "line i of one must translate line i of the other"
        )
    if not foreign:
        raise ValueError(f"{path}: empty")
    return foreign, english


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="tatoeba.xxx-eng.xxx and .eng")
    add_languages(parser, named="ISO 639-3 or 639-1 codes")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the sentences."""
    names = chosen_languages(args, tatoeba_languages(args.directory))
    texts = {name: load_tatoeba(args.directory, name) for name in names}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (name, sides) in enumerate(texts.items()):
            forward, backward = language_errors(encoder, name, *sides)
            # A pair is a unit, with the mean of its errors in both directions.
            errors = (forward.astype(np.float64) + backward) / 2
            rates = (float(mask.mean()) for mask in (forward, backward))
            others = published("tatoeba", iso_639_3(name), size=len(forward))
            beside = {**dict(zip(DIRECTIONS, rates, strict=True)), **others}
            yield replace(mean_figure(name, errors, stream=stream), lower=True, beside=beside)

    count = sum(len(foreign) for foreign, _ in texts.values())
    fields = {"languages": ",".join(texts), "sentences": count, "similarity": "cosine"}
    return Suite(
        "tatoeba", fields, measure, before=DIRECTIONS, figure="mean", remark=REMARK, languages=names
    )


def language_errors(
    encoder: Encoder, language: str, foreign: Sequence[str], english: Sequence[str]
) -> tuple[Flags, Flags]:
    """Return the errors of search by cosine into English and back, (N,) each."""
    model, english_model = encoders_of_languages(encoder, (language, "en"))
    return search_errors(model.encode(foreign), english_model.encode(english))
