"""Measure how often search finds a translation among other sentences: P@1, P@5, P@10."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from encoder.rows import Matrix, normalize_rows, sum_rows
from encoder.tokenizer import Tokens
from encoder.words import WordEncoder
from eval.data.textfiles import fingerprint, read_lines
from eval.metrics.similarity import mean_of_nearest
from eval.tasks.aligned import add_aligned_data, encoded_sides, fields_of_texts, load_texts
from eval.tasks.arguments import ALL, add_files_of_languages, by_language, positive
from eval.tasks.suite import Figure, Suite, mean_figure

DEPTHS = (1, 5, 10)
BLOCK_ROWS = 1024


def translation_ranks(
    source: Matrix, target: Matrix, *, others: int | None, seed: int = 0, csls: bool = False
) -> NDArray[np.int64]:
    """Rank each source's translation among it and other targets: int64 (N,), from 1.

    Row i of float32 (N, D) is translated by row i of float32 (N + M, D), of unit or zero rows.
    ``others`` targets are drawn without replacement for each source, None being all; Guo et al.
    2018 and Chidambaram et al. 2019, "Learning Cross-Lingual Sentence Representations via a
    Multi-task Dual-Encoder Model", section 3.4, draw 999. A draw depends on ``seed`` and on the
    source's row alone; a ValueError says that there are not that many.

    A target as near as the translation stands before it if its row is smaller. A zero row is near
    to nothing: it, and what it translates, come last. With ``csls``, near is what CSLS says, not
    cosine; a target's neighbourhood is among the sources.
    """
    if others is not None and others > len(target) - 1:
        raise ValueError(
            f"{others} other sentences cannot be drawn of {len(target) - 1}; ask for fewer or all"
        )
    back = mean_of_nearest(target, source) / 2 if csls else np.float32(0)
    ranks = np.empty(len(source), dtype=np.int64)
    for start in range(0, len(source), BLOCK_ROWS):
        cosines = source[start : start + BLOCK_ROWS] @ target.T - back
        cosines[:, ~target.any(axis=1)] = -np.inf
        for row, near in enumerate(cosines, start):
            drawn = _others(row, len(target), others, seed)
            ahead = (near[drawn] > near[row]) | ((near[drawn] == near[row]) & (drawn < row))
            lost = not source[row].any() or near[row] == -np.inf
            ranks[row] = len(drawn) + 1 if lost else 1 + int(ahead.sum())
    return ranks


def _others(row: int, rows: int, others: int | None, seed: int) -> NDArray[np.int64]:
    """Draw ``others`` rows but ``row``, or return them all."""
    if others is None:
        return np.delete(np.arange(rows), row)
    drawn = np.random.default_rng([seed, row]).choice(rows - 1, size=others, replace=False)
    return drawn + (drawn >= row)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_aligned_data(parser)
    add = parser.add_argument
    text = "number of other sentences to search per translation, or all (default: 999)"
    add("--others", type=_number_or_all, default=999, metavar="K", help=text)
    more = "more sentences to search in a language, without translations"
    add_files_of_languages(parser, "--more", more)
    idf = "use mean word vectors, weighted by inverse document frequency in these sentences"
    add_files_of_languages(parser, "--idf", idf)
    add("--csls", action="store_true", help="search by CSLS instead of cosine")


def _number_or_all(text: str) -> int | None:
    return None if text == ALL else positive(text)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the texts, to retrieve from each language into English and back."""
    data, english = load_texts(args)
    more, counted = (by_language(given, read_lines) for given in (args.more, args.idf))
    names = data.languages
    if not {*names} >= more.keys() or counted.keys() not in (set(), {*names}):
        known = ", ".join(sorted(names))
        raise ValueError(f"--more takes files of {known}, and --idf one of each of them")

    def embed(own: Encoder, sentences: Sequence[str], language: str) -> Matrix:
        if not counted:
            return own.encode(sentences)
        return idf_weighted(own, sentences, counted[language])

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, vectors, of_english in encoded_sides(encoder, data, english, more, embed):
            for source, target, pair in (
                (vectors, of_english, f"{language}-{english}"),
                (of_english, vectors, f"{english}-{language}"),
            ):
                queries = source[: len(data.texts[language])]
                ranks = translation_ranks(queries, target, others=args.others, csls=args.csls)
                shares = {f"P@{depth}": float((ranks <= depth).mean()) for depth in DEPTHS}
                yield replace(mean_figure(pair, ranks == 1), beside=shares)

    others = ALL if args.others is None else args.others
    similarity = "csls" if args.csls else "cosine"
    fields = {**fields_of_texts(data), "others": others, "similarity": similarity}
    for name, given, texts in (("more", args.more, more), ("idf", args.idf, counted)):
        if given:
            digest = fingerprint(*(path for _, path in given))
            fields[name] = f"{sum(map(len, texts.values()))}-{digest}"
    after = [f"P@{depth}" for depth in DEPTHS[1:]]
    return Suite(
        "retrieval", fields, measure, label="pair", figure="P@1", after=after, languages=names
    )


def idf_weighted(own: Encoder, sentences: Sequence[str], counted: Sequence[str]) -> Matrix:
    """Return the means of sentences' words, at unit length: float32 (S, D).

    A word weighs the logarithm of how many of the sentences ``counted``, N, there are to each that
    has it, at most N (Conneau et al. 2018, section 3.3). A ValueError: the encoder has no words.
    """
    if not isinstance(own, WordEncoder):
        raise ValueError(f"encoder {own.name} has no word vectors for --idf")
    words = own.words([*counted, *sentences])
    tokens = Tokens(ids=words.ids, offsets=words.offsets)
    shown = tokens.take(np.arange(len(counted)))
    seen = np.unique(shown.owners * len(words.vectors) + shown.ids) % len(words.vectors)
    often = np.bincount(seen, minlength=len(words.vectors))
    idf = np.log(len(counted) / np.maximum(often, 1)).astype(np.float32)
    asked = tokens.take(np.arange(len(counted), len(tokens)))
    rows = sum_rows(words.vectors * idf[:, None], asked)
    normalize_rows(rows)
    return rows
