"""What the formats share: pairs in tables of a size, and texts that fit into a line."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

Batches: TypeAlias = Iterable[pa.Table | pa.RecordBatch]
Tables: TypeAlias = Iterator[pa.Table]

# What some reader or other takes for the end of a line or of a cell.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def on_a_line(text: str) -> str:
    """A text with a space for each character that may end a line or a cell."""
    return _BREAKS.sub(" ", text)


def regrouped(batches: Batches, schema: pa.Schema, rows: int) -> Tables:
    """Yield the pairs in tables of ``rows`` rows (the last may be shorter), of a schema."""
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
