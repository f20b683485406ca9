"""What the formats share: pairs in tables of a size, and texts that fit into a line."""

import re
from collections.abc import Iterable, Iterator
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Batches: TypeAlias = Iterable[pa.Table | pa.RecordBatch]
Tables: TypeAlias = Iterator[pa.Table]

# What some reader or other takes for the end of a line or of a cell.
_BREAKS = "[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]"


def on_a_line(text: str) -> str:
    """A text with a space for each character that may end a line or a cell."""
    return re.sub(_BREAKS, " ", text)


def write_lines(file: IO[bytes], *columns: pa.ChunkedArray) -> None:
    """Write a line of each row's texts, each as ``on_a_line`` returns it, with tabs between."""
    kind = pa.large_string()
    cells = (pc.replace_substring_regex(texts, _BREAKS, " ").cast(kind) for texts in columns)
    lines = pc.binary_join_element_wise(*cells, pa.scalar("\t", kind))
    ended = pc.binary_join_element_wise(lines, *(pa.scalar(text, kind) for text in ("", "\n")))
    for chunk in ended.chunks:
        file.write(chunk.buffers()[-1])  # its texts, one after the other


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
