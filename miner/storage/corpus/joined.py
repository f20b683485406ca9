"""Lines of text as they are in a file, and as a column: characters only where one is looked at."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

# By a text's first byte in UTF-8, and by its last: whether it may be all white space.
BEGINS_BLANK, ENDS_BLANK = np.zeros((2, 256), dtype=np.bool_)
BEGINS_BLANK[list(b"\t\n\v\f\r\x1c\x1d\x1e\x1f \xc2\xe1\xe2\xe3")] = True
ENDS_BLANK[list(b"\t\n\v\f\r\x1c\x1d\x1e\x1f \x9f\xa0\xa8\xa9\xaf")] = True
ENDS_BLANK[0x80:0x8B] = True


class JoinedLines(Sequence[str]):
    r"""Texts in UTF-8 with a byte between each two; they are decoded when one is asked for.

    ``data`` are the bytes, ``starts`` where each of N texts begins, and one past the end plus one:
    int64 (N + 1,).
    """

    def __init__(self, data: bytes, starts: NDArray[np.int64]) -> None:
        self.data, self.starts = data, starts

    @classmethod
    def of(cls, texts: Iterable[str]) -> "JoinedLines":
        """Join texts; only the bytes are of use where one holds a line's end."""
        parts = [text.encode() for text in texts]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return cls(b"\n".join(parts), np.concatenate([[0], np.cumsum(lengths + 1)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._texts[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    @cached_property
    def _texts(self) -> list[str]:
        """Decode all at once: many times faster than line by line."""
        return self.data.decode().split("\n")

    def raw(self, place: int) -> bytes:
        """Return the bytes of a text."""
        return self.data[self.starts[place] : self.starts[place + 1] - 1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of each: (N,)."""
        return np.diff(self.starts) - 1

    def column(self) -> "pa.StringArray":
        """Return them as a column, where no text has a line's end."""
        import pyarrow as pa

        offsets = (self.starts - np.arange(len(self.starts))).astype(np.int32)
        texts = pa.py_buffer(self.data.replace(b"\n", b""))
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), texts)


def doubtful_texts(texts: Sequence[str], *, longest: int) -> list[tuple[int, str]]:
    """Return the texts that may be blank or longer than ``longest``, with positions."""
    if isinstance(texts, JoinedLines):
        data = np.frombuffer(texts.data + b"\n", np.uint8)
        lengths = texts.lengths
        bad = BEGINS_BLANK[data[texts.starts[:-1]]] & ENDS_BLANK[data[texts.starts[1:] - 2]]
        if b"\0" in texts.data:
            bad[np.searchsorted(texts.starts, np.flatnonzero(data == 0), side="right") - 1] = True
    else:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        # isspace() is true of what str.strip() would leave nothing of, without the copy.
        bad = np.fromiter(map(str.isspace, texts), np.bool_, len(texts))
        bad |= np.array(["\0" in text for text in texts], dtype=np.bool_)
    bad |= (lengths == 0) | (lengths > longest)
    positions = np.flatnonzero(bad).tolist()
    if isinstance(texts, JoinedLines):
        return [(position, texts.raw(position).decode()) for position in positions]
    return [(position, texts[position]) for position in positions]
