"""Facts that one side of a pair states and the other does not.

A model predicts from each word which of some frequent English words, the meanings, are in a
translation of its sentence (``benchmarks/judge_facts.py``). The level of a meaning in a sentence is
its log odds: the greatest of all words and of all two neighbouring words together. Meanings that
exclude each other, such as the days of the week, are senses of a group. A group of one sense is a
negation. All levels are whole numbers, so that they are the same on every CPU.

Axes: ``P`` pairs, ``U`` different words, ``D`` dimensions, ``H`` hidden units, ``M`` meanings,
``L`` members of groups, ``S`` senses, ``G`` groups.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from miner.judge.words import WordEmbedder, Words, encoder_names
from miner.knn.core.products import multiplier
from miner.threads import blocks

BUNDLED = Path(__file__).parents[1] / "assets" / "judge-facts.safetensors"
PARTS = 400  # whole numbers per unit of a vector's component
NAMED = 384  # level from which a difference is named, 1.5 units of log odds
MAX_BYTE, MAX_LEVEL = 127, 15000  # limits of whole numbers: two levels are added in int16
WORDS_AT_ONCE = 1 << 10  # words whose products are in memory
PAIRS_AT_ONCE = 1 << 11  # pairs whose words have levels in memory, about 8 MB per side

Whole = TypeVar("Whole", np.int8, np.int16, np.float32)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A model that reads meanings from the vectors of words.

    Attributes:
        encoders: Names of the word encoders whose vectors it reads.
        names: The English word of each meaning.
        hidden: Weights of the hidden layer, int8 (D, H).
        outputs: Weights of the M meanings, int8 (H, M).
        scales: Factors of the products with ``hidden`` and with ``outputs``, float32 (2,).
        biases: Added to the level of each meaning, int16 (M,).
        joining: Added to the sum of two neighbouring words, int16.
        members: Positions in ``names`` of the meanings of all S senses, int32 (L,).
        senses: Position in ``members`` of each sense's first meaning, and L, int32 (S + 1,).
        groups: First sense of each group of contrary senses, and S, int32 (G + 1,).
    """

    encoders: frozenset[str]
    names: Sequence[str]
    hidden: NDArray[np.int8]
    outputs: NDArray[np.int8]
    scales: NDArray[np.float32]
    biases: NDArray[np.int16]
    joining: np.int16
    members: NDArray[np.int32]
    senses: NDArray[np.int32]
    groups: NDArray[np.int32]

    def word_levels(self, vectors: NDArray[np.float32]) -> NDArray[np.int16]:
        """Return each word's level of each meaning, int16 (U, M).

        Levels are log odds without bias, times 256, up to 15,000 in size, of unit rows (U, D).
        """
        multiply_hidden, multiply_outputs = self._multipliers
        levels = np.empty((len(vectors), len(self.biases)), dtype=np.int16)
        for part in blocks(len(vectors), WORDS_AT_ONCE):
            hidden = multiply_hidden(whole_vectors(vectors[part]))
            outputs = multiply_outputs(rounded(hidden, self.scales[0], MAX_BYTE, np.int8))
            levels[part] = rounded(outputs, self.scales[1], MAX_LEVEL, np.int16)
        return levels

    @cached_property
    def _multipliers(self) -> list[Callable[[NDArray[np.int8]], NDArray[np.int32]]]:
        return [multiplier(np.ascontiguousarray(each.T)) for each in (self.hidden, self.outputs)]


@cache
def load_facts(path: Path = BUNDLED) -> Facts:
    """Load a model of meanings from a safetensors file, once per path.

    Raises FileNotFoundError, SafetensorError if it is damaged, KeyError or TypeError if no model.
    """
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        about = file.metadata()
    encoders, names = (json.loads(about[name]) for name in ("encoders", "names"))
    joining = arrays.pop("joining")[0]
    return Facts(encoders=frozenset(encoders), names=names, joining=joining, **arrays)


def facts_of(makers: Sequence[WordEmbedder]) -> Facts | None:
    """Load the bundled model, or return None if an encoder is unknown to it."""
    facts = load_facts()
    return facts if encoder_names(makers) <= facts.encoders else None


