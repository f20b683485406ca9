"""Parquet with all that is known of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from miner.storage.writers import batches as parts

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.writers import Batches, Origin

ROW_GROUP_ROWS = 65_536


def write(files: Sequence[IO[bytes]], batches: Batches, schema: pa.Schema, origin: Origin) -> int:
    """Write row groups of ``ROW_GROUP_ROWS`` pairs."""
    import pyarrow.parquet as pq

    written = 0
    with pq.ParquetWriter(files[0], schema, compression="zstd") as writer:
        for table in parts.regrouped(batches, schema, ROW_GROUP_ROWS):
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            written += len(table)
    return written
