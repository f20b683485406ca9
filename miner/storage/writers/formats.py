"""A function for each format, which writes tables of pairs to open files.

Each takes the open binary files of ``Output.files``, one or two, Arrow tables of ``schema``, and
the origin of the pairs. It raises OSError if a file cannot be written.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from miner.commandline import product_version
from miner.storage.writers import BREAKS, Origin

Batches: TypeAlias = Iterable[pa.Table | pa.RecordBatch]
Tables: TypeAlias = Iterator[pa.Table]
Files: TypeAlias = Sequence[IO[bytes]]

_JSON_BREAKS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNIT_PROPERTIES = ("score", "probability", "margin", "cosine", "rank", "direction", "reason")
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
_COLUMNS = {
    "score": "margin, or the log likelihood ratio of being right; the pairs come best first",
    "probability": "how likely the pair is right",
    "margin": "the cosine compared with the neighbours' cosines",
    "source_text": "the source sentence",
    "target_text": "the target sentence",
}


def _write_cells(file: IO[bytes], *columns: pa.ChunkedArray) -> None:
    kind = pa.large_string()
    cells = (pc.replace_substring_regex(texts, BREAKS, " ").cast(kind) for texts in columns)
    lines = pc.binary_join_element_wise(*cells, pa.scalar("\t", kind))
    ended = pc.binary_join_element_wise(lines, *(pa.scalar(text, kind) for text in ("", "\n")))
    for chunk in ended.chunks:
        file.write(chunk.buffers()[-1])  # its texts, one after the other


def write_lines(files: Files, tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write the source texts to the first of two files, targets to the second.

    A pair is one line in each. Tabs and ends of lines in texts become spaces.
    """
    for table in tables:
        for file, name in zip(files, ("source_text", "target_text"), strict=True):
            _write_cells(file, table[name])


def write_tsv(files: Files, tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write score TAB source text TAB target text, without header or quoting.

    The score has all its digits. An unknown one is ``nan``, and without a column ``score`` it is
    omitted. Tabs and ends of lines in texts become spaces. A column ``reason`` comes last.
    """
    names = ["source_text", "target_text", *(["reason"] if "reason" in schema.names else [])]
    for table in tables:
        columns = [table[name] for name in names]
        if "score" in schema.names:
            scores = (math.nan if score is None else score for score in table["score"].to_pylist())
            columns.insert(0, pa.chunked_array([[*map(repr, scores)]], pa.string()))
        _write_cells(files[0], *columns)


def write_jsonl(files: Files, tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write one object per line in UTF-8, with all columns.

    Numbers that are not finite are null. U+0085, U+2028 and U+2029 are escaped.
    """
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for table in tables:
        for position, field in enumerate(table.schema):
            if pt.is_floating(field.type):
                column = table[field.name]
                finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, field.type))
                table = table.set_column(position, field, finite)
        lines = "".join(encode(pair) + "\n" for pair in table.to_pylist())
        for mark, escaped in _JSON_BREAKS.items():
            lines = lines.replace(mark, escaped)
        files[0].write(lines.encode())


def write_parquet(files: Files, tables: Tables, schema: pa.Schema, origin: Origin) -> int:
    """Write Parquet with any signature as metadata, a row group per table.

    The number of pairs is returned.
    """
    pairs = 0
    if origin.signature:
        schema = schema.with_metadata({"signature": origin.signature})
    with pq.ParquetWriter(files[0], schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=len(table))
            pairs += len(table)
    return pairs


