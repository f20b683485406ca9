"""Measure the error rate of cosine search, into English and back."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.languages import encoders_of_languages, iso_639_3
from eval.data.textfiles import choose, files_matching, read_aligned
from eval.metrics.similarity import search_errors
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import Figure, Suite, mean_figure, published
from miner.arrays import Mask

DIRECTIONS = ("xx->en", "en->xx")
REMARK = (
    "LASER: Artetxe & Schwenk 2019, Massively Multilingual Sentence Embeddings for Zero-Shot "
    "Cross-Lingual Transfer and Beyond, TACL 7, tables 1 and 9"
)


def tatoeba_languages(directory: Path) -> dict[str, Path]:
    """Find the file of each language in a folder by ISO 639-3 code, sorted.

    Raises:
        ValueError: ``directory`` is not a folder, or contains no Tatoeba data.
    """
    matches = files_matching(directory, r"tatoeba\.(\w+)-eng\.\1")
    if not matches:
        raise ValueError(f"{directory}: no Tatoeba data; expected tatoeba.deu-eng.deu, .eng etc.")
    return {match[1]: path for path, match in matches.items()}


def load_tatoeba(directory: Path, language: str) -> tuple[list[str], list[str]]:
    """Load the sentences of a language, and their English translations.

    ``language`` is an ISO 639 code. ValueError says that its files are missing or malformed.
    """
    files = tatoeba_languages(directory)
    path = choose(files, iso_639_3(language), f"{directory}: no language", "--lang")
    foreign, english = read_aligned(path, path.with_suffix(".eng"))
    return foreign, english


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="tatoeba.xxx-eng.xxx and .eng, whose lines i translate each other")
    add_languages(parser, named="languages to search from and to English, such as deu or de")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts as a suite, or raise errors of ``load_tatoeba``."""
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
) -> tuple[Mask, Mask]:
    """Find the errors of search from a language into English, and back.

    Sentence i of ``english`` translates sentence i of ``foreign``, N > 0 each. Both results are as
    in ``search_errors``, bool (N,). Errors of ``encoders_of_languages`` are raised.
    """
    model, english_model = encoders_of_languages(encoder, (language, "en"))
    return search_errors(model.encode(foreign), english_model.encode(english))
