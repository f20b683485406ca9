"""Rows packed, summed and measured, against the definitions and against torch."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from torch.nn import functional

import encoder.compiled
import encoder.rows
from encoder.rows import LARGEST, PackedTable, normalize_rows, pack, sum_rows
from encoder.tokenizer import Tokens
from tests.encoder.test_tokenizer import lists_of, tokens_of

BOTH = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])


def random_rows(rows: int, dim: int, *, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)


def use(patch: pytest.MonkeyPatch, *, compiled: bool) -> None:
    """Have all sums compiled, or none."""
    patch.setattr(encoder.rows, "COMPILED_FROM", 0 if compiled else 1 << 60)
    patch.delitem(sys.modules, "encoder.compiled", raising=False)


def unpacked(table: PackedTable) -> NDArray[np.float32]:
    """One number after the other."""
    rows = np.zeros(table.shape, dtype=np.float32)
    for row, place in np.ndindex(rows.shape):
        byte = int(table.codes[row, place // 2])
        code = byte % 16 if place % 2 else byte // 16
        rows[row, place] = np.float32(code - 8) * table.scales[row]
    return rows


def added(table: NDArray[np.float32], tokens: Tokens) -> NDArray[np.float32]:
    """One row after the other."""
    sums = np.zeros((len(tokens), table.shape[1]), dtype=np.float32)
    for total, ids in zip(sums, lists_of(tokens), strict=True):
        for row in ids:
            total += table[row]
    return sums


@given(
    table=arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
        elements=st.floats(-1e6, 1e6, width=32),
    )
)
def test_packed_numbers_are_off_by_no_more_than_the_row_allows(table: NDArray[np.float32]) -> None:
    packed = pack(table)
    rows, dim = table.shape
    assert (packed.codes.dtype, packed.scales.dtype) == (np.uint8, np.float32)
    assert (packed.codes.shape, packed.scales.shape) == ((rows, (dim + 1) // 2), (rows,))
    assert (len(packed), packed.shape) == (rows, table.shape)
    errors = np.square(unpacked(packed).astype(np.float64) - table).sum(axis=1)
    # What scaling by the largest number alone is off by, half a step each.
    steps = np.abs(table).max(axis=1).astype(np.float64) / LARGEST
    assert (errors <= dim * (steps / 2) ** 2 * 1.0001 + 1e-30).all()


def test_a_row_is_cut_off_where_the_others_gain_by_it() -> None:
    row = random_rows(1, 400, seed=5)
    stored = unpacked(pack(row))
    whole = np.rint(row / np.abs(row).max() * LARGEST) * np.abs(row).max() / LARGEST
    assert np.square(stored - row).sum() < 0.8 * np.square(whole - row).sum()
    assert np.abs(stored).max() < np.abs(row).max()


def test_packed_numbers_are_as_they_were() -> None:
    """Read otherwise, encoders that are saved would be nonsense."""
    codes = np.array([[0x1F, 0x89], [0x88, 0x88]], dtype=np.uint8)
    table = PackedTable(codes=codes, scales=np.array([0.5, 2], dtype=np.float32), dim=3)
    assert table[np.array([1, 0, 0])].tolist() == [[0, 0, 0], *[[-3.5, 3.5, 0]] * 2]


@BOTH
@settings(max_examples=50)
@given(
    lists=st.lists(st.lists(st.integers(0, 6), max_size=9), max_size=6),
    dim=st.integers(1, 20),
    packed=st.booleans(),
)
def test_rows_are_added_one_after_the_other(
    compiled: bool, lists: list[list[int]], dim: int, packed: bool
) -> None:
    table = random_rows(7, dim)
    whole = pack(table) if packed else table
    tokens = tokens_of(lists)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, compiled=compiled)
        sums = sum_rows(whole, tokens)
    expected = added(unpacked(whole) if isinstance(whole, PackedTable) else table, tokens)
    assert (sums.dtype, sums.shape) == (np.float32, (len(lists), dim))
    assert sums.tobytes() == expected.tobytes()


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="torch adds in another order on other processors",
)
@BOTH
@pytest.mark.parametrize("dim", [8, 40, 256])
def test_bits_are_those_of_torch(compiled: bool, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, compiled=compiled)
    monkeypatch.setattr(encoder.rows, "THREAD_SUMS", 64)
    generator = np.random.default_rng(dim)
    table = random_rows(300, dim)
    lists = [generator.integers(0, 300, size).tolist() for size in generator.integers(0, 40, 500)]
    tokens = tokens_of(lists)
    sums = functional.embedding_bag(
        torch.from_numpy(tokens.ids),
        torch.from_numpy(table),
        torch.from_numpy(tokens.offsets.astype(np.int32)),
        mode="sum",
        include_last_offset=True,
    )
    found = sum_rows(table, tokens)
    assert found.tobytes() == sums.numpy().tobytes()
    assert normalize_rows(found).tobytes() == sums.norm(dim=1).numpy().tobytes()
    assert found.tobytes() == functional.normalize(sums).numpy().tobytes()


@pytest.mark.parametrize("dim", [1, 7, 8, 9, 31, 256])
def test_compiled_lengths_have_the_bits_of_numpys(dim: int) -> None:
    plain, rows = (random_rows(20, dim, seed=dim) for _ in range(2))
    plain[3] = rows[3] = 0
    with pytest.MonkeyPatch.context() as patch:
        use(patch, compiled=False)
        expected = normalize_rows(plain)
    assert normalize_rows(rows).tobytes() == expected.tobytes()
    assert rows.tobytes() == plain.tobytes()


@BOTH
@pytest.mark.parametrize("dim", [1, 7, 8, 9, 31])
def test_rows_of_unit_length(compiled: bool, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        use(monkeypatch, compiled=False)
    rows = random_rows(20, dim)
    rows[3] = 0
    before = rows.astype(np.float64)
    lengths = normalize_rows(rows)
    np.testing.assert_allclose(lengths, np.linalg.norm(before, axis=1), rtol=1e-6)
    np.testing.assert_allclose(rows * lengths[:, None], before, rtol=1e-5)
    assert not rows[3].any()
