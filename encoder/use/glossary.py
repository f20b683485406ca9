"""Languages that the network has not learnt: it reads their words as English ones.

A word stands for the English words whose vectors of the bundled encoder, which knows both
languages, are nearest to its own: where the network would get a piece, it gets the mean of their
rows, weighted by a softmax of the cosines. Numbers and signs are pieces as ever. The rows began as
those of the English pieces, and were trained for sentences to have the vectors of their English
translations. They belong to no language. Axes: ``W`` words, ``K`` English ones, ``D`` numbers of
the bundled encoder's vectors.
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
from encoder.coverage import individual
from encoder.rows import Matrix, PackedTable
from encoder.tokenizer import Tokens
from encoder.use.compiled import EMBEDDING
from encoder.use.products import Weights
from encoder.use.weights import BEGIN, END, UNKNOWN, load_tokenizer, load_weights
from miner.threads import blocks, in_threads

Ids = NDArray[np.int64]

FORMAT = "adit-glossary-1"
FOLDER = folder_of(USE) / MORE
KINDS = "en", "sv"  # languages of the bundled encoder itself, and of those added to it
NEAREST = 8  # English words that a word stands for
TEMPERATURE = np.float32(0.07)  # of the softmax
AT_ONCE = 256  # words that are looked up together
ROOM = 1 << 17  # texts that are known by numbers; when there are more, it begins anew
KNOWN_BYTES = ROOM * 300  # of them


@cache
def _parts() -> re.Pattern[str]:
    """Return what finds words, which begin with a letter, and all that stands between them."""
    marks = "".join(c for c in map(chr, range(1 << 17)) if unicodedata.category(c)[0] == "M")
    word = rf"[^\W\d_](?:[^\W\d_]|[{marks}\u200c\u200d])*"  # the joiners of Persian and Hindi
    return re.compile(rf"{word}|(?:(?![^\W\d_])\S)+")


def split(sentence: str) -> list[str]:
    """Return the words of a sentence, and what stands between them without spaces."""
    return _parts().findall(sentence)


def nearest(keys: Weights, vectors: Matrix) -> tuple[NDArray[np.int32], Matrix]:
    """Return the NEAREST of K keys for each of W unit vectors, of equally near ones the first.

    Their numbers in order, int32 (W, NEAREST), and their shares, float32 of that shape. None
    depends on what else is asked for.
    """
    cosines = keys.multiplied(vectors)
    last = -np.partition(-cosines, NEAREST - 1, axis=1)[:, NEAREST - 1 : NEAREST]
    owners, columns = np.nonzero(cosines >= last)
    order = np.lexsort((columns, -cosines[owners, columns], owners))
    starts = np.searchsorted(owners, np.arange(len(vectors)))
    chosen = columns[order[starts[:, None] + np.arange(NEAREST)]]
    found = np.take_along_axis(cosines, chosen, axis=1)
    shares = np.exp((found - found[:, :1]) / TEMPERATURE)
    return chosen.astype(np.int32), shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class Glossary:
    """English words in small letters and what stands for them.

    ``rows`` are float32 (2 K, 512): of the words in small letters, then with a capital first one.
    """

    english: Sequence[str]
    rows: Matrix
    digest: str = ""

    @cached_property
    def keys(self) -> Weights:
        """The English words' vectors of the bundled encoder, (D, K)."""
        return Weights(bundled("en").encode(self.english).T)


