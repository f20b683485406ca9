"""Read files of sentence pairs, recognised by their content.

=====================  ============================================================================
TSV, ``|||``, CSV      two columns of text among others, chosen by number or by name
JSON lines, Parquet    an object or row per pair, with two fields of text
TMX                    units of two languages or more
zip                    files of lines as OPUS serves them: ``NAME.de-en.de``, ``NAME.de-en.en``
=====================  ============================================================================

Text may be compressed.
"""

import codecs
from collections.abc import Iterator, Sequence
from itertools import islice

from miner.storage import streams
from miner.storage.corpus.lines import text_lines
from miner.storage.corpus.records import CorpusError
from miner.storage.pair_files.base import BLANK, FilePair, Languages, PairFile
from miner.storage.places import Place
from miner.storage.recognition import SAMPLED_LINES, is_tmx

_START_BYTES = 4 << 10  # in which the first element of XML begins
_UTF16 = {codecs.BOM_UTF16_LE: "UTF-16-LE", codecs.BOM_UTF16_BE: "UTF-16-BE"}


def open_pairs(
    path: Place, *, columns: Sequence[str] = (), languages: Languages = (None, None)
) -> PairFile:
    """Recognise a file of pairs by its content, to read it.

    Args:
        path: A file, or a folder ``.dataset``. An empty file has no pairs.
        columns: Names of columns or fields of source and target, or numbers (from 1) in TSV or CSV.
            Default: recognised by names and contents. Not for TMX, and ignored for a zip file.
        languages: BCP 47 tags that choose the texts of TMX, of fields, or of a zip file.

    Raises:
        CorpusError: The file cannot be read, or its columns are not recognised or lack ``columns``.
        PlaceError: A remote file cannot be reached.
    """
    from miner.storage.pair_files import moses, records, tables, tmx

    path = file_of_pairs(path)
    with streams.open_binary(path) as file:
        head = file.read(streams.CHUNK_BYTES)
    if head.startswith(streams.ZIP_MAGIC):
        return moses.open_zip(path, languages)
    suffix = pairs_format(path)
    if head.startswith(streams.PARQUET_MAGIC) or suffix == ".parquet":
        return records.open_parquet(path, columns, languages)
    levels, _ = streams.look_into(head)
    if levels or not head:  # the suffix and the compression must fit
        head = next(streams.read_chunks(path), b"")
    encoding = _UTF16.get(head[:2], "utf-8")
    if is_tmx(head[:_START_BYTES].decode(encoding, "replace").lstrip("\ufeff \n\r\t")):
        return tmx.open_tmx(path, columns, languages)
    sample = [line for line, _ in islice(text_lines(path), SAMPLED_LINES)]
    first = next(filter(str.strip, sample), "").lstrip()
    if not first:
        return PairFile(layout="no line with text", read=lambda: iter(()))
    if first.startswith("{") or suffix in (".jsonl", ".ndjson"):
        return records.open_jsonl(path, sample, columns, languages)
    return tables.open_table(path, sample, columns)


def read_pairs(path: Place) -> Iterator[FilePair]:
    """Yield a file's pairs in order, maybe without texts, but none ``BLANK``.

    Raises:
        CorpusError: As in ``open_pairs``, or an entry has another problem, which the message names.
        PlaceError: A remote file cannot be reached.
    """
    for pair in open_pairs(path).read():
        if pair.problem == BLANK:
            continue
        if pair.problem:
            raise CorpusError(f"{pair.place}: {pair.problem}; correct or remove it")
        yield pair


def pairs_format(path: Place) -> str:
    """Return the lower-case suffix before a compression's, or "" if missing."""
    return streams.split_compression(path)[0]


def file_of_pairs(path: Place) -> Place:
    """Return ``pairs.parquet`` in a path ``x.dataset``, else the path itself."""
    return path / "pairs.parquet" if pairs_format(path) == ".dataset" else path
