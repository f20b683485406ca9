"""A network that compares the words of both sides of a pair.

A convolution and self-attention put the vector of each word into its context. Then it attends to
the words of the other side, and is compared with them (Parikh et al. 2016, "A Decomposable
Attention Model"). ``benchmarks/judge_network.py`` trains it. All products of matrices are of whole
numbers below 2^24 and exact, so they are the same on every CPU. Axes: ``P`` pairs, ``N`` words of
all their sentences, ``U`` different words, ``D`` dimensions, ``H`` hidden units.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from miner.arrays import IntArray, Mask, Matrix
from miner.judge.facts import MAX_BYTE, PARTS, rounded, whole_vectors
from miner.judge.words import WordEmbedder, Words, encoder_names
from miner.knn.core.products import multiplier
from miner.threads import blocks

BUNDLED = Path(__file__).parents[1] / "assets" / "judge-network.safetensors"
UNITS = np.float32(32)  # whole numbers per unit of queries and keys
MAX_UNITS = 511  # so that sums of 64 products are below 2^24
UNMATCHED = 0.0  # log odds from which a word has no counterpart
HEAVY = np.float32(0.1)  # factor of the weights of words
PAIRS_AT_ONCE = 256  # pairs whose words are in memory, about 20 MB
LONGEST = 1000  # words of a sentence: time and memory grow with the square

_MARKS = re.compile(r"^[\W_]+|[\W_]+$")  # at the ends of a word

WordFlags: TypeAlias = list[tuple[str, bool]]  # words, and whether they lack a counterpart


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A linear layer, called with (N, K) inputs for (N, L) float32 outputs.

    Inputs times ``steps`` (K,) are rounded, clipped to -127 to 127, and multiplied by ``weight``
    (K, L). Products are multiplied by ``scale`` (L,), and ``bias`` (L,) is added.
    """

    steps: Matrix
    weight: NDArray[np.int8]
    scale: Matrix
    bias: Matrix

    def __call__(self, inputs: Matrix, *, least: float = -np.inf) -> Matrix:
        """Return the outputs of inputs (N, K), at least ``least``, (N, L)."""
        return self.finish(self.multiply(rounded(inputs, self.steps, MAX_BYTE, np.int8)), least)

    @cached_property
    def multiply(self) -> Callable[[NDArray[np.int8]], NDArray[np.int32]]:
        """A function from whole numbers, int8 (N, K), to products, int32 (N, L)."""
        return multiplier(np.ascontiguousarray(self.weight.T))

    def finish(self, products: NDArray[np.int32], least: float = -np.inf) -> Matrix:
        """Return the outputs for products (N, L), at least ``least``."""
        from miner.judge.compiled_attention import scale_products

        out = np.empty(products.shape, np.float32)
        scale_products(products, self.scale, self.bias, np.float32(least), out)
        return out


