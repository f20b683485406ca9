"""Shared by tasks on aligned texts: options, the texts, their vectors, part of a signature."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

from encoder import Encoder
from encoder.rows import Matrix
from eval.data.aligned import AlignedTexts, aligned_files, english_of, load_aligned
from eval.data.textfiles import fingerprint
from eval.encoding import own_encoders
from eval.tasks.arguments import add_directory, add_languages, chosen_languages

Encode = Callable[[Encoder, Sequence[str], str], Matrix]  # sentences of a language


def fields_of_texts(data: AlignedTexts) -> dict[str, object]:
    """Return what a signature says of the texts."""
    return {
        "languages": ",".join(data.languages),
        "sentences": len(data.texts[data.languages[0]]),
        "sha256": fingerprint(*data.files.values()),
    }


def encoded_sides(
    encoder: Encoder,
    data: AlignedTexts,
    english: str,
    more: Mapping[str, Sequence[str]] | None = None,
    encode: Encode = lambda own, sentences, language: own.encode(sentences),
) -> Iterator[tuple[str, Matrix, Matrix]]:
    """Yield each other language, its sentences' vectors and those of English: float32 (N, D).

    Of a joined encoder, the parts that serve both languages make them. ``more`` are further
    sentences, by language.
    """

    def embed(own: Encoder, language: str) -> Matrix:
        sentences = [*data.texts[language], *(more or {}).get(language, ())]
        return encode(own, sentences, language)

    of_english: dict[str, Matrix] = {}
    for language in data.languages:
        if language == english:
            continue
        own, other = own_encoders(encoder, (language, english))
        if other.name not in of_english:
            of_english[other.name] = embed(other, english)
        yield language, embed(own, language), of_english[other.name]


def add_aligned_data(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``load_texts`` takes its texts from."""
    layouts = "xx.txt, newstest2019-ref.xxx.txt or xxx_Yyyy.devtest for each language"
    add_directory(parser, holds=layouts)
    add_languages(parser, named="languages as the files name them, besides English")


def load_texts(args: argparse.Namespace) -> tuple[AlignedTexts, str]:
    """Load the texts of the languages asked for and of English, and say what English is called.

    Raises:
        ValueError: data is missing or malformed, or there is nothing but English.
    """
    known = list(aligned_files(args.directory))
    english = english_of(known, args.directory)
    data = load_aligned(args.directory, [*chosen_languages(args, known), english])
    if data.languages == [english]:
        raise ValueError(
            f"{args.directory}: nothing to find {english!r} sentences from but themselves; "
            "give another language with --lang"
        )
    return data, english
