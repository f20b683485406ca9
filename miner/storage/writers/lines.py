"""Two files of lines: line i of one is the translation of line i of the other.

A text has a space for each character that some reader would take for the end of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from miner.storage.writers import batches as parts

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.writers import Batches, Origin


def write(files: Sequence[IO[bytes]], batches: Batches, schema: pa.Schema, origin: Origin) -> int:
    """Write the sources to the first file, and the targets to the second."""
    written = 0
    for table in parts.regrouped(batches, schema, parts.TEXT_ROWS):
        for file, name in zip(files, ("source_text", "target_text"), strict=True):
            lines = (f"{parts.on_a_line(text)}\n" for text in table[name].to_pylist())
            file.write("".join(lines).encode())
        written += len(table)
    return written
