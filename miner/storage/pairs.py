"""The mined pairs as files: their schema, and writing them in the formats of ``writers``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from miner.storage.atomic import atomic_file, check_folder, check_writable
from miner.storage.places import AnyPath
from miner.storage.writers import Origin, Output

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.writers.batches import Batches

JUDGED = ("probability", "margin")  # what stands after the score of judged pairs


def pairs_schema(*, judged: bool = False, merged: bool = False, reasons: bool = False) -> pa.Schema:
    """Return the Arrow schema of the pairs: the fields of JSON lines and Parquet, in this order.

    Judged pairs have their ``probability`` and ``margin``, merged ones lists of ids and rows, those
    that filters rejected the ``reason``.
    """
    import pyarrow as pa

    ids = pa.list_(pa.string())
    plural, own, row = ("s", ids, pa.list_(pa.int64())) if merged else ("", pa.string(), pa.int64())
    found = {"rank": pa.int32(), "direction": pa.string()}
    schema = pa.schema(
        {
            "score": pa.float64(),
            **(dict.fromkeys(JUDGED, pa.float64()) if judged else {}),
            f"source_id{plural}": own,
            f"target_id{plural}": own,
            "source_doc": pa.string(),
            "target_doc": pa.string(),
            "source_text": pa.string(),
            "target_text": pa.string(),
            f"source_row{plural}": row,
            f"target_row{plural}": row,
            "cosine": pa.float32(),
            "source_mean": pa.float64(),
            "target_mean": pa.float64(),
            **({} if merged else {**found, "source_duplicates": ids, "target_duplicates": ids}),
        }
    )
    return schema.append(pa.field("reason", pa.string())) if reasons else schema


def check_output(path: AnyPath, origin: Origin) -> None:
    """Check, before the work begins, that pairs could be written to ``path``.

    Raises:
        ValueError: its ending names no format, or one that needs languages which are not known.
        OutputError: no file can be created there.
    """
    output = Output.named(path)
    files = output.files(origin)
    if output.format.files:
        check_folder(output.path)
    for file in files if output.path.is_dir() or not output.format.files else ():
        check_writable(file)


def write_pairs(
    path: AnyPath,
    batches: Batches,
    *,
    origin: Origin,
    judged: bool = False,
    merged: bool = False,
    reasons: bool = False,
) -> int:
    """Write pairs in the order they come, each file whole or not at all; returns how many.

    The ending of ``path`` chooses the format (``miner.storage.writers``). The bytes written do not
    depend on how the pairs are cut into batches.

    Raises:
        ValueError: see ``check_output``.
        OutputError: a file cannot be written; what was there before stays.
    """
    from miner.storage.writers.batches import regrouped

    output = Output.named(path)
    if output.format.files:
        output.path.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        places = [stack.enter_context(atomic_file(file)) for file in output.files(origin)]
        with ExitStack() as open_files:
            files = [
                open_files.enter_context(_compressed(place, output.compression)) for place in places
            ]
            schema = pairs_schema(judged=judged, merged=merged, reasons=reasons)
            written = 0

            def counted() -> Iterator[pa.Table]:
                nonlocal written
                for table in regrouped(batches, schema, output.format.rows):
                    written += len(table)
                    yield table

            output.format.load().write(files, counted(), schema, origin)
            return written


@contextmanager
def _compressed(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """A file open for writing that compresses what it is given; bytes alike for contents alike."""
    with open(path, "wb") as file:
        if compression == ".gz":
            with GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
                yield cast("IO[bytes]", zipped)
        elif compression == ".zst":
            import pyarrow as pa

            with pa.CompressedOutputStream(file, "zstd") as zipped:
                yield zipped
        else:
            yield file