def write_dataset(files: Files, tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write Parquet, and a card in Markdown, for Hugging Face's ``datasets``."""
    pairs = write_parquet(files[:1], tables, schema, origin)
    languages = [language for language in origin.languages if language]
    language_names = " and ".join(languages) if len(languages) == 2 else "two languages"
    size = _SIZES[min(max(0, len(str(pairs)) - 3), len(_SIZES) - 1)]
    described = (f"- `{name}`: {text}\n" for name, text in _COLUMNS.items() if name in schema.names)
    card = (
        "---\n"
        + (f"language: [{', '.join(map(repr, languages))}]\n" if languages else "")
        + "license: unknown\ntask_categories: [translation]\n"
        f"size_categories: ['{size}']\n"
        "configs:\n- config_name: default\n  data_files:\n  - split: train\n"
        "    path: pairs.parquet\n---\n\n"
        f"# Sentence pairs in {language_names}\n\n"
        f"{pairs:,} pairs mined by Adit {product_version()} with the encoder {origin.encoder}. "
        "The licence is that of the corpora that they come from: name it above.\n\n"
        f"{''.join(described)}\n"
        "The other columns say where each sentence comes from (ids, documents, rows, repetitions) "
        "and how the pair was found.\n"
    )
    files[1].write(card.encode())


def write_tmx(files: Files, tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write Translation Memory eXchange 1.4, level 1, valid by its DTD.

    ``origin`` has both languages. Units have score, probability, margin, cosine, rank, direction
    and reason as properties, sentences have ids and document. Non-XML characters become spaces.
    """
    languages = tuple(str(language) for language in origin.languages)
    header = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
        '<tmx version="1.4">\n<header creationtool="Adit" '
        f'creationtoolversion={quoteattr(product_version())} segtype="sentence" o-tmf="Adit" '
        f'adminlang="en" srclang={quoteattr(languages[0])} datatype="plaintext">'
        f"{_property('encoder', origin.encoder)}"
        f"{_property('signature', origin.signature) if origin.signature else ''}</header>\n<body>\n"
    )
    files[0].write(header.encode())
    for table in tables:
        for pair in table.to_pylist():
            files[0].write("".join(_unit(pair, languages)).encode())
    files[0].write(b"</body>\n</tmx>\n")


def _unit(pair: Mapping[str, Any], languages: Iterable[str]) -> Iterator[str]:
    yield "<tu>"
    yield from (
        _property(name, pair[name]) for name in _UNIT_PROPERTIES if pair.get(name) is not None
    )
    for side, language in zip(("source", "target"), languages, strict=True):
        ids = pair.get(f"{side}_ids", [pair[f"{side}_id"]] if f"{side}_id" in pair else []) or []
        yield f"\n<tuv xml:lang={quoteattr(language)}>"
        yield from (_property("id", sentence_id) for sentence_id in ids)
        if pair.get(f"{side}_doc"):
            yield _property("document", pair[f"{side}_doc"])
        yield f"<seg>{_escape_xml(pair[f'{side}_text'])}</seg></tuv>"
    yield "\n</tu>\n"


def _property(name: str, value: object) -> str:
    return f'<prop type="x-{name}">{_escape_xml(str(value))}</prop>'


def _escape_xml(text: str) -> str:
    # XML parsers turn a bare carriage return into a line feed.
    return escape(_NOT_IN_XML.sub(" ", text), {"\r": "&#13;"})


WRITERS = {
    "lines": write_lines,
    "tsv": write_tsv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "dataset": write_dataset,
    "tmx": write_tmx,
}


def regroup(batches: Batches, schema: pa.Schema, rows: int) -> Tables:
    """Yield pairs in tables of ``rows`` rows each, the last maybe shorter.

    Tables have the columns of ``schema``, which all ``batches`` must have, and one chunk per
    column. Without pairs, there are none.
    """
    tables: list[pa.Table] = []
    row_count = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        tables.append(table.select(schema.names).cast(schema))
        row_count += len(table)
        if row_count >= rows:
            joined = pa.concat_tables(tables)
            row_count %= rows
            end = len(joined) - row_count
            tables = [joined.slice(end)]
            for start in range(0, end, rows):
                # Combined, so that a Parquet file's pages do not depend on the batches.
                yield joined.slice(start, rows).combine_chunks()
    if row_count:
        yield pa.concat_tables(tables).combine_chunks()
