"""Sentence vectors in a remote file, of which rows are read as they are asked for."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from miner.storage.remote import RemotePath

# Rows are read in one piece if at most so many times as many lie between the first and the last.
SPARSE = 4


class RemoteVectors:
    """Row-major vectors (N, D) that begin at byte ``start`` of a file; indexing reads rows."""

    def __init__(
        self, path: RemotePath, *, dtype: np.dtype[Any], shape: tuple[int, ...], start: int
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self._path, self._start = path, start

    @classmethod
    def of_npy(cls, path: RemotePath) -> Self:
        """Return those of an ``.npy`` file.

        Raises:
            ValueError: it is damaged, or in column-major order.
            PlaceError: it cannot be read.
        """
        with path.open() as stream:
            version = np.lib.format.read_magic(stream)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read is None:
                raise ValueError(f"of version {version}")
            shape, by_columns, dtype = read(stream)
            start = stream.tell()
        if by_columns:
            raise ValueError("it is in column-major order, save numpy.ascontiguousarray of it")
        if path.stat().st_size < start + dtype.itemsize * int(np.prod(shape)):
            raise ValueError("it ends too soon")
        return cls(path, dtype=dtype, shape=shape, start=start)

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the vectors at ascending rows (n,): (n, D)."""
        count, dim = len(rows), self.shape[1]
        first, last = int(rows[0]), int(rows[-1])
        if count > 1 and last - first >= SPARSE * count:
            return np.concatenate([self[rows[: count // 2]], self[rows[count // 2 :]]])
        width = dim * self.dtype.itemsize
        with self._path.open() as stream:
            stream.seek(self._start + first * width)
            content = stream.read((last + 1 - first) * width)
        return np.frombuffer(content, dtype=self.dtype).reshape(-1, dim)[rows - first]
