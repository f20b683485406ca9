"""The vectors of LASER's own implementation, in any batch and any order."""

from __future__ import annotations

import numpy as np
import pytest

from encoder import load_encoder, network
from tests.encoder.laser.conftest import GOLDEN, LINES

CHECKPOINTS = {
    "bilstm_1layer": "laser",
    "bilstm_3layer": "laser",
    "laser3_cls_prenorm": "laser3",
    "laser3_maxpool_leftpad_learnedpos": "laser3",
}
pytestmark = pytest.mark.parametrize("name", CHECKPOINTS)


def encoder_of(name: str):
    return load_encoder(f"{CHECKPOINTS[name]}:{GOLDEN / name}.pt", pretokenized=True)


def test_vectors_are_lasers(name: str) -> None:
    vectors = encoder_of(name).encode(LINES, normalize=False)
    expected = np.load(GOLDEN / f"{name}.expected.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


def test_unit_length_is_the_default(name: str) -> None:
    vectors = encoder_of(name).encode(LINES)
    expected = np.load(GOLDEN / f"{name}.expected.npy")
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [1, 30, 200, 100_000])
def test_a_vector_does_not_depend_on_its_batch(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = encoder_of(name)
    alone = np.vstack([encoder.encode([line], normalize=False) for line in LINES])
    monkeypatch.setitem(network.BATCH_TOKENS, "cpu", size)
    order = np.random.default_rng(size).permutation(len(LINES))
    together = encoder.encode([LINES[row] for row in order], normalize=False)
    np.testing.assert_allclose(together, alone[order], rtol=0, atol=1e-6)


def test_a_blank_line_is_its_end(name: str) -> None:
    blank, odd = encoder_of(name).encode(["", " \t\u3000"], normalize=False)
    assert blank.any()
    np.testing.assert_array_equal(blank, odd)


def test_chunks_and_repeats_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = encoder_of(name)
    expected = encoder.encode(LINES)
    monkeypatch.setattr(network, "CHUNK_SENTENCES", 7)
    found = encoder.encode([*LINES, *LINES[::-1]])
    np.testing.assert_allclose(found, np.vstack([expected, expected[::-1]]), rtol=0, atol=1e-6)
    assert encoder.encode([]).shape == (0, encoder.dim)