def compare_facts(source: Words, target: Words, facts: Facts | None) -> NDArray[np.float32]:
    """Compare the meanings of both sides of P pairs.

    Two senses of a group, such as up and down, are exchanged if one side says only one and the
    other side only the other. A negation is missing if only one side says it. Both are log odds, as
    a mean of both conditions in which the lower counts twice. Features are float32 (P, 6): the
    highest and the second highest exchange of all groups; how far a negation is missing; the lower
    and the higher level of a negation of both sides; the number of senses, except for negations,
    that both sides say. All are NaN if ``facts`` is None or a side has no words.
    """
    from miner.judge.compiled import compare_meanings  # loads Numba

    differences = np.full((len(source.offsets) - 1, 6), np.nan, dtype=np.float32)
    if facts is None:
        return differences
    groups = facts.members, facts.senses, facts.groups
    for part in blocks(len(differences), PAIRS_AT_ONCE):
        sides = (_sentence_levels(side, part, facts) for side in (source, target))
        compare_meanings(*sides, facts.biases, facts.joining, groups, differences[part])
    return differences


def _sentence_levels(words: Words, part: slice, facts: Facts) -> tuple[NDArray[np.integer], ...]:
    """Return the levels of the words of some sentences, ids, and offsets."""
    offsets = words.offsets[part.start : part.stop + 1]
    ids = words.ids[offsets[0] : offsets[-1]]
    used = np.zeros(len(words.vectors), dtype=np.bool_)
    used[ids] = True
    positions = used.cumsum() - 1  # of words among those used
    vectors = words.vectors.take(np.flatnonzero(used), axis=0)
    return facts.word_levels(vectors), positions[ids], offsets - offsets[0]


def rounded(
    values: NDArray[Any], steps: NDArray[np.float32] | np.float32, most: int, kind: type[Whole]
) -> NDArray[Whole]:
    """Round values (N, K) times ``steps``, one or (K,), to whole numbers.

    ``values`` are float32, or int32 below 2**24 in size. The result, (N, K), is of the type
    ``kind``, int8, int16 or float32, and clipped to -``most`` to ``most``, below 2**22.
    """
    from miner.judge.compiled import round_to_whole  # loads Numba

    out = np.empty(values.shape, kind)
    each = np.ascontiguousarray(np.broadcast_to(steps, values.shape[1:]))
    round_to_whole(np.ascontiguousarray(values), each, np.float32(most), out)
    return out


def whole_vectors(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Round vectors times 400 to whole numbers, clipped to -127 to 127."""
    return rounded(vectors, np.float32(PARTS), MAX_BYTE, np.int8)


def name_differences(source: Words, target: Words, facts: Facts) -> list[tuple[str, str]]:
    """Name the meanings by which the sides of one pair contradict each other.

    Each side has one sentence with at least one word. Each result is an English word that only the
    source says, and one that only the target says. Their log odds are above 1.5, most certain
    first. For a negation, the word of the side without it is "".
    """
    senses, names = np.split(facts.members, facts.senses[1:-1]), []
    levels = [_levels_of(side, facts) for side in (source, target)]
    odds = np.array([[own[sense].max() for sense in senses] for own in levels], dtype=np.int64)
    for start, stop in zip(facts.groups[:-1], facts.groups[1:], strict=True):
        scores = _are_both(odds[:, start:stop], -odds[::-1, start:stop])
        best, sure = start + scores.argmax(axis=1), scores.max(axis=1)
        words = [facts.names[senses[sense][0]] for sense in best]
        if stop - start == 1:
            words[sure.argmin()] = ""
        names.append((max(sure) if stop - start == 1 else _are_both(*sure), *words))
    return [(one, other) for score, one, other in sorted(names, reverse=True) if score > NAMED]


def _levels_of(words: Words, facts: Facts) -> NDArray[np.int64]:
    """Return the level of each meaning in one sentence with words, int64 (M,)."""
    single = facts.word_levels(words.vectors)[words.ids].astype(np.int64)
    double = single[:-1] + single[1:] + facts.joining
    return np.asarray(np.concatenate([single, double]).max(axis=0) + facts.biases)


def _are_both(one: Any, other: Any) -> Any:  # noqa: ANN401
    return (2 * np.minimum(one, other) + np.maximum(one, other)) // 3
