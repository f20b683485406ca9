"""An object a line in UTF-8, with all that is known of a pair.

Numbers that are not finite are null, as JSON has no other word for them; U+0085, U+2028 and U+2029,
which some readers take for the end of a line, are escaped.
"""

import json
from collections.abc import Sequence
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from miner.storage.writers import Origin
from miner.storage.writers.batches import Tables

_ESCAPES = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write a line for each pair."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for table in tables:
        lines = "".join(encode(pair) + "\n" for pair in _finite(table).to_pylist())
        for mark, escape in _ESCAPES.items():
            lines = lines.replace(mark, escape)
        files[0].write(lines.encode())


def _finite(table: pa.Table) -> pa.Table:
    for position, field in enumerate(table.schema):
        if pt.is_floating(field.type):
            column = table[field.name]
            finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, field.type))
            table = table.set_column(position, field, finite)
    return table
