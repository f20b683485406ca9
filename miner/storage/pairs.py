"""The schema of mined pairs, and their writing in the known formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from miner.storage.atomic import atomic_file, check_folder, check_writable
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression
from miner.storage.writers import COMPRESSIONS, Origin, Output

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.writers.formats import Batches

JUDGED = ("probability", "margin")  # the columns after the score of judged pairs


def pairs_schema(
    *,
    judged: bool = False,
    merged: bool = False,
    originals: bool = False,
    unmatched: bool = False,
    reasons: bool = False,
) -> pa.Schema:
    """Return the Arrow schema of pairs in JSON lines and Parquet.

    Columns are ``score``, then ``id``, ``doc``, ``text`` and ``row`` of each side, such as
    ``source_id``, and ``cosine``, ``source_mean``, ``target_mean``, ``rank``, ``direction``,
    ``source_duplicates`` and ``target_duplicates``.

    Args:
        judged: Add ``probability`` and ``margin`` after ``score``.
        merged: Make ids and rows lists (``source_ids``), and omit rank, direction and duplicates.
        originals: Add ``source_original`` and ``target_original``, the texts before their repair.
        unmatched: Add lists of words, ``source_unmatched`` and ``target_unmatched``.
        reasons: Add ``reason``, why a pair was rejected.
    """
    import pyarrow as pa

    text, number, ids = pa.string(), pa.float64(), pa.list_(pa.string())
    key, row = (ids, pa.list_(pa.int64())) if merged else (text, pa.int64())
    plural = "s" if merged else ""
    fields = [("score", number), *((name, number) for name in JUDGED if judged)]
    for name, kind in ((f"id{plural}", key), ("doc", text), ("text", text), (f"row{plural}", row)):
        fields += [(f"source_{name}", kind), (f"target_{name}", kind)]
    fields += [("cosine", pa.float32()), ("source_mean", number), ("target_mean", number)]
    if not merged:
        fields += [("rank", pa.int32()), ("direction", text)]
        fields += [("source_duplicates", ids), ("target_duplicates", ids)]
    if originals:
        fields += [("source_original", text), ("target_original", text)]
    if unmatched:
        fields += [("source_unmatched", ids), ("target_unmatched", ids)]
    return pa.schema([*fields, ("reason", text)] if reasons else fields)


def check_output(path: AnyPath, origin: Origin) -> None:
    """Check that pairs could be written to ``path``, without writing any.

    Errors of ``Output`` are raised, and OutputError or PlaceError if a file cannot be written.
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
    schema: pa.Schema | None = None,
    stream: IO[bytes] | None = None,
    **kinds: bool,
) -> int:
    """Write pairs in order, each file completely, and return their number.

    Errors of ``check_output`` are raised.

    Args:
        path: Its suffix decides the format (``miner.storage.writers``). Files are replaced.
        batches: Arrow tables or record batches of pairs. Their division does not change the bytes.
        origin: Languages, encoder and signature, which some formats store.
        schema: The columns to write, which all batches have. Default: ``pairs_schema(**kinds)``.
        stream: Open binary file to write to, uncompressed, instead of the file at ``path``, whose
            format must have only one. Languages that it needs are then not checked.
        kinds: Arguments of ``pairs_schema``.
    """
    from miner.storage.writers import formats

    output = Output.named(path)
    if output.format.files:
        output.path.mkdir(parents=True, exist_ok=True)
    schema, written = schema or pairs_schema(**kinds), 0

    def counted() -> Iterator[pa.Table]:
        nonlocal written
        for table in formats.regroup(batches, schema, output.format.rows):
            written += len(table)
            yield table

    write = formats.WRITERS[output.format.name]
    if stream:
        write([stream], counted(), schema, origin)
        return written
    with ExitStack() as stack:
        paths = [stack.enter_context(atomic_file(file)) for file in output.files(origin)]
        files = [stack.enter_context(open_compressed(out, output.compression)) for out in paths]
        write(files, counted(), schema, origin)
    return written


def output_format(path: AnyPath) -> tuple[str, str]:
    """Return the suffixes of an output's format and compression, or "".

    Raises:
        ValueError: No output has this compression.
    """
    suffix, compression = split_compression(path)
    if compression not in ("", *COMPRESSIONS):
        known = " or ".join(COMPRESSIONS)
        raise ValueError(f"{path}: cannot write {compression}; end it in {known}, or in neither")
    return suffix, compression


@contextmanager
def open_compressed(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file to write or replace, with ``.gz``, ``.zst``, or "" for none.

    Equal contents give equal bytes, because no names or times are stored.
    """
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
