"""Turn pairs into files of lines or tables, and corpora into pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from miner.storage.atomic import atomic_file
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError
from miner.storage.layout import SIDES
from miner.storage.pair_files.base import FilePair, PairFile
from miner.storage.places import Place
from miner.storage.writers import on_a_line

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = ("source.txt", "target.txt")


def write_sides(pairs: PairFile, folder: Place) -> tuple[Place, Place]:
    """Write the texts of each pair to a line of two files in a folder.

    Both lines are empty if the line or record in the file is not a pair.

    Raises:
        CorpusError: There is not one pair.
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
                f"no pairs found ({pairs.layout}); pass a file with at least one pair"
            )
    return paths


def pairs_of_corpora(source: Place, target: Place, input_formats: tuple[str, str]) -> PairFile:
    """Return record i of two corpora as a pair, up to the end of the shorter.

    ``input_formats`` are of both files. A rejected record has the reason as its problem.
    """
    read = partial(_read, source, target, input_formats)
    return PairFile(layout=f"lines of {source} and {target}", read=read)


def _read(source: Place, target: Place, input_formats: tuple[str, str]) -> Iterator[FilePair]:
    sides = zip((source, target), input_formats, strict=True)
    both = [_texts(path, input_format) for path, input_format in sides]
    for number, ((text, why), (other, other_why)) in enumerate(zip(*both, strict=False), 1):
        problem = why or other_why
        yield FilePair(place=f"{source} line {number}", texts=(text, other), problem=problem)


def _texts(path: Place, input_format: str) -> Iterator[tuple[str, str]]:
    """Yield each text of a corpus, and the reason why it is rejected or ""."""
    for records in open_corpus(path, input_format=input_format):
        for position, text in enumerate(records.texts):
            shown = text or records.rejected_texts.get(position, "")
            yield shown, records.rejected.get(position, "")


def pair_schema(pairs: Sequence[FilePair]) -> pa.Schema:
    """Return the Arrow schema of the fields that some pairs have."""
    import pyarrow as pa

    fields = [
        pa.field(name, pa.float64())
        for name in ("score", "probability")
        if any(getattr(pair, name) is not None for pair in pairs)
    ]
    if any(pair.ids for pair in pairs):
        fields += [pa.field(f"{side}_ids", pa.list_(pa.string())) for side in SIDES]
    return pa.schema([*fields, *(pa.field(f"{side}_text", pa.string()) for side in SIDES)])


def pair_table(pairs: Sequence[FilePair], schema: pa.Schema) -> pa.Table:
    """Return pairs, which have texts, as a table of a schema."""
    import pyarrow as pa

    records = [
        {
            "score": pair.score,
            "probability": pair.probability,
            **{f"{side}_ids": ids for side, ids in zip(SIDES, pair.ids or ([], []), strict=True)},
            **{f"{side}_text": text for side, text in zip(SIDES, pair.texts or (), strict=True)},
        }
        for pair in pairs
    ]
    return pa.Table.from_pylist(records, schema)