@dataclass(frozen=True, kw_only=True)
class Network:
    """The layers of a comparison network.

    ``encoders`` are the names of the word encoders whose vectors it reads. ``mixing``, (3,), has
    factors of cosine and of distance, and the logit of no word.
    """

    encoders: frozenset[str]
    mixing: Matrix
    inputs: Layer
    context: Layer
    attention: Layer
    attended: Layer
    queries: Layer
    compare: Layer
    compare_again: Layer
    word: Layer
    pool: Layer
    score: Layer

    def judge(
        self, source: Words, target: Words, is_judged: Mask | bool = True
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Judge the words and sentences of P pairs.

        Returns the log odds that each pair is correct, (P,), and that each word of the sources, and
        each of the targets, has no counterpart, (W,) each. All odds of a pair are NaN if a side has
        no words, or more than 1,000, or if ``is_judged``, bool (P,) or of all pairs, is False.
        """
        sides = source, target
        counts = np.stack([np.diff(side.offsets) for side in sides])
        scores = np.full(counts.shape[1], np.nan, np.float32)
        own, other = (np.full(len(side.ids), np.nan, np.float32) for side in sides)
        is_possible = (counts.min(axis=0) > 0) & (counts.max(axis=0) <= LONGEST)
        pairs = np.flatnonzero(is_possible & is_judged)
        for part in blocks(len(pairs), PAIRS_AT_ONCE):
            rows = pairs[part]
            places = [_words_of(side, rows) for side in sides]
            # BLAS once flagged a product of finite numbers as invalid.
            with np.errstate(invalid="ignore"):
                scores[rows], log_odds = self._judge_part(sides, places, counts[:, rows].ravel())
            middle = len(places[0])
            own[places[0]], other[places[1]] = log_odds[:middle], log_odds[middle:]
        return scores, own, other

    def _judge_part(
        self, sides: Sequence[Words], places: Sequence[IntArray], counts: IntArray
    ) -> tuple[Matrix, Matrix]:
        """Return the log odds of pairs, (P,), and of words, the sources' first."""
        from miner.judge import compiled_attention as loops

        vectors, weights, ids = _join(sides, places)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        whole = whole_vectors(vectors)
        different = self.inputs.finish(self.inputs.multiply(whole), least=0)
        size, layer = different.shape[1], self.context
        whole_units = rounded(different, layer.steps[:size], MAX_BYTE, np.int8)
        products = self._multiply_context(whole_units)
        hidden = np.empty((len(ids), size), np.float32)
        loops.put_in_context(different, products, ids, offsets, layer.scale, layer.bias, hidden)
        within = self.attention(hidden)
        within[:, : 2 * size] = _units(within[:, : 2 * size])
        attended, scale = np.empty_like(hidden), UNITS**-2
        shares = scale * np.float32(loops.LANES**-0.5)
        loops.attend_within(within.reshape(len(ids), 3, size), shares, offsets, attended)
        hidden += self.attended(attended)
        described = np.empty((len(ids), 4 * size + loops.STATISTICS), np.float32)
        described[:, :size] = hidden
        scales = np.array([1 / PARTS**2, scale * np.float32(size**-0.5)], np.float32)
        both = _units(self.queries(hidden)), _units(hidden)
        loops.attend_across(whole, ids, *both, scales, self.mixing, weights, offsets, described)
        units = self.compare_again(self.compare(described, least=0), least=0)
        pooled = np.zeros((len(offsets) - 1, 3 * units.shape[1]), np.float32)
        loops.pool_words(units, weights, offsets, pooled)
        score, other = np.split(self.score(self.pool(pooled, least=0))[:, 0], 2)
        return score + other, self.word(units)[:, 0]

    @cached_property
    def _multiply_context(self) -> Callable[[NDArray[np.int8]], NDArray[np.int32]]:
        # A word is multiplied by the weights of all three places at once.
        size = self.context.weight.shape[1]
        places = self.context.weight.reshape(3, -1, size).transpose(0, 2, 1)
        return multiplier(np.ascontiguousarray(places.reshape(3 * size, -1)))


def unmatched_words(
    makers: Sequence[WordEmbedder], source: Sequence[str], target: Sequence[str]
) -> list[tuple[WordFlags, WordFlags]]:
    """Return the words of P pairs, and whether they lack a counterpart.

    ``makers``, of both sides, split the texts, (P,) each, into words. No word lacks a counterpart
    if the bundled network does not know both, or if a side of its pair has 0 or over 1,000 words.
    """
    network, sides = network_of(makers), (source, target)
    words = [maker.words(texts) for maker, texts in zip(makers, sides, strict=True)]
    nothing = [np.zeros(len(own.ids)) for own in words]
    odds = network.judge(words[0], words[1])[1:] if network else nothing
    flags: list[list[WordFlags]] = [[], []]
    for side, (maker, texts, own) in enumerate(zip(makers, sides, words, strict=True)):
        for first, parts in zip(own.offsets[:-1].tolist(), maker.split(texts), strict=True):
            values = odds[side][first : first + len(parts)]
            flags[side].append(list(zip(parts, (values > UNMATCHED).tolist(), strict=True)))
    return list(zip(*flags, strict=True))


def words_without_counterpart(
    makers: Sequence[WordEmbedder], source: Sequence[str], target: Sequence[str]
) -> tuple[list[list[str]], list[list[str]]]:
    """List the words of P pairs that lack a counterpart, of each side.

    ``unmatched_words`` finds them. Marks at the ends are removed, except from words of marks alone.
    """
    lists: tuple[list[list[str]], list[list[str]]] = [], []
    for pair in unmatched_words(makers, source, target):
        for side, words in zip(lists, pair, strict=True):
            side.append([_MARKS.sub("", word) or word for word, alone in words if alone])
    return lists


def _words_of(side: Words, rows: IntArray) -> IntArray:
    """Return the positions of the words of some sentences, in order."""
    counts = np.diff(side.offsets)[rows]
    starts = side.offsets[rows] - (np.cumsum(counts) - counts)
    return np.repeat(starts, counts) + np.arange(counts.sum())


def _join(sides: Sequence[Words], places: Sequence[IntArray]) -> tuple[Matrix, Matrix, IntArray]:
    """Return vectors of different words, weights * ``HEAVY`` and rows of all."""
    vectors, weights, ids, words = [], [], [], 0
    for side, own in zip(sides, places, strict=True):
        used, rows = np.unique(side.ids[own], return_inverse=True)
        vectors.append(side.vectors[used])
        weights.append(side.weights[used][rows] * HEAVY)
        ids.append(rows + words)
        words += len(used)
    return np.concatenate(vectors), np.concatenate(weights), np.concatenate(ids)


def _units(values: Matrix) -> Matrix:
    """Return queries or keys (N, H) in whole numbers of ``UNITS`` per unit."""
    return rounded(values, UNITS, MAX_UNITS, np.float32)


@cache
def load_network(path: Path = BUNDLED) -> Network:
    """Load a comparison network from a safetensors file, once per path.

    Raises FileNotFoundError, SafetensorError if it is damaged, KeyError or TypeError if no model.
    """
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        encoders = json.loads(file.metadata()["encoders"])
    mixing = arrays.pop("mixing")
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        layer, _, field = name.partition(".")
        parts.setdefault(layer, {})[field] = array
    layers = {name: Layer(**part) for name, part in parts.items()}
    return Network(encoders=frozenset(encoders), mixing=mixing, **layers)


def network_of(makers: Sequence[WordEmbedder]) -> Network | None:
    """Load the bundled network, or return None with an unknown encoder."""
    network = load_network()
    return network if encoder_names(makers) <= network.encoders else None
