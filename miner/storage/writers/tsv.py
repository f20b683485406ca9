"""Score TAB source text TAB target text, without header or quoting.

The score has all its digits; a text has a space for each character that some reader would take for
the end of a line or a cell. Rejected pairs have the reason at the end.
"""

from collections.abc import Sequence
from typing import IO

import pyarrow as pa

from miner.storage.writers import Origin
from miner.storage.writers.batches import Tables, write_lines


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write a line for each pair."""
    names = ["source_text", "target_text", *(["reason"] if "reason" in schema.names else [])]
    for table in tables:
        scores = pa.chunked_array([[repr(score) for score in table["score"].to_pylist()]])
        write_lines(files[0], scores, *(table[name] for name in names))
