"""Measures of an encoder during its training, on data with known answers."""

import logging
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from encoder import Encoder
from encoder.training.evaluation import Measure
from eval.data.bucc import bucc_pairs, bucc_splits, languages_of, load_bucc
from eval.data.languages import iso_639_3
from eval.metrics.bucc import best_score
from eval.tasks.mined_splits import choose_splits, mine_split
from eval.tasks.tatoeba import language_errors, load_tatoeba, tatoeba_languages

logger = logging.getLogger(__name__)


def tatoeba_error(directory: Path, pairs: Collection[str]) -> Measure:
    """Return the measure of the Tatoeba error rate, for ``adit train``.

    ``pairs`` are language pairs such as ``de-en``. Their languages except English are measured, and
    languages without data are skipped with a warning. A figure is the mean of both directions.

    Raises:
        ValueError: The folder is missing, or its sentences are malformed or of other languages.
    """
    available = tatoeba_languages(directory)
    languages = [name for name in sorted(_languages(pairs)) if iso_639_3(name) in available]
    texts = {name: load_tatoeba(directory, name) for name in languages}
    if not texts:
        raise ValueError(
            f"--tatoeba {directory}: no sentences of the languages of {', '.join(pairs)}; pass "
            "another folder, or omit it"
        )
    if missing := sorted(_languages(pairs) - {*languages, "en"}):  # English is the other side
        line = "--tatoeba %s: no sentences of %s, so errors in these are unknown; add sentences"
        logger.warning(line, directory, ", ".join(missing))

    def take(encoder: Encoder) -> Mapping[str, float]:
        errors = {name: language_errors(encoder, name, *sides) for name, sides in texts.items()}
        return {name: float(np.mean(masks)) for name, masks in errors.items()}

    return Measure(name="tatoeba_error", title="Tatoeba error", parts=languages, take=take)


def bucc_f1(directory: Path, pairs: Collection[str]) -> Measure:
    """Return the measure of the best F1 on comparable corpora.

    ``directory`` has BUCC's layout. The split is the one that ``adit evaluate bucc`` tunes on. A
    pair in the folder is measured if both its languages are in ``pairs``, such as ``de-en``.

    Raises:
        ValueError: The folder is missing or contains no such pair, or a file is malformed.
    """
    languages = _languages(pairs)
    names = [name for name in bucc_pairs(directory) if languages.issuperset(languages_of(name))]
    if not names:
        raise ValueError(
            f"--bucc {directory}: no gold pairs of the languages of {', '.join(pairs)}; pass "
            "another folder, or omit it"
        )
    split_names = {name: choose_splits(bucc_splits(directory, name))[0] for name in names}
    splits = [load_bucc(directory, name, split) for name, split in split_names.items()]

    def take(encoder: Encoder) -> Mapping[str, float]:
        mined = [mine_split(split, encoder=encoder) for split in splits]
        return {split.data.pair: best_score(split.judgements).f1 for split in mined}

    return Measure(
        name="bucc_f1", title="BUCC-style F1", parts=names, take=take, higher_is_better=True
    )


def _languages(pairs: Collection[str]) -> set[str]:
    return {language for pair in pairs for language in languages_of(pair)}
