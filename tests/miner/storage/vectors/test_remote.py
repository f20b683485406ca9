"""Vectors in a bucket: the rows that are asked for, and what is refused."""

import io

import numpy as np
import pytest

from miner.storage.vectors.embeddings import (
    EmbeddingsError,
    RemoteVectors,
    open_embeddings,
    peek_dim,
)
from tests.s3 import S3

VECTORS = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float16)


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["v.npy", "v.raw"])
@pytest.mark.parametrize(
    "rows", [[], [0], [49], [3, 4, 5], [0, 1, 48, 49], [7, 20, 21, 22, 23, 24]]
)
def test_rows(s3: S3, name: str, rows: list[int]) -> None:
    s3.put(name, saved(VECTORS) if name == "v.npy" else VECTORS.tobytes())
    vectors = open_embeddings(s3.path(name), rows=50, dim=6)
    assert isinstance(vectors, RemoteVectors)
    assert (vectors.shape, vectors.dtype) == ((50, 6), np.float16)
    found = vectors[np.array(rows, dtype=np.int64)]
    assert found.dtype == np.float16
    assert np.array_equal(found, VECTORS[rows])


def test_their_dimensions(s3: S3) -> None:
    s3.put("v.npy", saved(VECTORS))
    s3.put("v.raw", VECTORS.tobytes())
    assert peek_dim(s3.path("v.npy")) == 6
    assert peek_dim(s3.path("v.raw")) is None


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("v.npy", saved(VECTORS)[:-1], "is not a whole .npy file (it is truncated); write it"),
        ("v.npy", saved(np.asfortranarray(VECTORS)), "it is in column-major order; save numpy"),
        ("v.npy", saved(VECTORS.astype(int)), "contains int64, expected float16"),
        ("v.npy", saved(VECTORS[:40]), "has 40 rows, but the corpus has 50 lines"),
        ("v.npy", b"\x93NUMPY\x07\x00", "is not a whole .npy file (its version (7, 0) is unknown)"),
        ("v.npy", b"nothing", "is not a NumPy file"),
        ("v.raw", b"x" * 7, "7 bytes are"),
        ("v.raw", b"", "is empty"),
    ],
)
def test_what_cannot_be_used(s3: S3, name: str, content: bytes, expected: str) -> None:
    s3.put(name, content)
    with pytest.raises(EmbeddingsError) as caught:
        open_embeddings(s3.path(name), rows=50, dim=6)
    assert str(caught.value).startswith(f"{s3.told(name)}: ")
    assert expected in str(caught.value)


def test_what_is_not_there(s3: S3) -> None:
    with pytest.raises(EmbeddingsError, match="file not found"):
        open_embeddings(s3.path("none.npy"), rows=50, dim=6)
    assert peek_dim(s3.path("none.npy")) is None
