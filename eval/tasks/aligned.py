"""Texts in many languages, aligned by line.

There are three layouts: ``xx.txt``; ``newstest2019-ref.xxx.txt`` of NTREX-128 (and ``-src.`` for
the original); ``xxx_Yyyy.dev`` or ``.devtest`` of FLORES.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from encoder import Encoder
from encoder.rows import Matrix
from eval.data.languages import encoders_of_languages, name_of
from eval.data.textfiles import files_matching
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import fields_of
from miner.storage.streams import read_lines

LAYOUT = r"(?:newstest2019-(?:ref|src)\.)?([\w-]+)\.(?:txt|dev|devtest)"
ENGLISH = ("en", "eng", "eng_Latn")  # its names in the three layouts

Encode = Callable[[Encoder, Sequence[str], str], Matrix]  # sentences of a language


@dataclass(frozen=True, kw_only=True)
class AlignedTexts:
    """Lines by language, which translate each other if their index is equal."""

    files: dict[str, Path]
    texts: dict[str, list[str]]

    @property
    def languages(self) -> list[str]:
        """The languages, in the order of the request."""
        return list(self.texts)


def aligned_files(directory: Path) -> dict[str, Path]:
    """Find the file of each language, sorted.

    Raises:
        ValueError: The folder contains none, or several for a language.
    """
    files: dict[str, Path] = {}
    for path, match in files_matching(directory, LAYOUT).items():
        if path.is_file() and (known := files.setdefault(match[1], path)) != path:
            raise ValueError(
                f"{directory}: {known.name} and {path.name} are both of the language "
                f"{match[1]!r}; leave one in the folder"
            )
    if not files:
        raise ValueError(
            f"{directory}: no aligned texts; expected xx.txt, newstest2019-ref.xxx.txt or "
            "xxx_Yyyy.devtest for each language"
        )
    return dict(sorted(files.items()))


def english_of(languages: Sequence[str], directory: Path) -> str:
    """Return the name of English among ``languages``.

    Raises:
        ValueError: English is not among them.
    """
    if names := [name for name in ENGLISH if name in languages]:
        return names[0]
    expected = ", ".join(ENGLISH)
    raise ValueError(f"{directory}: no English text; expected one of the languages {expected}")


def load_aligned(directory: Path, languages: Sequence[str] | None = None) -> AlignedTexts:
    """Load the texts of ``languages``, or of all languages.

    Raises:
        ValueError: The folder has no such files, or two of a language. A language is missing, a
            file is empty, or numbers of lines differ.
    """
    files = aligned_files(directory)
    requested = list(files) if languages is None else languages
    names = list(dict.fromkeys(name_of(name, files) or name for name in requested))
    for name in names:
        if name not in files:
            raise ValueError(f"{directory}: no language {name!r}; it has {', '.join(files)}")
    texts = {name: read_lines(files[name]) for name in names}
    first = names[0]
    for name, lines in texts.items():
        if not lines:
            raise ValueError(f"{files[name]}: empty")
        if len(lines) != len(texts[first]):
            raise ValueError(
                f"{files[name]} has {len(lines)} lines but {files[first]} has "
                f"{len(texts[first])}; line i of one must translate line i of the other"
            )
    return AlignedTexts(files={name: files[name] for name in names}, texts=texts)


def add_aligned_data(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``load_texts`` reads."""
    layouts = "xx.txt, newstest2019-ref.xxx.txt or xxx_Yyyy.devtest per language"
    add_directory(parser, holds=layouts)
    add_languages(parser, named="languages next to English, by the names of the files")


def load_texts(args: argparse.Namespace) -> tuple[AlignedTexts, str]:
    """Load the texts of the requested languages, and return English's name.

    Raises:
        ValueError: Data are missing or malformed, or English is the only language.
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


def fields_of_texts(data: AlignedTexts) -> dict[str, object]:
    """Return the fields of a signature that describe the texts."""
    count = len(data.texts[data.languages[0]])
    fields = {"languages": ",".join(data.languages), "sentences": count}
    return fields_of(list(data.files.values()), **fields)


def encoded_sides(
    encoder: Encoder,
    data: AlignedTexts,
    english: str,
    more: Mapping[str, Sequence[str]] | None = None,
    encode: Encode = lambda model, sentences, language: model.encode(sentences),
) -> Iterator[tuple[str, Matrix, Matrix]]:
    """Yield each language, and vectors (N, D) of its texts and of English.

    The parts of a joined encoder that know both languages make them. Lines of ``more`` come last.
    """

    def embed(model: Encoder, language: str) -> Matrix:
        sentences = [*data.texts[language], *(more or {}).get(language, ())]
        return encode(model, sentences, language)

    of_english: dict[str, Matrix] = {}
    for language in data.languages:
        if language == english:
            continue
        model, english_model = encoders_of_languages(encoder, (language, english))
        if english_model.name not in of_english:
            of_english[english_model.name] = embed(english_model, english)
        yield language, embed(model, language), of_english[english_model.name]
