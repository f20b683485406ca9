"""What the formats share: pairs in tables of a size, and texts that fit into a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.writers import Batches

TEXT_ROWS = 8192  # Pairs made into Python objects at a time: about 10 MB.

# What some reader or other takes for the end of a line or of a cell.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def on_a_line(text: str) -> str:
    """A text with a space for each character that may end a line or a cell."""
    return _BREAKS.sub(" ", text)


def regrouped(batches: Batches, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Yield the pairs in tables of ``rows`` rows (the last may be shorter), of a schema."""
    import pyarrow as pa

    held: list[pa.Table] = []
    held_rows = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        held.append(table.select(schema.names).cast(schema))
        held_rows += len(table)
        if held_rows >= rows:
            whole = pa.concat_tables(held)
            held_rows %= rows
            end = len(whole) - held_rows
            held = [whole.slice(end)]
            for start in range(0, end, rows):
                # Combined, so that a Parquet file's pages do not show where the batches ended.
                yield whole.slice(start, rows).combine_chunks()
    if held_rows:
        yield pa.concat_tables(held).combine_chunks()
