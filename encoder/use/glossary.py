"""Languages added to the network, which reads their words as English.

A word is replaced by the English words with the nearest vectors in the bundled encoder, which knows
both languages. Instead of a piece, the network gets the mean of these words' rows, weighted by a
softmax of the cosines. Numbers and signs stay pieces. Rows were trained so that sentences get the
vectors of their English translations. Axes: ``W`` words, ``K`` English words, ``D`` dimensions.
"""

import hashlib
import itertools
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from encoder import MORE, USE, Encoder, folder_of, load_encoder
from encoder.checkpoint import CONFIG, WEIGHTS
from encoder.coverage import language_key
from encoder.rows import Matrix, PackedTable
from encoder.tokenizer import Tokens
from encoder.use.compiled import EMBEDDING
from encoder.use.products import Weights
from encoder.use.weights import BEGIN, END, UNKNOWN, load_tokenizer, load_weights
from miner.threads import blocks, map_in_threads

Ids = NDArray[np.int64]

FORMAT = "adit-glossary-1"
FOLDER = folder_of(USE) / MORE
KINDS = "en", "sv"  # a language of the bundled encoder, and one that was added to it
NEAREST = 8  # English words per word
TEMPERATURE = np.float32(0.07)  # of the softmax
AT_ONCE = 256  # words per batch
ROOM = 1 << 17  # texts in the cache, which is emptied when it is full
KNOWN_BYTES = ROOM * 300  # memory of the cache


@cache
def _part_pattern() -> re.Pattern[str]:
    marks = "".join(c for c in map(chr, range(1 << 17)) if unicodedata.category(c)[0] == "M")
    word = rf"[^\W\d_](?:[^\W\d_]|[{marks}\u200c\u200d])*"  # with the joiners of Persian and Hindi
    # A word begins with a letter. Other characters between spaces are also parts.
    return re.compile(rf"{word}|(?:(?![^\W\d_])\S)+")


def split(sentence: str) -> list[str]:
    """Split a sentence into words and runs of other characters.

    A word has letters, marks and joiners. White space is dropped.
    """
    return _part_pattern().findall(sentence)


def find_nearest(keys: Weights, vectors: Matrix) -> tuple[NDArray[np.int32], Matrix]:
    """Find the nearest keys of each of W unit vectors, float32 (W, D).

    ``keys`` are K unit vectors (D, K), at least 8. Ties go to the first key. The results are the 8
    nearest keys, nearest first, int32 (W, 8), and their shares by the softmax of the cosines /
    0.07, float32 (W, 8). Results do not depend on other vectors.
    """
    cosines = keys.multiplied(vectors)
    least_cosines = -np.partition(-cosines, NEAREST - 1, axis=1)[:, NEAREST - 1 : NEAREST]
    owners, columns = np.nonzero(cosines >= least_cosines)
    order = np.lexsort((columns, -cosines[owners, columns], owners))
    starts = np.searchsorted(owners, np.arange(len(vectors)))
    chosen = columns[order[starts[:, None] + np.arange(NEAREST)]]
    nearest_cosines = np.take_along_axis(cosines, chosen, axis=1)
    shares = np.exp((nearest_cosines - nearest_cosines[:, :1]) / TEMPERATURE)
    return chosen.astype(np.int32), shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class Glossary:
    """K English words in lower case, and the network's inputs for them.

    ``rows``, float32 (2 K, 512), are of lower-case, then capitalised words. ``digest`` is a hash.
    """

    english: Sequence[str]
    rows: Matrix
    digest: str = ""

    @cached_property
    def keys(self) -> Weights:
        """The vectors of the English words by the bundled encoder, (D, K)."""
        return Weights(load_bundled("en").encode(self.english).T)


