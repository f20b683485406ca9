"""Measure how often the translation is among the 1, 5 and 10 nearest."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from encoder import Encoder
from encoder.rows import normalize_rows, sum_rows
from encoder.words import WordEncoder
from eval.data.textfiles import fingerprint
from eval.metrics.similarity import mean_of_nearest
from eval.tasks import aligned
from eval.tasks.arguments import ALL, add_files_of_languages, by_language, positive
from eval.tasks.suite import Figure, Suite, mean_figure
from miner.arrays import IntArray, Matrix
from miner.storage.streams import read_lines

DEPTHS = (1, 5, 10)
BLOCK_ROWS = 1024

Texts = Mapping[str, Sequence[str]]


def translation_ranks(
    source: Matrix, target: Matrix, *, others: int | None, seed: int = 0, csls: bool = False
) -> IntArray:
    """Rank each source's translation among other targets.

    Ranks are int64 (N,), from 1. Row i of ``target`` (N + M, D) translates row i of ``source`` (N,
    D), both of unit or zero rows. It competes with ``others`` further targets, drawn by ``seed``
    and row (999 in Guo et al. 2018 and Chidambaram et al. 2019, section 3.4), or all if None.
    Search is by cosine or, if ``csls``, CSLS. Ties go to the smaller row. Zero rows come last.
    Fewer than ``others`` other targets raise ValueError.
    """
    means = mean_of_nearest(target, source) / 2 if csls else np.float32(0)
    ranks = np.empty(len(source), dtype=np.int64)
    for start in range(0, len(source), BLOCK_ROWS):
        cosines = source[start : start + BLOCK_ROWS] @ target.T - means
        cosines[:, ~target.any(axis=1)] = -np.inf
        for row, scores in enumerate(cosines, start):
            rows = _others(row, len(target), others, seed)
            translation, competing = scores[row], scores[rows]
            is_before = (competing > translation) | ((competing == translation) & (rows < row))
            is_last = not source[row].any() or scores[row] == -np.inf
            ranks[row] = len(rows) + 1 if is_last else 1 + int(is_before.sum())
    return ranks


def _others(row: int, rows: int, others: int | None, seed: int) -> IntArray:
    if others is None:
        return np.delete(np.arange(rows), row)
    drawn = np.random.default_rng([seed, row]).choice(rows - 1, size=others, replace=False)
    return drawn + (drawn >= row)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task, with ``others`` as None for all."""
    aligned.add_aligned_data(parser)
    add = parser.add_argument
    text = "other sentences to search among, 1 to as many as there are, or all (default: 999)"
    add("--others", type=_number_or_all, default=999, metavar="K", help=text)
    more = (
        "file of more sentences of XX, named as in DIR's files, to search among, one per line, "
        "whose translations are not in DIR"
    )
    add_files_of_languages(parser, "--more", more)
    idf = (
        "instead of sentence vectors, compare means of word vectors, weighted by their inverse "
        "document frequency in FILE, a sentence per line; pass one file for each language, also "
        "for English, with XX as in the names of DIR's files; needs an encoder with word vectors"
    )
    add_files_of_languages(parser, "--idf", idf)
    text = "search by CSLS instead of cosine, which lowers sentences with many similar ones"
    add("--csls", action="store_true", help=text)


def _number_or_all(text: str) -> int | None:
    return None if text == ALL else positive(text)


def _check(data: aligned.AlignedTexts, others: int | None, more: Texts, idf: Texts) -> None:
    names = data.languages
    for option, texts in (("--more", more), ("--idf", idf)):
        if unknown := sorted(texts.keys() - {*names}):
            expected = ", ".join(sorted(names))
            raise ValueError(f"{option} {unknown[0]}=...: not measured; use one of {expected}")
    if idf and (lacking := sorted({*names} - idf.keys())):
        raise ValueError(f"--idf: no file of {lacking[0]}; add {lacking[0]}=FILE, or omit --idf")
    fewest = min(len(data.texts[name]) + len(more.get(name, ())) for name in names) - 1
    if others is not None and others > fewest:
        raise ValueError(
            f"--others {others}: a language has only {fewest} other sentences; pass {fewest} or "
            "fewer, or 'all'"
        )


def prepare(args: argparse.Namespace) -> Suite:
    """Load aligned texts, to search from each language to English and back.

    ValueError says that data are wrong, or do not fit ``--more``, ``--idf`` or ``--others``. With
    ``--idf``, the suite's ``measure`` also raises it for an encoder without word vectors.
    """
    data, english = aligned.load_texts(args)
    more, idf_texts = (by_language(files, read_lines) for files in (args.more, args.idf))
    _check(data, args.others, more, idf_texts)

    def embed(model: Encoder, sentences: Sequence[str], language: str) -> Matrix:
        if not idf_texts:
            return model.encode(sentences)
        return _idf_weighted(model, sentences, idf_texts[language])

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for language, *sides in aligned.encoded_sides(encoder, data, english, more, embed):
            directions = {f"{language}-{english}": sides, f"{english}-{language}": sides[::-1]}
            for pair, (source, target) in directions.items():
                queries = source[: len(data.texts[language])]
                ranks = translation_ranks(queries, target, others=args.others, csls=args.csls)
                shares = {f"P@{depth}": float((ranks <= depth).mean()) for depth in DEPTHS}
                yield replace(mean_figure(pair, ranks == 1), beside=shares)

    others = ALL if args.others is None else args.others
    similarity = "csls" if args.csls else "cosine"
    fields = {**aligned.fields_of_texts(data), "others": others, "similarity": similarity}
    for name, files, texts in (("more", args.more, more), ("idf", args.idf, idf_texts)):
        if files:
            digest = fingerprint(*(path for _, path in files))
            fields[name] = f"{sum(map(len, texts.values()))}-{digest}"
    first, *after = (f"P@{depth}" for depth in DEPTHS)
    names = data.languages
    return Suite(
        "retrieval", fields, measure, label="pair", figure=first, after=after, languages=names
    )


def _idf_weighted(model: Encoder, sentences: Sequence[str], counted: Sequence[str]) -> Matrix:
    if not isinstance(model, WordEncoder):
        raise ValueError(
            f"--idf: encoder {model.name} has no word vectors; omit it, or use --encoder mini"
        )
    words = model.words([*counted, *sentences])
    counted_tokens = words.take(np.arange(len(counted)))
    size = len(words.vectors)  # the idf is that of Conneau et al. 2018, section 3.3
    distinct = np.unique(counted_tokens.owners * size + counted_tokens.ids) % size
    frequencies = np.bincount(distinct, minlength=size)
    idf = np.log(len(counted) / np.maximum(frequencies, 1)).astype(np.float32)
    sentence_tokens = words.take(np.arange(len(counted), len(words)))
    rows = sum_rows(words.vectors * idf[:, None], sentence_tokens)
    normalize_rows(rows)
    return rows
