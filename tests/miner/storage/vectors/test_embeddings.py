import bz2
import gzip
import io
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.storage.atomic import OutputError
from miner.storage.vectors.embeddings import (
    NOT_FINITE,
    ZERO_VECTOR,
    EmbeddingsError,
    open_embeddings,
    usable_rows,
    write_embeddings,
)

N, D = 24, 6
VECTORS = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)


def error_of(path, *, rows=N, dim=D, corpus="src.txt"):
    with pytest.raises(EmbeddingsError) as caught:
        open_embeddings(path, rows=rows, dim=dim, corpus=corpus)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def saved(tmp_path, array, name="x.npy", **options):
    path = tmp_path / name
    with open(path, "wb") as file:
        np.save(file, array, **options)
    return path


# --- reading


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dim", [D, None])
def test_npy(tmp_path, dtype, order, dim):
    expected = np.asarray(VECTORS, dtype=dtype, order=order)
    vectors = open_embeddings(saved(tmp_path, expected), rows=N, dim=dim)
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable
    assert vectors.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(vectors, expected)


def test_npy_under_another_name(tmp_path):
    path = saved(tmp_path, VECTORS, name="x.emb")
    np.testing.assert_array_equal(open_embeddings(path, rows=N, dim=None), VECTORS)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ["x.f32", "x.raw", "x.bin", "x", "x.de"])
def test_raw_floats(tmp_path, dtype, name):
    path = tmp_path / name
    path.write_bytes(VECTORS.astype(dtype).tobytes())
    vectors = open_embeddings(path, rows=N, dim=D)
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable
    assert vectors.dtype == dtype
    np.testing.assert_array_equal(vectors, VECTORS.astype(dtype))


def test_raw_floats_of_another_count(tmp_path):
    path = tmp_path / "src.f32"
    path.write_bytes(bytes(24576))
    assert error_of(path, rows=240, dim=32) == (
        "24576 bytes are 192 rows of 32 float32 or 384 rows of 32 float16, "
        "but src.txt has 240 lines; check --dim, or pass vectors of this corpus"
    )
    assert error_of(path, rows=96, dim=32).endswith(
        "but src.txt has 96 lines; check --dim (its size fits 64 for float32 or 128 for float16), "
        "or pass vectors of this corpus"
    )


def test_raw_floats_of_no_whole_row(tmp_path):
    path = tmp_path / "x.raw"
    path.write_bytes(VECTORS.tobytes()[:-4])
    assert "572 bytes are 23.83333333 rows of 6 float32" in error_of(path)


def test_raw_floats_need_dim(tmp_path):
    path = tmp_path / "x.raw"
    path.write_bytes(VECTORS.tobytes())
    assert error_of(path, dim=None) == (
        "has no header with dimensions; pass --dim (its size fits 6 for float32 or 12 for float16)"
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (VECTORS[:-1], "has 23 rows, but src.txt has 24 lines"),
        (VECTORS[:, 1:], "has 5 dimensions, but --dim is 6"),
        (VECTORS.ravel(), "has shape (144,), expected (rows, dimensions)"),
        (VECTORS[None], "has shape (1, 24, 6), expected"),
        (np.float32(1), "has shape (), expected"),
        (VECTORS[:0], "has 0 rows, but src.txt has 24 lines"),
        (VECTORS[:, :0], "has shape (24, 0), expected"),
        (VECTORS.astype(np.int8), "contains int8, expected float16, float32 or float64"),
        (VECTORS.astype(np.complex64), "contains complex64, expected"),
        pytest.param(
            VECTORS.astype(np.longdouble),
            "contains float128, expected",
            marks=pytest.mark.skipif(np.dtype(np.longdouble).itemsize != 16, reason="no float128"),
        ),
        (VECTORS.astype("S4"), "contains |S4, expected"),
        (VECTORS.astype(object), "contains Python objects, expected"),
        (np.zeros(3, dtype=[("a", "f4")]), "expected float16"),
    ],
)
def test_wrong_npy(tmp_path, array, message):
    assert message in error_of(saved(tmp_path, array))


def test_truncated_npy(tmp_path):
    path = saved(tmp_path, VECTORS)
    whole = path.read_bytes()
    for end in (len(whole) - 1, 128, 100, 9, 7):
        path.write_bytes(whole[:end])
        assert "is not a whole .npy file" in error_of(path)


