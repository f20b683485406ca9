"""Word vectors in the ``.vec`` files of word2vec, fastText and MUSE.

The first line has the number of words and of dimensions, and others a word and its numbers.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from encoder.monolingual.options import MAX_WORDS
from encoder.rows import Matrix

logger = logging.getLogger(__name__)

DIGITS = 5  # after the point, as in MUSE, which changes a cosine by less than 0.0001


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """V distinct words of a language, most frequent first, with vectors.

    ``vectors`` are float32 (V, D), and ``weights``, float32 (V,), the words' idf.
    """

    words: Sequence[str]
    vectors: Matrix
    weights: Matrix

    def __len__(self) -> int:
        return len(self.words)


def read_vec(path: Path, *, most: int = MAX_WORDS) -> WordVectors:
    """Read the first ``most`` words of a ``.vec`` file, and no later lines.

    Their idf is log(1 + rank), with ranks from 1 (Zipf's law). Repeated words and zero vectors are
    skipped uncounted, with a warning.

    Raises:
        ValueError: The file is missing, malformed or without words, or its first line miscounts.
    """
    words: dict[str, Matrix] = {}
    repeats = empty = lines_read = 0
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            count, dim = _header(path, lines.readline())
            for lines_read, line in enumerate(lines, start=1):
                word, row = _entry(path, lines_read + 1, line, dim)
                if word in words:
                    repeats += 1
                elif not row.any():
                    empty += 1
                else:
                    words[word] = row
                if len(words) == most:
                    break
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: not UTF-8, in line {lines_read + 2} or soon after ({error.reason}); convert "
            "the file with iconv"
        ) from error
    except FileNotFoundError as error:
        raise ValueError(f"{path}: file not found; check its path") from error
    if lines_read != count and (len(words) < most or lines_read > count):
        raise ValueError(
            f"{path}: has {lines_read:,} words, but its first line says {count:,}; copy it again, "
            "or correct this line"
        )
    if repeats or empty:
        line = "%s: skipped %d duplicate words and %d zero vectors; export it again without them"
        logger.warning(line, path, repeats, empty)
    if not words:
        raise ValueError(f"{path}: no word has a vector; pass a file with words and numbers")
    idf = np.log(np.arange(2, len(words) + 2)).astype(np.float32)
    return WordVectors(words=list(words), vectors=np.stack([*words.values()]), weights=idf)


def write_vec(path: Path, words: Sequence[str], vectors: Matrix) -> None:
    """Write or replace a ``.vec`` file of vectors (V, D) with five decimals."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n")
        for word, row in zip(words, vectors.tolist(), strict=True):
            file.write(" ".join([word, *(f"{number:.{DIGITS}f}" for number in row)]) + "\n")


def _header(path: Path, line: str) -> tuple[int, int]:
    numbers = line.split()
    if len(numbers) != 2 or not all(text.isdecimal() for text in numbers) or int(numbers[1]) < 1:
        raise ValueError(f"{path}:1: {line[:60]!r}; expected the number of words and of dimensions")
    return int(numbers[0]), int(numbers[1])


def _entry(path: Path, number: int, line: str, dim: int) -> tuple[str, Matrix]:
    word, *numbers = line.rstrip(" \r\n").rsplit(" ", dim)
    try:
        row = np.array(numbers, dtype=np.float32)
    except ValueError:
        row = np.empty(0, dtype=np.float32)
    if not word or len(row) != dim:
        raise ValueError(f"{path}:{number}: {line[:60]!r}; expected a word and {dim} numbers")
    if not np.isfinite(row).all():
        raise ValueError(
            f"{path}:{number}: the vector of {word[:40]!r} is not finite; remove this line, and "
            "lower the number of words in line 1"
        )
    return word, row
