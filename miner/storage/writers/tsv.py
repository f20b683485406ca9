"""Score TAB source text TAB target text, without header or quoting.

The score has all its digits; a text has a space for each character that some reader would take for
the end of a line or a cell. Rejected pairs have the reason at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from miner.storage.writers import batches as parts

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.writers import Batches, Origin


def write(files: Sequence[IO[bytes]], batches: Batches, schema: pa.Schema, origin: Origin) -> int:
    """Write a line for each pair."""
    names = ["source_text", "target_text", *(["reason"] if "reason" in schema.names else [])]
    written = 0
    for table in parts.regrouped(batches, schema, parts.TEXT_ROWS):
        columns = [map(parts.on_a_line, table[name].to_pylist()) for name in names]
        rows = zip(map(repr, table["score"].to_pylist()), *columns, strict=True)
        files[0].write("".join("\t".join(row) + "\n" for row in rows).encode())
        written += len(table)
    return written
