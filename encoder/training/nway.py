"""N-way text: pairs of several languages with one other, joined on its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from encoder.training.reading import ParallelText

if TYPE_CHECKING:
    from numpy.typing import NDArray


def join_targets(texts: Sequence[ParallelText]) -> list[ParallelText]:
    """Return the pairs of each text whose target all texts have, rows alike translating each other.

    Of several translations of a sentence the first is taken. A row one of whose sentences an
    earlier row has is left out, so that all sentences of a language are different.

    Raises:
        ValueError: the texts have targets of several languages, or none in common.
    """
    languages = sorted({text.name.partition("-")[2] for text in texts})
    if len(languages) > 1:
        raise ValueError(
            f"N-way text is joined on one target language, and these pairs have "
            f"{', '.join(languages)}; choose with --pairs"
        )
    places = [_first_rows(text.target) for text in texts]
    rows: list[list[int]] = []
    seen: list[set[str]] = [set() for _ in texts]
    for sentence in places[0]:
        if not all(sentence in each for each in places):
            continue
        row = [each[sentence] for each in places]
        sources = [text.source[number] for text, number in zip(texts, row, strict=True)]
        if not any(source in known for source, known in zip(sources, seen, strict=True)):
            rows.append(row)
            for source, known in zip(sources, seen, strict=True):
                known.add(source)
    if not rows:
        names = ", ".join(text.name for text in texts)
        raise ValueError(f"{names}: have no target sentence in common, and no N-way text")
    columns: NDArray[np.int64] = np.array(rows, dtype=np.int64).T
    return [text.take(column) for text, column in zip(texts, columns, strict=True)]


def _first_rows(sentences: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row, sentence in enumerate(sentences):
        found.setdefault(sentence, row)
    return found


def sentences_by_language(texts: Sequence[ParallelText]) -> dict[str, list[str]]:
    """Return the sentences of each language of texts that ``join_targets`` made, row by row."""
    found = {text.name.partition("-")[0]: text.source for text in texts}
    return {**found, texts[0].name.partition("-")[2]: texts[0].target}


def all_pairs(texts: Sequence[ParallelText], languages: Sequence[str]) -> list[ParallelText]:
    """Return texts of each two of the languages, of texts that ``join_targets`` made."""
    sentences = sentences_by_language(texts)
    corpus = texts[0].corpus
    return [
        ParallelText(
            name=f"{one}-{other}", source=sentences[one], target=sentences[other], corpus=corpus
        )
        for one, other in combinations(languages, 2)
    ]
