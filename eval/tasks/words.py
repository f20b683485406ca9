"""P@1, P@5 and P@10 of word translation by cosine (NN) and CSLS, and similarity of two words.

The latter is the correlation with how alike people find them. Target words are those of
--vocabulary and of the dictionaries given.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data.published import published, publishers
from eval.data.words import Dictionary, ScoredWords, read_vocabulary, read_words
from eval.encoding import own_encoders
from eval.metrics.sts import moments, pearson
from eval.metrics.word_translation import NEIGHBOURS, translation_ranks
from eval.tasks.arguments import add_files_of_languages, add_sides, by_language, languages_of_sides
from eval.tasks.suite import (
    Figure,
    Suite,
    correlation_figure,
    fields_of,
    mean_figure,
    ranks,
)

DEPTHS = (1, 5, 10)
TARGETS = 200_000  # target words of the published figures
REMARK = (
    "MUSE: Conneau et al. 2018, among 200,000 target words; among fewer, translations are easier "
    "to find. r, rho, hm: Pearson's, Spearman's, their harmonic mean, in per cent"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="xx-yy.*, a word and its translation a line (MUSE), or two words and a score "
        "(SemEval-2017, SimLex-999, WordSim-353); or a folder of such files",
    )
    words = "more words of a language, one a line, or a .vec file"
    add_files_of_languages(parser, "--vocabulary", words)
    add_sides(parser, default="what the file's name begins with")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the files.

    Raises:
        ValueError: one is malformed, or words are given of a language of no dictionary.
    """
    paths = [path for given in args.files for path in _files(given)]
    files = [read_words(path, languages_of_sides(args)) for path in paths]
    given = by_language(args.vocabulary, read_vocabulary)
    vocabularies = _vocabularies([one for one in files if isinstance(one, Dictionary)], given)
    if unknown := sorted(given.keys() - vocabularies.keys()):
        raise ValueError(
            f"--vocabulary {unknown[0]}: no dictionary of that language is among the files; those "
            f"of {', '.join(vocabularies) or 'none'} are"
        )

    def measure(encoder: Encoder) -> Iterator[Figure]:
        vectors: dict[tuple[str, str], NDArray[np.float32]] = {}
        for stream, one in enumerate(files):
            if isinstance(one, ScoredWords):
                yield from _similarity(encoder, one, stream)
                continue
            own = dict(zip(one.languages, own_encoders(encoder, one.languages), strict=True))
            for language, each in own.items():
                if (language, each.name) not in vectors:
                    vectors[language, each.name] = each.encode(vocabularies[language])
            both = {language: vectors[language, each.name] for language, each in own.items()}
            yield from _translation(one, vocabularies, both, stream)

    return Suite(
        task="words",
        label="file",
        fields=fields_of(
            [*paths, *(path for _, path in args.vocabulary)],
            files=len(files),
            targets=",".join(f"{name}={len(each)}" for name, each in vocabularies.items())
            or "none",
            k=NEIGHBOURS,
        ),
        measure=measure,
        after=publishers("words"),
        remark=REMARK,
        unit="words",
        width=30,
    )


def _files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _vocabularies(
    dictionaries: Sequence[Dictionary], given: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the words of each language: those given, then those of the dictionaries."""
    found: dict[str, dict[str, None]] = {}
    for one in dictionaries:
        for language in one.languages:
            found.setdefault(language, dict.fromkeys(given.get(language, ())))
        for pair in one.pairs:
            for language, word in zip(one.languages, pair, strict=True):
                found[language].setdefault(word)
    return {language: list(words) for language, words in found.items()}


def _translation(
    one: Dictionary,
    vocabularies: Mapping[str, Sequence[str]],
    vectors: Mapping[str, NDArray[np.float32]],
    stream: int,
) -> Iterator[Figure]:
    source, target = one.languages
    place = {
        language: {word: row for row, word in enumerate(vocabularies[language])}
        for language in one.languages
    }
    translations = one.translations()
    words = list(translations)
    found = translation_ranks(
        vectors[source][[place[source][word] for word in words]],
        vectors[target],
        vectors[source],
        [[place[target][other] for other in sorted(translations[word])] for word in words],
    )
    name = f"{source}-{target}"
    size = min(len(vocabularies[target]), TARGETS)
    for method, reached in found.items():
        for depth in DEPTHS:
            main = method == "CSLS" and depth == 1
            figure = mean_figure(f"{name} {method} P@{depth}", reached <= depth, stream=stream)
            others = published("words", name, size=size) if main else {"MUSE": None}
            yield replace(figure, beside=others, in_mean=main)
    kept = one.translations(doubtful=False)
    if len(kept) < len(words):
        there = np.array([word in kept for word in words])
        figure = mean_figure(f"{name} CSLS P@1, no names", found["CSLS"][there] <= 1, stream=stream)
        yield replace(figure, in_mean=False)


def _similarity(encoder: Encoder, one: ScoredWords, stream: int) -> Iterator[Figure]:
    sides = [
        own.encode(words)
        for own, words in zip(
            own_encoders(encoder, one.languages), (one.first, one.second), strict=True
        )
    ]
    cosines = np.einsum("nd,nd->n", *sides, dtype=np.float64)
    name = one.path.name.removesuffix(".xz").rpartition(".")[0]
    both = [(cosines, one.scores), (ranks(cosines), ranks(one.scores))]
    for label, (x, y) in zip(("r", "rho"), both, strict=True):
        figure = correlation_figure(f"{name} {label}", x, y, stream=stream)
        yield replace(figure, in_mean=False)
    units = np.hstack([moments(*each) for each in both])
    yield Figure(name=f"{name} hm", units=units, statistic=_harmonic, stream=stream, in_mean=False)


def _harmonic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the harmonic mean of two correlations, 0 where one is not above 0."""
    r, rho = (np.maximum(pearson(part), 0) for part in np.split(sums, 2, axis=1))
    found: NDArray[np.float64]
    found = np.divide(2 * r * rho, r + rho, out=np.zeros_like(r), where=r + rho > 0)
    return found
