"""Texts in many languages, aligned by line.

Files are ``xx.txt``, ``newstest2019-ref.xxx.txt`` of NTREX-128 (and ``-src.`` for the original),
and ``xxx_Yyyy.dev`` or ``.devtest`` of FLORES.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from encoder import Encoder
from eval.data.languages import encoders_of_languages, name_of
from eval.data.textfiles import choose, files_matching, read_aligned
from eval.tasks.arguments import add_directory, add_languages, chosen_languages
from eval.tasks.suite import fields_of
from miner.arrays import Matrix

LAYOUT = r"(?:newstest2019-(?:ref|src)\.)?([\w-]+)\.(?:txt|dev|devtest)"
ENGLISH = ("en", "eng", "eng_Latn")  # its names in the three layouts

Encode = Callable[[Encoder, Sequence[str], str], Matrix]  # sentences of a language


@dataclass(frozen=True, kw_only=True)
class AlignedTexts:
    """The file and N lines of each language, where lines i are translations."""

    files: dict[str, Path]
    texts: dict[str, list[str]]

    @property
    def languages(self) -> list[str]:
        """The names of the languages, in the order of ``texts``."""
        return list(self.texts)


def aligned_files(directory: Path) -> dict[str, Path]:
    """Find the files of aligned texts in a folder by language name, sorted.

    Raises:
        ValueError: ``directory`` is not a folder with such files, or has several of one language.
    """
    files: dict[str, Path] = {}
    for path, match in files_matching(directory, LAYOUT).items():
        if path.is_file() and (known := files.setdefault(match[1], path)) != path:
            raise ValueError(
                f"{directory}: {known.name} and {path.name} are both of the language "
                f"{match[1]!r}; remove one"
            )
    if not files:
        raise ValueError(
            f"{directory}: contains no aligned texts; expected a file per language, such as "
            "de.txt, newstest2019-ref.deu.txt or deu_Latn.devtest"
        )
    return dict(sorted(files.items()))


def english_of(languages: Sequence[str], directory: Path) -> str:
    """Return the first of en, eng and eng_Latn that is among ``languages``.

    Raises:
        ValueError: English is missing. The message names ``directory``.
    """
    if names := [name for name in ENGLISH if name in languages]:
        return names[0]
    expected = " or ".join(ENGLISH)
    raise ValueError(f"{directory}: no English text; add a file named by the language {expected}")


def load_aligned(directory: Path, languages: Sequence[str] | None = None) -> AlignedTexts:
    """Load aligned texts from a folder.

    ``languages`` are loaded once each, in order, or all if None. ``de`` also finds ``deu_Latn``,
    which is the name in the result. Errors of ``aligned_files`` and ``read_aligned`` are raised,
    and ValueError for a missing language.
    """
    available = aligned_files(directory)
    requested = list(available) if languages is None else languages
    names = dict.fromkeys(name_of(name, available) for name in requested)
    problem = f"{directory}: no language"
    files = {name: choose(available, name, problem, "--lang") for name in names}
    texts = read_aligned(*files.values())
    return AlignedTexts(files=files, texts=dict(zip(files, texts, strict=True)))


def add_aligned_data(parser: argparse.ArgumentParser) -> None:
    """Add ``directory`` and ``--lang``, a list or None, for ``load_texts``."""
    layouts = "xx.txt, newstest2019-ref.xxx.txt or xxx_Yyyy.devtest per language, also English"
    add_directory(parser, holds=f"{layouts}, in which lines i translate each other")
    add_languages(parser, named="languages to compare with English, such as de, deu or deu_Latn")


def load_texts(args: argparse.Namespace) -> tuple[AlignedTexts, str]:
    """Load texts by ``add_aligned_data``'s options, and the name of English.

    Raises:
        ValueError: Data are missing or malformed, or English is the only language.
    """
    known = list(aligned_files(args.directory))
    english = english_of(known, args.directory)
    data = load_aligned(args.directory, [*chosen_languages(args, known), english])
    if data.languages == [english]:
        raise ValueError(
            f"--lang {' '.join(args.lang)}: English is the only language; pass others of "
            f"{args.directory}, which has {', '.join(known)}"
        )
    return data, english


def fields_of_texts(data: AlignedTexts) -> dict[str, object]:
    """Return ``languages``, ``sentences`` of each and ``sha256`` to sign."""
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
    """Yield the vectors of each language and of English.

    An item is a language other than English, its vectors, and English vectors, float32, by the
    parts of a joined encoder that know both languages. Each side is (N + M, D): its N lines, then
    its own M lines in ``more``, if any. ``encode``, by default ``Encoder.encode``, takes an
    encoder, sentences and their language. Errors of ``encoders_of_languages`` are raised.
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
