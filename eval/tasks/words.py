"""Measure word translation by cosine (NN) and CSLS, and word similarity.

Similarity is correlated with human scores. Target words are of --vocabulary and the dictionaries.
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.languages import encoders_of_languages
from eval.metrics.bootstrap import moments, pearson
from eval.metrics.similarity import CSLS_NEIGHBOURS, translation_ranks
from eval.tasks import suite
from eval.tasks.arguments import add_files_of_languages, add_sides, by_language, languages_of_sides
from eval.tasks.suite import Figure, Suite, mean_figure, published
from miner.arrays import FloatArray, Matrix
from miner.commandline import parse_number
from miner.storage.streams import read_lines

DOUBTFUL = frozenset({"pn", "nw"})  # names and non-words (Kementchedjhieva et al. 2019)
DEPTHS = (1, 5, 10)
TARGETS = 200_000  # target words of the published figures
REMARK = (
    "MUSE: Conneau et al. 2018, among 200,000 target words; among fewer, translations are easier "
    "to find. r, rho, hm: Pearson's, Spearman's, their harmonic mean, in percent"
)
_SCORES = ("SimLex999", "Average Score", "Human (mean)")  # names of the column
_LANGUAGES = re.compile(r"([a-z]{2,3})(?:-([a-z]{2,3}))?\.")

Languages = tuple[str, str]
Rows = Sequence[Sequence[str]]
Vocabularies = dict[str, list[str]]  # by language
Side = tuple[Sequence[str], Matrix]  # words and their vectors


@dataclass(frozen=True, kw_only=True)
class WordPairs:
    """N word pairs of a file, with scores or as a dictionary.

    ``scores``, float64 (N,), are human judgements, or None for a dictionary. ``kinds`` are the
    categories of a dictionary's pairs, "" for a line without one.
    """

    path: Path
    languages: Languages
    pairs: Sequence[tuple[str, str]]
    kinds: Sequence[str] = ()
    scores: FloatArray | None = None

    def translations(self, *, doubtful: bool = True) -> dict[str, set[str]]:
        """Return the translations of each source word of a dictionary.

        Words are in file order. Unless ``doubtful``, pairs of names and non-words are skipped.
        """
        translations: dict[str, set[str]] = {}
        for (source, target), kind in zip(self.pairs, self.kinds, strict=True):
            if doubtful or kind not in DOUBTFUL:
                translations.setdefault(source, set()).add(target)
        return translations


def read_words(path: Path, languages: Languages | None = None) -> WordPairs:
    """Read a file of scored word pairs, or a dictionary ``xx-yy.*``.

    Columns are separated by tabs, two or more commas, or white space. A file is scored if line 1
    has the heading SimLex999, Average Score or Human (mean), or a number in the third column. A
    line of a dictionary has a word, its translation, and possibly a category. ``languages`` apply
    to scored pairs if the file's name does not begin with ``xx-yy.`` or ``xx.``.

    Raises:
        ValueError: The file is empty, unreadable or malformed, all scores are equal, or languages
            are missing.
    """
    lines = read_lines(path)
    comma = bool(lines) and "\t" not in lines[0] and lines[0].count(",") > 1
    rows = [line.split("," if comma else "\t" if "\t" in line else None) for line in lines]
    if not rows:
        raise ValueError(f"{path}: empty; expected two words per line")
    if len(rows[0]) < 2:
        raise ValueError(f"{path} line 1: expected two words, not {lines[0][:60]!r}")
    column = next((rows[0].index(name) for name in _SCORES if name in rows[0]), None)
    if column is not None:
        return _scored(path, rows[1:], column, first=2, languages=languages)
    if len(rows[0]) > 2 and _is_number(rows[0][2]):
        return _scored(path, rows, 2, first=1, languages=languages)
    return _dictionary(path, rows)


def _dictionary(path: Path, rows: Rows) -> WordPairs:
    match = _LANGUAGES.match(path.name)
    if not match or match[2] is None:
        raise ValueError(
            f"{path}: name does not begin with the dictionary's languages; rename it as de-en.txt, "
            "or, if its pairs have scores, name their column 'Human (mean)'"
        )
    for number, row in enumerate(rows, start=1):
        if len(row) < 2:
            text = " ".join(row)[:60]
            expected = "expected a word and its translation"
            raise ValueError(f"{path} line {number}: {expected}, not {text!r}")
    kinds = [row[2] if len(row) > 2 else "" for row in rows]
    pairs = [(row[0], row[1]) for row in rows]
    return WordPairs(path=path, languages=(match[1], match[2]), pairs=pairs, kinds=kinds)


def _scored(
    path: Path, rows: Rows, column: int, *, first: int, languages: Languages | None
) -> WordPairs:
    for number, row in enumerate(rows, start=first):
        if len(row) <= column or not _is_number(row[column]):
            text = " ".join(row)[:60]
            raise ValueError(f"{path} line {number}: expected two words and a score, not {text!r}")
    scores = np.array([float(row[column]) for row in rows])
    if len(set(scores.tolist())) < 2:
        raise ValueError(
            f"{path}: fewer than 2 different scores; pass word pairs with graded scores"
        )
    if match := _LANGUAGES.match(path.name):
        languages = match[1], match[2] or match[1]
    if languages is None:
        raise ValueError(
            f"{path}: name does not begin with the language of its words, as de.txt; rename it, or "
            "pass --lang"
        )
    pairs = [(row[0], row[1]) for row in rows]
    return WordPairs(path=path, languages=languages, pairs=pairs, scores=scores)


def _is_number(text: str) -> bool:
    return math.isfinite(parse_number(text))


def read_vocabulary(path: Path) -> list[str]:
    """Read the distinct first words of lines, in order.

    A word ends at a space. Blank lines, and a first line of two numbers (``.vec``), are skipped.

    Raises:
        ValueError: The file has no words or cannot be read.
    """
    lines = [line.lstrip(" ").split(" ", 1) for line in read_lines(path) if line.strip()]
    header = bool(lines) and len(lines[0]) == 2 and all(map(str.isdecimal, lines[0]))
    words = list(dict.fromkeys(line[0] for line in lines[header:]))
    if not words:
        raise ValueError(f"{path}: no words; expected one per line")
    return words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    text = (
        "file xx-yy.*, one word and its translation per line (MUSE), or any file of two words and "
        "a score (SemEval-2017, SimLex-999, WordSim-353); or a folder of such files"
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=text)
    words = "more words of XX to search translations among, one per line, or a .vec file"
    add_files_of_languages(parser, "--vocabulary", words)
    default = "the languages in the file's name, as de-en.txt, which replace --lang"
    add_sides(parser, default=default)


def prepare(args: argparse.Namespace) -> Suite:
    """Load files of word pairs and vocabularies, as a suite.

    Raises:
        ValueError: A file or ``--lang`` is wrong, or a vocabulary's language has no dictionary.
    """
    listings = [sorted(path.iterdir()) if path.is_dir() else [path] for path in args.files]
    paths = [path for listing in listings for path in listing]
    files = [read_words(path, languages_of_sides(args)) for path in paths]
    more = by_language(args.vocabulary, read_vocabulary)
    vocabularies = _vocabularies([pairs for pairs in files if pairs.scores is None], more)
    if unknown := sorted(more.keys() - vocabularies.keys()):
        raise ValueError(
            f"--vocabulary {unknown[0]}=...: the dictionaries are only of "
            f"{', '.join(vocabularies) or 'no language'}; pass a dictionary of {unknown[0]}, or "
            "omit this --vocabulary"
        )

    def measure(encoder: Encoder) -> Iterator[Figure]:
        vectors: dict[Languages, Matrix] = {}  # by language and by name of its encoder
        for stream, pairs in enumerate(files):
            encoders = encoders_of_languages(encoder, pairs.languages)
            if pairs.scores is not None:
                yield from _similarity(encoders, pairs, pairs.scores, stream)
                continue
            sides = []
            for language, model in zip(pairs.languages, encoders, strict=True):
                if (language, model.name) not in vectors:
                    vectors[language, model.name] = model.encode(vocabularies[language])
                sides.append((vocabularies[language], vectors[language, model.name]))
            yield from _translation(pairs, *sides, stream=stream)

    used = [*paths, *(path for _, path in args.vocabulary)]
    targets = ",".join(f"{name}={len(words)}" for name, words in vocabularies.items()) or "none"
    fields = suite.fields_of(used, files=len(files), targets=targets, k=CSLS_NEIGHBOURS)
    return Suite("words", fields, measure, label="file", remark=REMARK, unit="words", width=30)


def _vocabularies(dictionaries: Sequence[WordPairs], more: Vocabularies) -> Vocabularies:
    vocabularies: dict[str, dict[str, None]] = {}
    for dictionary in dictionaries:
        for language in dictionary.languages:
            vocabularies.setdefault(language, dict.fromkeys(more.get(language, ())))
        for pair in dictionary.pairs:
            for language, word in zip(dictionary.languages, pair, strict=True):
                vocabularies[language].setdefault(word)
    return {language: list(words) for language, words in vocabularies.items()}


def _translation(pairs: WordPairs, source: Side, target: Side, *, stream: int) -> Iterator[Figure]:
    row_of = [{word: row for row, word in enumerate(words)} for words, _ in (source, target)]
    translations = pairs.translations()
    words = list(translations)
    queries = source[1][[row_of[0][word] for word in words]]
    gold = [[row_of[1][target] for target in sorted(translations[word])] for word in words]
    ranks = translation_ranks(queries, target[1], source[1], gold)
    name = "-".join(pairs.languages)
    size = min(len(target[0]), TARGETS)
    for method, method_ranks in ranks.items():
        for depth in DEPTHS:
            is_main = method == "CSLS" and depth == 1
            figure = mean_figure(f"{name} {method} P@{depth}", method_ranks <= depth, stream=stream)
            beside = published("words", name, size=size) if is_main else {"MUSE": None}
            yield replace(figure, beside=beside, in_mean=is_main)
    certain = pairs.translations(doubtful=False)
    if len(certain) < len(words):
        kept = ranks["CSLS"][np.array([word in certain for word in words])]
        figure = mean_figure(f"{name} CSLS P@1, no names", kept <= 1, stream=stream)
        yield replace(figure, in_mean=False)


def _similarity(
    encoders: Sequence[Encoder], pairs: WordPairs, scores: FloatArray, stream: int
) -> Iterator[Figure]:
    sides = zip(encoders, zip(*pairs.pairs, strict=True), strict=True)
    vectors = (model.encode(side) for model, side in sides)
    cosines = np.einsum("nd,nd->n", *vectors, dtype=np.float64)
    name = pairs.path.name.removesuffix(".xz").rpartition(".")[0]
    values = [(cosines, scores), (suite.ranks(cosines), suite.ranks(scores))]
    units = np.hstack([moments(*variables) for variables in values])
    for figure in (
        suite.correlation_figure(f"{name} r", *values[0], stream=stream),
        suite.correlation_figure(f"{name} rho", *values[1], stream=stream),
        suite.figure_of(f"{name} hm", units, _harmonic, stream=stream),
    ):
        yield replace(figure, in_mean=False)


def _harmonic(sums: FloatArray) -> FloatArray:
    r, rho = (np.maximum(pearson(part), 0) for part in np.split(sums, 2, axis=1))
    mean: FloatArray = np.divide(2 * r * rho, r + rho, out=np.zeros_like(r), where=r + rho > 0)
    return mean
