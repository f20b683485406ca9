"""One text in many languages, a file for each: line i translates line i of all others.

Three layouts: ``xx.txt``; NTREX-128's own, ``newstest2019-ref.xxx.txt`` (and ``-src.`` for the
original); FLORES's, ``xxx_Yyyy.dev`` or ``.devtest``.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from encoder import Encoder
from encoder.rows import Matrix
from eval.data.languages import encoders_of_languages, name_of
from eval.data.textfiles import files_matching, read_lines
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import fields_of

LAYOUT = r"(?:newstest2019-(?:ref|src)\.)?([\w-]+)\.(?:txt|dev|devtest)"
ENGLISH = ("en", "eng", "eng_Latn")  # what the three layouts call it

Encode = Callable[[Encoder, Sequence[str], str], Matrix]  # sentences of a language


@dataclass(frozen=True, kw_only=True)
class AlignedTexts:
    """``texts[language][i]`` says in that language what ``texts[other][i]`` says in the other."""

    files: dict[str, Path]
    texts: dict[str, list[str]]

    @property
    def languages(self) -> list[str]:
        """The languages, in the order asked for."""
        return list(self.texts)


def aligned_files(directory: Path) -> dict[str, Path]:
    """Find the file of each language, sorted; a ValueError: there is none, or two of a language."""
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
    """Return what English is called among ``languages``; a ValueError says that it is not there."""
    if found := [name for name in ENGLISH if name in languages]:
        return found[0]
    expected = ", ".join(ENGLISH)
    raise ValueError(f"{directory}: no English text; expected one of the languages {expected}")


def load_aligned(directory: Path, languages: Sequence[str] | None = None) -> AlignedTexts:
    """Load the texts of ``languages``, or of all there are, none empty or longer than another."""
    files = aligned_files(directory)
    wanted = list(files) if languages is None else languages
    names = list(dict.fromkeys(name_of(name, files) or name for name in wanted))
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
    """Add the options that ``load_texts`` takes its texts from."""
    layouts = "xx.txt, newstest2019-ref.xxx.txt or xxx_Yyyy.devtest per language"
    add_directory(parser, holds=layouts)
    add_languages(parser, named="languages next to English, by the names of the files")


def load_texts(args: argparse.Namespace) -> tuple[AlignedTexts, str]:
    """Load the texts of the languages asked for and of English; return what English is called, too.

    A ValueError says that data is missing or malformed, or that there is nothing but English.
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
    """Return what a signature says of the texts."""
    count = len(data.texts[data.languages[0]])
    known = {"languages": ",".join(data.languages), "sentences": count}
    return fields_of(list(data.files.values()), **known)


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
        own, other = encoders_of_languages(encoder, (language, english))
        if other.name not in of_english:
            of_english[other.name] = embed(other, english)
        yield language, embed(own, language), of_english[other.name]
