"""Score TAB source text TAB target text, without header or quoting.

The score has all its digits; a text has a space for each character that some reader would take for
the end of a line or a cell. Rejected pairs have the reason at the end.
"""

from collections.abc import Sequence
from typing import IO

import pyarrow as pa

from miner.storage.writers import Origin
from miner.storage.writers.batches import Tables, on_a_line


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write a line for each pair."""
    names = ["source_text", "target_text", *(["reason"] if "reason" in schema.names else [])]
    for table in tables:
        columns = [map(on_a_line, table[name].to_pylist()) for name in names]
        rows = zip(map(repr, table["score"].to_pylist()), *columns, strict=True)
        files[0].write("".join("\t".join(row) + "\n" for row in rows).encode())