def test_other_files(tmp_path):
    (tmp_path / "x.npy").write_bytes(VECTORS.tobytes())
    assert "is not a NumPy file" in error_of(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", VECTORS)
    assert "is an archive" in error_of(tmp_path / "x.npz")
    (tmp_path / "x.npy.gz").write_bytes(b"\x1f\x8b" + bytes(100))
    assert "decompress it" in error_of(tmp_path / "x.npy.gz")


def test_missing_empty_and_folder(tmp_path):
    assert error_of(tmp_path / "x.npy") == "file not found; check its path"
    (tmp_path / "x.npy").touch()
    assert error_of(tmp_path / "x.npy").startswith("is empty")
    assert error_of(tmp_path) == "cannot be read: Is a directory; pass a file in it"


@pytest.mark.parametrize("dim", [0, -1])
def test_dim_below_one(tmp_path, dim):
    assert " must be at least 1" in error_of(saved(tmp_path, VECTORS), dim=dim)


@settings(max_examples=300)
@given(position=st.integers(0, 127), value=st.integers(0, 255))
def test_a_damaged_header_is_an_error_or_harmless(position, value):
    buffer = io.BytesIO()
    np.save(buffer, VECTORS)
    data = bytearray(buffer.getvalue())
    data[position] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(data)
        try:
            vectors = open_embeddings(path, rows=N, dim=D)
        except EmbeddingsError:
            return
        assert vectors.shape == (N, D)
        assert vectors.dtype.kind == "f"


# --- usable rows


def test_usable_rows():
    block = VECTORS.copy()
    block[1, 2] = np.nan
    block[3] = 0
    block[5, 0] = np.inf
    block[7] = -0.0
    block[9] = 3e38
    block[11] = 1e-30
    block[13] = 1e-15
    block[15] = 1e15
    mask, reasons = usable_rows(block)
    assert mask.dtype == np.bool_
    assert np.flatnonzero(~mask).tolist() == [1, 3, 5, 7, 9, 11]
    assert {why: rows.tolist() for why, rows in reasons.items()} == {
        NOT_FINITE: [1, 5, 9],
        ZERO_VECTOR: [3, 7, 11],
    }
    assert all(rows.dtype == np.int64 for rows in reasons.values())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_usable_rows_of_each_type(dtype):
    block = VECTORS.astype(dtype)
    assert usable_rows(block)[0].all()
    assert usable_rows(block)[1] == {}
    block[0] = 0
    block[1] = np.finfo(dtype).max  # As float32 squares, only float16's largest is finite.
    assert usable_rows(block)[0][:2].tolist() == [False, dtype == np.float16]


def test_usable_rows_of_nothing():
    mask, reasons = usable_rows(VECTORS[:0])
    assert mask.shape == (0,)
    assert reasons == {}


# --- writing


def write(path, *, blocks=None, rows=N, dim=D, dtype="float32"):
    blocks = [VECTORS[:10], VECTORS[10:10], VECTORS[10:]] if blocks is None else blocks
    write_embeddings(path, iter(blocks), rows=rows, dim=dim, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_written_npy_is_what_numpy_writes(tmp_path, dtype):
    path = tmp_path / "x.npy"
    write(path, dtype=dtype)
    expected = saved(tmp_path, VECTORS.astype(dtype), name="expected.npy")
    assert path.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize(("name", "dtype"), [("x.f32", "float32"), ("x.f16", "float16")])
def test_written_raw_floats(tmp_path, name, dtype):
    write(tmp_path / name, dtype=dtype)
    assert (tmp_path / name).read_bytes() == VECTORS.astype(dtype).tobytes()


@pytest.mark.parametrize("name", ["x.raw", "x.bin", "x"])
def test_every_other_suffix_is_raw(tmp_path, name):
    write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == VECTORS.tobytes()


def test_what_is_written_does_not_depend_on_type_and_order(tmp_path):
    write(tmp_path / "x.raw", blocks=[np.asfortranarray(VECTORS.astype(">f8"))])
    assert (tmp_path / "x.raw").read_bytes() == VECTORS.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": N + 1}, "got 24 vectors, expected 25"),
        ({"dim": D + 1}, r"a block has shape \(10, 6\), expected \(n, 7\)"),
        ({"blocks": [VECTORS[0]]}, r"a block has shape \(6,\)"),
        ({"blocks": [VECTORS * 1e6], "dtype": "float16"}, "a value is too large for float16"),
    ],
)
@pytest.mark.parametrize("name", ["x.npy", "x.raw"])
def test_wrong_vectors_leave_nothing(tmp_path, name, change, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / name, **change)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "dtype"), [("x.f32", "float16"), ("x.f16", "float32")])
def test_the_suffix_must_agree(tmp_path, name, dtype):
    with pytest.raises(ValueError, match=f"conflicts with --dtype {dtype}"):
        write(tmp_path / name, dtype=dtype)


def test_failure_of_the_encoder_leaves_nothing(tmp_path):
    def blocks():
        yield VECTORS[:10]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "x.npy", blocks=blocks())
    assert list(tmp_path.iterdir()) == []


def test_unwritable(tmp_path):
    with pytest.raises(OutputError, match=r"none/x\.npy: cannot be written: No such file"):
        write(tmp_path / "none" / "x.npy")


@pytest.mark.parametrize("dim", [None, 7])
def test_archives_that_do_not_fit(tmp_path, dim):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("vectors.f32"))
    for name, packed in (("x.f32", bytes), ("x.tgz", gzip.compress), ("x", bz2.compress)):
        (tmp_path / name).write_bytes(packed(data.getvalue()))
        assert error_of(tmp_path / name, dim=dim) == "is a tar archive; unpack it"
    (tmp_path / "x.raw").write_bytes(gzip.compress(bytes(1000)))
    assert "is compressed; decompress it" in error_of(tmp_path / "x.raw", dim=dim)


def test_vectors_that_begin_like_an_archive_and_fit_are_vectors(tmp_path):
    path = tmp_path / "x.f32"
    path.write_bytes(b"\x1f\x8b\x08\0" + bytes(4 * 5 * 3 - 4))
    assert open_embeddings(path, rows=5, dim=3).shape == (5, 3)
