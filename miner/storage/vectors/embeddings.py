"""Sentence vectors in files of NumPy (``.npy``) or LASER (raw floats).

Rows of a remote file are read on demand. Axes: ``N`` rows, one per line, ``D`` dimensions.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from tokenize import TokenError
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from miner.arrays import PARSING, IntArray, Mask, load_array
from miner.commandline import explain_errno
from miner.storage.atomic import atomic_file
from miner.storage.places import AnyPath, Place, PlaceError, RemotePath
from miner.storage.streams import COMPRESSIONS, HEAD_BYTES, look_into

MAX_SPAN_RATIO = 4  # at most as many rows are read per requested row, or the read is divided


@dataclass(frozen=True)
class RemoteVectors:
    """Row-major vectors (N, D) in a remote file from byte ``start``.

    Index by ascending int64 rows (n,) to read an array (n, D), with errors of ``path.open``.
    """

    path: RemotePath
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int = 0

    @classmethod
    def from_npy(cls, path: RemotePath) -> Self:
        """Open the vectors of a remote ``.npy`` file, with errors of its ``open``.

        Raises:
            ValueError: The header is invalid, the file truncated, or the array column-major. Some
                invalid headers raise SyntaxError, TokenError, TypeError or OverflowError.
        """
        with path.open() as stream:
            version = np.lib.format.read_magic(stream)
            read = getattr(np.lib.format, "read_array_header_{}_{}".format(*version), None)
            if read is None:
                raise ValueError(f"its version {version} is unknown")
            with PARSING:
                shape, by_columns, dtype = read(stream)
            start = stream.tell()
        if by_columns:
            raise ValueError("it is in column-major order; save numpy.ascontiguousarray of it")
        if path.stat().st_size < start + dtype.itemsize * int(np.prod(shape)):
            raise ValueError("it is truncated")
        return cls(path, dtype, shape, start)

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        count, dim = len(rows), self.shape[1]
        if count == 0:
            return np.empty((0, dim), dtype=self.dtype)
        first, last = int(rows[0]), int(rows[-1])
        if count > 1 and last - first >= MAX_SPAN_RATIO * count:
            return np.concatenate([self[rows[: count // 2]], self[rows[count // 2 :]]])
        width = dim * self.dtype.itemsize
        with self.path.open() as stream:
            stream.seek(self.start + first * width)
            content = stream.read((last + 1 - first) * width)
        return np.frombuffer(content, dtype=self.dtype).reshape(-1, dim)[rows - first]


NOT_FINITE = "not finite"
ZERO_VECTOR = "zero vector"

_COMPRESSED = "is compressed; decompress it, to be mapped into memory"
_NPY_MAGIC = b"\x93NUMPY"
# NumPy reads the header as a Python literal, so a damaged one raises errors of Python's parser.
_NPY_DAMAGE = (OSError, OverflowError, SyntaxError, TokenError, TypeError, ValueError)
_RAW_DTYPES = (np.dtype("<f4"), np.dtype("<f2"))  # Little-endian, as LASER writes them.
_DTYPE_BY_SUFFIX = {".f16": "float16", ".f32": "float32"}


class EmbeddingsError(ValueError):
    """An error about unusable embeddings, with their path and the remedy."""


def open_embeddings(
    path: Place, *, rows: int, dim: int | None, corpus: str = "the corpus"
) -> NDArray[np.floating] | RemoteVectors:
    """Map a file of vectors into memory, without reading them.

    The result is read-only float16, float32 or float64 (``rows``, D), in the file's memory order,
    or ``RemoteVectors`` of a remote file, which is not fetched.

    Args:
        path: ``.npy`` (known by its first bytes), or raw row-major float32 or float16 (by size).
        rows: lines of the corpus, rejected ones included.
        dim: dimensions of a vector; required for raw floats, checked for ``.npy``.
        corpus: the corpus's name, for errors.

    Raises:
        EmbeddingsError: The file is missing or damaged, or does not contain such vectors.
    """
    name = str(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            size = file.seek(0, os.SEEK_END)
    except FileNotFoundError:
        raise EmbeddingsError(f"{name}: file not found; check its path") from None
    except PlaceError as error:
        raise EmbeddingsError(str(error)) from error
    except OSError as error:
        raise EmbeddingsError(f"{name}: cannot be read: {explain_errno(error)}") from error
    if not head:
        raise EmbeddingsError(f"{name}: is empty; write the embeddings again")
    if dim is not None and dim < 1:
        raise EmbeddingsError(f"{name}: --dim {dim} must be at least 1; pass its dimensions")
    if head.startswith(_NPY_MAGIC):
        return _map_npy(path, rows, dim, corpus)
    _refuse_other_files(name, head)
    try:
        dtype, dim = _raw_layout(name, size, rows, dim, corpus)
    except EmbeddingsError:
        levels, refusal = look_into(head)
        if refusal or levels:
            raise EmbeddingsError(f"{name}: {refusal or _COMPRESSED}") from None
        raise
    if isinstance(path, RemotePath):
        return RemoteVectors(path, dtype, (rows, dim))
    return np.memmap(path, dtype=dtype, mode="r", shape=(rows, dim))


def peek_dim(path: Place) -> int | None:
    """Return D of a readable ``.npy`` file of an array (N, D), or else None."""
    try:
        shape: tuple[int, ...] = _open_npy(path).shape
    except _NPY_DAMAGE:
        return None
    return shape[1] if len(shape) == 2 else None


def usable_rows(block: NDArray[np.floating]) -> tuple[Mask, dict[str, IntArray]]:
    """Find the rows of vectors (N, D) that can be mined.

    The result is a mask (N,) of usable rows, and int64 positions of other rows by reason, absent if
    none. Vectors are mined as float32. A row whose squared length is NaN or overflows float32 is
    NOT_FINITE. A row with one below the smallest normal number (length 1e-19) is a ZERO_VECTOR.
    """
    if block.dtype == np.float16:  # squares neither overflow nor vanish in float32, so bits tell
        largest = (block.view(np.uint16) & np.uint16(0x7FFF)).max(axis=1, initial=0)
        infinite, zero = largest >= np.uint16(0x7C00), largest == 0
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = block.astype(np.float32, copy=False)
            squares = np.einsum("nd,nd->n", vectors, vectors)
        infinite, zero = ~np.isfinite(squares), squares < np.finfo(np.float32).tiny
    reasons = ((NOT_FINITE, infinite), (ZERO_VECTOR, zero))
    return ~(infinite | zero), {why: np.flatnonzero(bad) for why, bad in reasons if bad.any()}


def write_embeddings(
    path: AnyPath,
    vectors: Iterable[NDArray[np.floating]],
    *,
    rows: int,
    dim: int,
    dtype: Literal["float16", "float32"] = "float32",
) -> None:
    """Write or replace a file of vectors, completely or not at all.

    ``vectors`` are blocks (n, D) that have ``rows`` rows together, and D is ``dim``. A ``path``
    with ``.npy`` makes a NumPy file. Other suffixes make raw little-endian floats by row without a
    header, like LASER. Errors of ``atomic_file`` are raised.

    Raises:
        ValueError: The blocks have another shape or number of rows, a value is too large for
            ``dtype``, or a suffix ``.f16`` or ``.f32`` is not for it.
    """
    name, suffix = str(path), PurePath(str(path)).suffix.lower()
    if _DTYPE_BY_SUFFIX.get(suffix, dtype) != dtype:
        raise ValueError(f"{name}: the suffix conflicts with --dtype {dtype}; use .npy or .raw")
    file_dtype = np.dtype(dtype).newbyteorder("<")
    written = 0
    with atomic_file(path) as temporary, open(temporary, "wb") as file:
        if suffix == ".npy":
            header = {"descr": file_dtype.str, "fortran_order": False, "shape": (rows, dim)}
            np.lib.format.write_array_header_1_0(file, header)
        for block in vectors:
            if block.ndim != 2 or block.shape[1] != dim:
                raise ValueError(f"{name}: a block has shape {block.shape}, expected (n, {dim})")
            try:
                with np.errstate(over="raise"):
                    file.write(block.astype(file_dtype, order="C", copy=False).tobytes())
            except FloatingPointError:
                raise ValueError(
                    f"{name}: a value is too large for {file_dtype.name}; use --dtype float32"
                ) from None
            written += len(block)
        if written != rows:
            raise ValueError(f"{name}: got {written} vectors, expected {rows}")


def _open_npy(path: Place) -> NDArray[np.floating] | RemoteVectors:
    if isinstance(path, RemotePath):
        return RemoteVectors.from_npy(path)
    # Without pickles, which could run any code.
    vectors: NDArray[np.floating] = load_array(path, mmap_mode="r")
    return np.asanyarray(vectors)


def _map_npy(
    path: Place, rows: int, dim: int | None, corpus: str
) -> NDArray[np.floating] | RemoteVectors:
    expected = "expected float16, float32 or float64"
    try:
        vectors = _open_npy(path)  # maps the file, so the type is checked before values are read
    except _NPY_DAMAGE as error:
        if "object" in str(error).lower():
            cause = f"contains Python objects, {expected}"
        else:
            cause = f"is not a whole .npy file ({str(error).partition(chr(10))[0]})"
        raise EmbeddingsError(f"{path}: {cause}; write it again") from error
    shape = vectors.shape
    if vectors.dtype.kind != "f" or vectors.dtype.itemsize not in (2, 4, 8):
        problem = f"contains {vectors.dtype}, {expected}; convert it"
    elif len(shape) != 2 or shape[1] == 0:
        problem = f"has shape {shape}, expected (rows, dimensions); reshape it"
    elif shape[0] != rows:
        problem = f"has {shape[0]} rows, but {corpus} has {rows} lines; pass vectors of that corpus"
    elif dim not in (None, shape[1]):
        problem = f"has {shape[1]} dimensions, but --dim is {dim}; omit --dim for .npy"
    else:
        return vectors
    raise EmbeddingsError(f"{path}: {problem}")


def _refuse_other_files(name: str, head: bytes) -> None:
    suffix = PurePath(name).suffix.lower()
    if suffix == ".npy":
        raise EmbeddingsError(f"{name}: is not a NumPy file; rename raw floats to another suffix")
    if head.startswith(b"PK\x03\x04") and suffix in {".npz", ".pt", ".zip"}:
        raise EmbeddingsError(f"{name}: is an archive; save its array alone with numpy.save")
    if suffix in COMPRESSIONS:
        raise EmbeddingsError(f"{name}: {_COMPRESSED}")


def _raw_layout(
    name: str, size: int, rows: int, dim: int | None, corpus: str
) -> tuple[np.dtype[np.floating], int]:
    fitting = " or ".join(
        f"{size // (rows * dtype.itemsize)} for {dtype.name}"
        for dtype in _RAW_DTYPES
        if rows and size % (rows * dtype.itemsize) == 0
    )
    fits = f" (its size fits {fitting})" if fitting else ""
    if dim is None:
        raise EmbeddingsError(f"{name}: has no header with dimensions; pass --dim{fits}")
    for dtype in _RAW_DTYPES:
        if size == rows * dim * dtype.itemsize:
            return dtype, dim
    contents = " or ".join(
        f"{size / (dim * dtype.itemsize):.10g} rows of {dim} {dtype.name}" for dtype in _RAW_DTYPES
    )
    raise EmbeddingsError(
        f"{name}: {size} bytes are {contents}, but {corpus} has {rows} lines; check --dim{fits}, "
        "or pass vectors of this corpus"
    )
