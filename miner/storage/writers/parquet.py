"""Parquet with all that is known of a pair."""

from collections.abc import Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from miner.storage.writers import Origin
from miner.storage.writers.batches import Tables


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write a row group of each table."""
    with pq.ParquetWriter(files[0], schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=len(table))
