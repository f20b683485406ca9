"""Translation Memory eXchange 1.4, level 1, valid by its DTD.

A unit has the score and what else is known of the pair as properties, each sentence its id and its
document. A space stands for each character that XML has no way to write (most control characters).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from miner.commandline import product_version
from miner.storage.writers import Origin
from miner.storage.writers.batches import Tables

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_A_UNIT = ("score", "probability", "margin", "cosine", "rank", "direction", "reason")


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write a translation unit for each pair."""
    source, target = (str(language) for language in origin.languages)
    files[0].write(_header(source, origin.encoder).encode())
    for table in tables:
        for pair in table.to_pylist():
            unit = "".join(_unit(pair, source=source, target=target))
            files[0].write(unit.encode())
    files[0].write(b"</body>\n</tmx>\n")


def _header(language: str, encoder: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
        '<tmx version="1.4">\n<header creationtool="Adit" '
        f'creationtoolversion={quoteattr(product_version())} segtype="sentence" o-tmf="Adit" '
        f'adminlang="en" srclang={quoteattr(language)} datatype="plaintext">'
        f"{_property('encoder', encoder)}</header>\n<body>\n"
    )


def _unit(pair: Mapping[str, Any], *, source: str, target: str) -> Iterator[str]:
    yield "<tu>"
    for name in _OF_A_UNIT:
        if name in pair:
            yield _property(name, pair[name])
    for side, language in (("source", source), ("target", target)):
        ids = pair[f"{side}_ids"] if f"{side}_ids" in pair else [pair[f"{side}_id"]]
        yield f"\n<tuv xml:lang={quoteattr(language)}>"
        yield from (_property("id", own) for own in ids)
        if pair[f"{side}_doc"]:
            yield _property("document", pair[f"{side}_doc"])
        yield f"<seg>{_text(pair[f'{side}_text'])}</seg></tuv>"
    yield "\n</tu>\n"


def _property(name: str, value: object) -> str:
    return f'<prop type="x-{name}">{_text(str(value))}</prop>'


def _text(text: str) -> str:
    # A bare carriage return is a line feed to whoever reads it.
    return escape(_FORBIDDEN.sub(" ", text), {"\r": "&#13;"})
