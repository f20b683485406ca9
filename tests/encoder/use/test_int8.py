"""The second convolution in int8, against NumPy."""

import itertools

import numpy as np
import pytest

from encoder.use import compiled
from encoder.use.compiled import BEFORE, CHANNELS, EMBEDDING, FEATURES, HIDDEN, WIDTHS
from encoder.use.network import PREPARED, ROW_MAX, WEIGHT_MAX, channel_sizes
from miner.instructions import CHOSEN, SETS
from miner.knn.core.int8 import panels_of

NEEDS_INT8 = pytest.mark.skipif(not CHOSEN, reason="no int8 instructions here")


def convolved(products: np.ndarray, offsets: list[int], branch: int) -> np.ndarray:
    """Sum what the tokens of a window make of its places, in each sentence by itself."""
    sums = np.zeros((len(products), CHANNELS))
    for first, stop in itertools.pairwise(offsets):
        for token in range(first, stop):
            for step in range(WIDTHS[branch]):
                place = token - BEFORE[branch] + step
                if first <= place < stop:
                    sums[token] += products[place, step * CHANNELS : (step + 1) * CHANNELS]
    return sums


@NEEDS_INT8
@pytest.mark.parametrize("branch", range(len(WIDTHS)))
def test_a_layer_in_int8(branch: int) -> None:
    random, offsets = np.random.default_rng(branch), [0, 1, 1, 8, 21]
    hidden = random.standard_normal((21, HIDDEN)).astype(np.float32)
    hidden[5] = 0
    weights = random.integers(-WEIGHT_MAX, WEIGHT_MAX + 1, (WIDTHS[branch] * CHANNELS, CHANNELS))
    factors, scales, bias = (
        random.uniform(0.5, 2, size).astype(np.float32)
        for size in (CHANNELS, len(weights), CHANNELS)
    )
    own = slice(branch * CHANNELS, (branch + 1) * CHANNELS)
    rows = hidden[:, own] * factors
    steps = np.abs(rows).max(axis=1, keepdims=True) / ROW_MAX
    codes = np.floor(rows / np.where(steps, steps, 1) + 0.5)
    sums = convolved(codes @ weights.T * steps * scales, offsets, branch)
    expected = hidden.copy()
    expected[:, own] += np.maximum(sums + bias, 0)
    panels, raised = panels_of(weights.astype(np.int8), WEIGHT_MAX)
    given = (panels, raised, np.float32(ROW_MAX)), (factors, scales)
    compiled.int8_layer(*given, np.array(offsets), (branch, bias), hidden)
    wrong = ~np.isclose(hidden, expected, rtol=1e-5, atol=1e-3)
    assert wrong.mean() < 0.01  # where a number was rounded the other way


@NEEDS_INT8
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_the_largest_codes_do_not_overflow(signs: tuple[int, int]) -> None:
    """All products are the largest, so a sum that saturates in 16 bits shows."""
    hidden = np.full((3, HIDDEN), signs[0], dtype=np.float32)
    weights = np.full((2 * CHANNELS, CHANNELS), signs[1] * WEIGHT_MAX, dtype=np.int8)
    panels, raised = panels_of(weights, WEIGHT_MAX)
    ones, zeros = (np.full(len(weights), value, np.float32) for value in (1, 0))
    given = (panels, raised, np.float32(ROW_MAX)), (ones[:CHANNELS], ones)
    compiled.int8_layer(*given, np.array([0, 3]), (0, zeros[:CHANNELS]), hidden)
    sums = np.maximum(signs[0] * signs[1] * WEIGHT_MAX * CHANNELS * np.array([2, 2, 1]), 0)
    expected = np.broadcast_to(signs[0] + sums[:, None], (3, CHANNELS))
    np.testing.assert_allclose(hidden[:, :CHANNELS], expected, rtol=1e-6)


def test_codes_leave_room_in_16_bits() -> None:
    assert 4 * 2 * WEIGHT_MAX * ROW_MAX < 2**15
    assert all(WEIGHT_MAX <= each.int8.raised or not each.int8.raised for each in SETS.values())


def test_channel_sizes() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    expected = np.linalg.norm(rows.astype(np.float64), axis=0) / np.sqrt(50)
    np.testing.assert_allclose(channel_sizes(rows), expected, rtol=1e-6)


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6])
def test_rows_are_normalised_by_their_moments(factor: float) -> None:
    rows = (np.random.default_rng(0).standard_normal((5, 96)) * factor).astype(np.float32)
    ones, found = np.ones(96, np.float32), np.empty_like(rows)
    compiled.normalize(rows, np.float32(0), ones, 0 * ones, found)
    exact = rows.astype(np.float64)
    exact = (exact - exact.mean(axis=1, keepdims=True)) / exact.std(axis=1, keepdims=True)
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_features_are_normalised_and_summed_by_sentence(kind: type) -> None:
    random, offsets = np.random.default_rng(0), [0, 1, 1, 5, 12, 20]
    pieces = random.integers(-99, 100, (9, PREPARED)).astype(kind)
    scales = random.uniform(0.5, 2, (9, PREPARED // CHANNELS)).astype(np.float32)
    ids, out = random.integers(0, 9, 20).astype(np.int32), np.empty((5, FEATURES), np.float32)
    hidden = random.standard_normal((20, HIDDEN)).astype(np.float32)
    compiled.pool(pieces, scales, ids, np.array(offsets), hidden, np.float32(0.1), out)
    vectors = (pieces * np.repeat(scales, CHANNELS, axis=1))[ids, :EMBEDDING]
    rows = np.concatenate([vectors, hidden], axis=1)
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + 0.1)
    sums = [rows[first:stop].sum(axis=0) for first, stop in itertools.pairwise(offsets)]
    np.testing.assert_allclose(out, sums, atol=1e-4)
