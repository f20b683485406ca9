"""Two files of lines: line i of one is the translation of line i of the other.

A text has a space for each character that some reader would take for the end of a line.
"""

from collections.abc import Sequence
from typing import IO

import pyarrow as pa

from miner.storage.writers import Origin
from miner.storage.writers.batches import Tables, write_lines


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write the sources to the first file, and the targets to the second."""
    for table in tables:
        for file, name in zip(files, ("source_text", "target_text"), strict=True):
            write_lines(file, table[name])
