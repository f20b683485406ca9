"""Lines of text as joined bytes, which are decoded only when needed."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

# Whether a text may be all white space, by its first byte in UTF-8 and by its last.
BEGINS_BLANK, ENDS_BLANK = np.zeros((2, 256), dtype=np.bool_)
BEGINS_BLANK[list(b"\t\n\v\f\r\x1c\x1d\x1e\x1f \xc2\xe1\xe2\xe3")] = True
ENDS_BLANK[list(b"\t\n\v\f\r\x1c\x1d\x1e\x1f \x9f\xa0\xa8\xa9\xaf")] = True
ENDS_BLANK[0x80:0x8B] = True


class JoinedLines(Sequence[str]):
    """A sequence of N texts, stored as one string of bytes in UTF-8.

    ``data`` has a line feed between two texts. ``starts``, int64 (N + 1,), are the positions where
    texts begin, and where another would begin. If any byte is not UTF-8, only ``raw`` reads texts.
    """

    def __init__(self, data: bytes, starts: NDArray[np.int64]) -> None:
        self.data, self.starts = data, starts

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "JoinedLines":
        """Join texts, or raise UnicodeEncodeError for a lone surrogate.

        If any text contains a line feed, all texts can only be read by ``raw``.
        """
        encoded = [text.encode() for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(b"\n".join(encoded), np.concatenate([[0], np.cumsum(lengths + 1)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        return self._texts[position]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    @cached_property
    def _texts(self) -> list[str]:
        # All at once, which is many times faster than one by one.
        return self.data.decode().split("\n") if len(self) else []

    def raw(self, position: int) -> bytes:
        """Return the bytes of the text at a position from 0."""
        return self.data[self.starts[position] : self.starts[position + 1] - 1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of each text, int64 (N,)."""
        return np.diff(self.starts) - 1

    def column(self) -> "pa.StringArray":
        """Return texts as Arrow strings, if below 2 GiB and without line feeds."""
        import pyarrow as pa

        offsets = (self.starts - np.arange(len(self.starts))).astype(np.int32)
        texts = pa.py_buffer(self.data.replace(b"\n", b""))
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), texts)


def doubtful_texts(texts: Sequence[str], *, max_length: int) -> list[tuple[int, str]]:
    """Find texts that may be too long or blank, or may contain NUL.

    Each result is a position and its text, in the order of positions. A text is too long above
    ``max_length`` characters. All such texts are found, and of ``JoinedLines`` maybe others.
    """
    if isinstance(texts, JoinedLines):
        data = np.frombuffer(texts.data + b"\n", np.uint8)
        lengths = texts.lengths
        mask = BEGINS_BLANK[data[texts.starts[:-1]]] & ENDS_BLANK[data[texts.starts[1:] - 2]]
        if b"\0" in texts.data:
            mask[np.searchsorted(texts.starts, np.flatnonzero(data == 0), side="right") - 1] = True
    else:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        # isspace() is true if str.strip() would return nothing, but makes no copy.
        mask = np.fromiter(map(str.isspace, texts), np.bool_, len(texts))
        mask |= np.array(["\0" in text for text in texts], dtype=np.bool_)
    mask |= (lengths == 0) | (lengths > max_length)
    positions = np.flatnonzero(mask).tolist()
    if isinstance(texts, JoinedLines):
        return [(position, texts.raw(position).decode()) for position in positions]
    return [(position, texts[position]) for position in positions]