class GlossaryWords:
    """The words of a language that have been met, numbered after the network's pieces.

    ``columns`` are the glossary's rows that each stands for and ``shares`` how much these count, 0
    for a word that the bundled encoder has no vector for: both (W, NEAREST).
    """

    def __init__(self, glossary: Glossary, language: Encoder) -> None:
        """With the bundled encoder for the language."""
        self.name = f"{glossary.digest}+{language.name.rpartition('@')[2]}"
        self._glossary, self._language = glossary, language
        self._pieces, self._weights = load_tokenizer(), load_weights()
        self._first = len(self._weights.codes)
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._known: dict[str, Sequence[int]] = {}
        self.columns = np.empty((0, NEAREST), dtype=np.int32)
        self.shares = np.empty((0, NEAREST), dtype=np.float32)

    @property
    def full(self) -> bool:
        """Return whether more is known than there is room for."""
        return len(self._known) > ROOM

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Cut sentences into words and pieces, between BEGIN and END."""
        cut = [split(sentence) for sentence in sentences]
        self._learn(dict.fromkeys(itertools.chain(*cut)))
        found = ([self._known[part] for part in parts] or [[UNKNOWN]] for parts in cut)
        return Tokens.of([BEGIN, *itertools.chain(*numbers), END] for numbers in found)

    def _learn(self, parts: Iterable[str]) -> None:
        """Give numbers to what is new, and find what its words stand for."""
        new = [part for part in parts if part not in self._known]
        words = [part for part in new if part[0].isalpha()]
        start = self._first + len(self.columns)
        self._known.update((word, [start + place]) for place, word in enumerate(words))
        self._known.update((p, self._pieces.inside(p)) for p in new if not p[0].isalpha())
        columns = np.empty((len(words), NEAREST), dtype=np.int32)
        shares = np.empty((len(words), NEAREST), dtype=np.float32)

        def look_up(block: slice) -> None:
            vectors = self._language.encode(words[block])
            found, weights = nearest(self._glossary.keys, vectors)
            found[[word[0].isupper() for word in words[block]]] += len(self._glossary.english)
            weights[~vectors.any(axis=1)] = 0
            columns[block], shares[block] = found, weights

        in_threads(look_up, blocks(len(words), AT_ONCE))
        self.columns = np.concatenate([self.columns, columns])
        self.shares = np.concatenate([self.shares, shares])

    def places(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return which of P ids are words, int64 (W,), and these words' places in ``columns``."""
        own = np.flatnonzero(ids >= self._first)
        return own, ids[own] - self._first

    def rows(self, ids: Ids) -> Matrix:
        """Return what the network gets for words and pieces: float32 (P, 512)."""
        rows = self._weights.rows(np.where(ids < self._first, ids, UNKNOWN))
        own, words = self.places(ids)
        rows[own] = 0
        for columns, shares in zip(self.columns[words].T, self.shares[words].T, strict=True):
            rows[own] += self._glossary.rows[columns] * shares[:, None]  # in one order
        return rows


_whole_bundled = cache(load_encoder)


def bundled(language: str) -> Encoder:
    """Return the bundled encoder for a language."""
    return _whole_bundled().for_language(language)


@cache
def added_languages() -> frozenset[str]:
    """Return the languages that are read by the glossary that ships, by ``individual``."""
    return frozenset(map(individual, _config(FOLDER)["languages"]))


@cache
def load_glossary(folder: Path = FOLDER) -> Glossary:
    """Load the glossary that ships, or another one.

    A ValueError says that it is damaged, or was trained with another bundled encoder.
    """
    config = _config(folder)
    weights = (folder / WEIGHTS).read_bytes()
    if hashlib.sha256(weights).hexdigest() != config["sha256"]:
        raise ValueError(f"encoder use: {folder / WEIGHTS} is damaged; install or copy it again")
    there = [bundled(language).name for language in KINDS]
    if config["bundled"] != there:
        raise ValueError(
            f"encoder use: {folder} was trained with {' and '.join(config['bundled'])}, but "
            f"{' and '.join(there)} is installed; retrain it with benchmarks/glossary.py"
        )
    tensors = load(weights)
    table = PackedTable(codes=tensors["table"], scales=tensors["scales"], dim=EMBEDDING)
    english = tensors["english"].tobytes().decode().split("\n")
    rows = table[np.arange(len(table))]
    return Glossary(english=english, rows=rows, digest=config["sha256"][:12])


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        known = config["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ValueError(f"encoder use: {folder / CONFIG} is damaged; install or copy it again")
    return config
