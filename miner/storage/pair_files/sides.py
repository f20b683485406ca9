"""Turn pairs into files of lines or tables, and corpora into pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

from miner.storage.atomic import atomic_file
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError
from miner.storage.layout import SIDES
from miner.storage.pair_files.base import FilePair, PairFile
from miner.storage.pair_files.moses import pairs_of_sides
from miner.storage.places import Place, RemotePath
from miner.storage.writers import on_a_line

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.arrays import IntArray

NAMES = ("source.txt", "target.txt")
ORIGINALS_FILE = "originals.arrow"  # in the same folder
ORIGINALS = ("source_original", "target_original")  # fields of texts before their repair
BATCH_LINES = 1 << 13


def write_sides(pairs: PairFile, folder: Place, *, name: object) -> tuple[Place, Place]:
    """Write the sources and the targets of pairs to two files of lines.

    Line i of ``source.txt`` and ``target.txt`` is from entry i of ``pairs.read()``, with spaces for
    tabs and line ends, and empty if that is not a pair. The folder is made, and files are replaced.
    Their paths are returned. ``name`` is of the pairs, for errors. Errors of ``pairs.read`` and
    ``atomic_file`` are raised.

    Raises:
        CorpusError: No pair has two texts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / NAMES[0], folder / NAMES[1]
    with ExitStack() as stack:
        places = [stack.enter_context(atomic_file(path)) for path in paths]
        files = [
            stack.enter_context(place.open("w", encoding="utf-8", newline="\n")) for place in places
        ]
        count = 0
        for pair in pairs.read():
            texts = ("", "") if pair.problem or pair.texts is None else pair.texts
            for file, text in zip(files, texts, strict=True):
                file.write(on_a_line(text) + "\n")
            count += bool(texts[0] and texts[1])
        if not count:
            raise CorpusError(
                f"{name}: no pairs found ({pairs.layout}); pass a file with at least one pair"
            )
    return paths


def write_texts(pairs: PairFile, path: Place) -> None:
    """Write or replace an Arrow file of both texts of each entry of a file.

    Texts are "" without a pair. Errors of ``pairs.read`` and ``atomic_file`` are raised.
    """
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in ORIGINALS])
    texts = (("", "") if pair.problem else pair.texts or ("", "") for pair in pairs.read())
    with atomic_file(path) as place, pa.ipc.new_file(place, schema) as writer:
        for block in iter(lambda: list(islice(texts, BATCH_LINES)), []):
            writer.write_batch(pa.record_batch([*map(list, zip(*block, strict=True))], schema))


def texts_at(path: Place, lines: IntArray) -> pa.Table:
    """Read the texts of lines (P,), from 0, in their order, as a table.

    ``path`` is from ``write_texts``. Columns are ``source_original`` and ``target_original``.
    """
    import numpy as np
    import pyarrow as pa

    batches, places = np.divmod(lines, BATCH_LINES)
    order = np.argsort(batches, kind="stable")
    source = path.open() if isinstance(path, RemotePath) else pa.memory_map(str(path))
    with source, pa.ipc.open_file(source) as file:
        pieces = [
            file.get_batch(batch).take(pa.array(places[order[batches[order] == batch]]))
            for batch in np.unique(batches).tolist()
        ]
        table = pa.Table.from_batches(pieces, file.schema)
    return table.take(pa.array(np.argsort(order)))


def pairs_of_corpora(source: Place, target: Place, input_formats: tuple[str, str]) -> PairFile:
    """Return the pairs of two corpora, where record i of both is a pair.

    A rejected record makes its reason the pair's problem. Reading raises CorpusError if one corpus
    has fewer records, and errors of ``open_corpus``, which describes ``input_formats``.
    """
    return PairFile(
        layout=f"lines of {source} and {target}",
        read=lambda: pairs_of_sides((source, target), map(_texts, (source, target), input_formats)),
    )


def _texts(path: Place, input_format: str) -> Iterator[tuple[str, str]]:
    for records in open_corpus(path, input_format=input_format):
        for position, text in enumerate(records.texts):
            shown = text or records.rejected_texts.get(position, "")
            yield shown, records.rejected.get(position, "")


def pair_schema(pairs: Sequence[FilePair]) -> pa.Schema:
    """Return the Arrow schema of both texts, and of fields that any pair has.

    Fields are ``score``, ``probability``, ``source_ids``, ``target_ids``, ``source_text``,
    ``target_text``, ``source_original`` and ``target_original``.
    """
    import pyarrow as pa

    fields = [
        pa.field(name, pa.float64())
        for name in ("score", "probability")
        if any(getattr(pair, name) is not None for pair in pairs)
    ]
    if any(pair.ids for pair in pairs):
        fields += [pa.field(f"{side}_ids", pa.list_(pa.string())) for side in SIDES]
    fields += [pa.field(f"{side}_text", pa.string()) for side in SIDES]
    if any(pair.originals for pair in pairs):
        fields += [pa.field(name, pa.string()) for name in ORIGINALS]
    return pa.schema(fields)


def pair_table(pairs: Sequence[FilePair], schema: pa.Schema) -> pa.Table:
    """Return pairs, all with texts, as a table of a ``pair_schema``."""
    import pyarrow as pa

    records = [
        {
            "score": pair.score,
            "probability": pair.probability,
            **{f"{side}_ids": ids for side, ids in zip(SIDES, pair.ids or ([], []), strict=True)},
            **{f"{side}_text": text for side, text in zip(SIDES, pair.texts or (), strict=True)},
            **dict(zip(ORIGINALS, pair.originals or (None, None), strict=True)),
        }
        for pair in pairs
    ]
    return pa.Table.from_pylist(records, schema)