class GlossaryWords:
    """A cache of a language's words, numbered after the network's pieces.

    ``language`` is the bundled encoder of the language. ``columns``, int32 (W, 8), are each word's
    rows of the glossary, and ``shares``, float32 (W, 8), their weights, 0 if its vector is 0.
    Errors of ``load_weights`` are raised.
    """

    def __init__(self, glossary: Glossary, language: Encoder) -> None:
        self.name = f"{glossary.digest}+{language.name.rpartition('@')[2]}"
        self._glossary, self._language = glossary, language
        self._pieces, self._weights = load_tokenizer(), load_weights()
        self._first = len(self._weights.codes)
        self.forget()

    def forget(self) -> None:
        """Empty the cache, so that earlier numbers of words become invalid."""
        self._numbers: dict[str, Sequence[int]] = {}
        self.columns = np.empty((0, NEAREST), dtype=np.int32)
        self.shares = np.empty((0, NEAREST), dtype=np.float32)

    @property
    def full(self) -> bool:
        """Whether the cache has more than 131,072 texts, and must be emptied."""
        return len(self._numbers) > ROOM

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the numbers of each sentence's words and pieces.

        They are between BEGIN (1) and END (2). A blank one has UNKNOWN (0). New words are cached.
        """
        cuts = [split(sentence) for sentence in sentences]
        self._add(dict.fromkeys(itertools.chain(*cuts)))
        numbered = ([self._numbers[part] for part in parts] or [[UNKNOWN]] for parts in cuts)
        return Tokens.of([BEGIN, *itertools.chain(*numbers), END] for numbers in numbered)

    def _add(self, parts: Iterable[str]) -> None:
        new = [part for part in parts if part not in self._numbers]
        words = [part for part in new if part[0].isalpha()]
        start = self._first + len(self.columns)
        self._numbers.update((word, [start + index]) for index, word in enumerate(words))
        self._numbers.update((p, self._pieces.inside(p)) for p in new if not p[0].isalpha())

        def look_up(block: slice) -> tuple[NDArray[np.int32], Matrix]:
            vectors = self._language.encode(words[block])
            keys, weights = find_nearest(self._glossary.keys, vectors)
            keys[[word[0].isupper() for word in words[block]]] += len(self._glossary.english)
            weights[~vectors.any(axis=1)] = 0
            return keys, weights

        nearest = map_in_threads(look_up, blocks(len(words), AT_ONCE))
        self.columns = np.concatenate([self.columns, *(keys for keys, _ in nearest)])
        self.shares = np.concatenate([self.shares, *(weights for _, weights in nearest)])

    def places(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return words' positions in ``ids``, and rows in ``columns``, int64 (W,)."""
        is_word = np.flatnonzero(ids >= self._first)
        return is_word, ids[is_word] - self._first

    def rows(self, ids: Ids) -> Matrix:
        """Return the network's inputs for words and pieces, float32 (P, 512)."""
        rows = self._weights.rows(np.where(ids < self._first, ids, UNKNOWN))
        is_word, words = self.places(ids)
        rows[is_word] = 0
        for columns, shares in zip(self.columns[words].T, self.shares[words].T, strict=True):
            rows[is_word] += self._glossary.rows[columns] * shares[:, None]  # in a fixed order
        return rows


_whole_bundled = cache(load_encoder)


def load_bundled(language: str) -> Encoder:
    """Return ``mini`` for a language (ISO 639), with ``for_language`` errors."""
    return _whole_bundled().for_language(language)


@cache
def added_languages() -> frozenset[str]:
    """Return the languages (``language_key``) of the glossary in the package.

    ValueError says that the glossary is missing or damaged.
    """
    return frozenset(map(language_key, _config(FOLDER)["languages"]))


@cache
def load_glossary(folder: Path = FOLDER) -> Glossary:
    """Load the glossary in ``folder``, by default the package's.

    Raises:
        ValueError: A file is missing or damaged, or of another bundled encoder.
    """
    config = _config(folder)
    path = folder / WEIGHTS
    weights = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(weights).hexdigest() != config["sha256"]:
        raise ValueError(f"encoder use: {path} is missing or damaged; reinstall Adit")
    installed = [load_bundled(language).name for language in KINDS]
    if config["bundled"] != installed:
        raise ValueError(
            f"encoder use: {folder} was trained with {' and '.join(config['bundled'])}, but "
            f"{' and '.join(installed)} is installed; retrain it with benchmarks/glossary.py"
        )
    tensors = load(weights)
    table = PackedTable(codes=tensors["table"], scales=tensors["scales"], dim=EMBEDDING)
    english = tensors["english"].tobytes().decode().split("\n")
    rows = table[np.arange(len(table))]
    return Glossary(english=english, rows=rows, digest=config["sha256"][:12])


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        is_known = config["format"] == FORMAT and {"sha256", "bundled", "languages"} <= {*config}
    except (OSError, ValueError, KeyError, TypeError):
        is_known = False
    if not is_known:
        raise ValueError(f"encoder use: {folder / CONFIG} is missing or damaged; reinstall Adit")
    return config
