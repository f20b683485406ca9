"""Read files of pairs in the formats of ``miner.storage.writers``.

=====================  ============================================================================
.tsv                   score TAB source text TAB target text, and the reason in rejected pairs
.jsonl, .ndjson        an object per line, with ``score``, ids, texts and duplicates, if known
.parquet, .dataset     columns of these names
.tmx                   units of two languages, with properties ``x-score`` and ``x-id``, if known
=====================  ============================================================================

Ids are ``source_id`` (string or integer), or ``source_ids`` of merged sentences. Text may be
compressed. Blank lines are skipped.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from miner.choices import FILTERS
from miner.language_codes import base_language
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.reader import parquet_file
from miner.storage.corpus.records import CorpusError
from miner.storage.layout import SIDES
from miner.storage.places import Place
from miner.storage.streams import read_chunks, split_compression

Ids = tuple[str, ...]

FIELDS = ("score", "cost")
OF_A_SIDE = ("id", "ids", "duplicates", "text")
_CODES = {"bpt", "ept", "ph", "it", "ut"}  # TMX elements that hold markup of another format
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePair:
    """A pair as a file has it.

    Attributes:
        place: The file and the line or record in it, for messages.
        score: None if it has none. Of a cost, as ``adit align`` writes it, the negative.
        ids: For each side the ids of its sentences, then of their duplicates.
            None if there are no ids.
        texts: None if there are none.
    """

    place: str
    score: float | None
    ids: tuple[Ids, Ids] | None
    texts: tuple[str, str] | None


def read_pairs(path: Place) -> Iterator[FilePair]:
    """Yield the pairs of a file in order; its suffix decides the format.

    Raises:
        CorpusError: The file cannot be read, or a line of it is not a pair. It is named.
        ValueError: The suffix is that of no format.
    """
    suffix = pairs_format(path)
    if suffix not in READERS:
        *others, last = READERS
        raise ValueError(f"{path}: unknown format; give a name in {', '.join(others)} or {last}")
    return READERS[suffix](path)


def pairs_format(path: Place) -> str:
    """Return the suffix below a compression's, in lower case."""
    return split_compression(path)[0]


def file_of_pairs(path: Place) -> Place:
    """Return the file of pairs, which a folder ``.dataset`` contains."""
    return path / "pairs.parquet" if pairs_format(path) == ".dataset" else path


def read_text_lines(path: Place) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file that are not blank, each after its place.

    Raises:
        CorpusError: The file cannot be read, or a line is not UTF-8 or too long.
    """
    number = 0
    for batch in line_batches(path):
        lines, rejected = decode_lines(batch)
        for position, line in enumerate(lines):
            number += 1
            if position in rejected:
                raise CorpusError(f"{path} line {number}: {rejected[position]}")
            if line.strip():
                yield f"{path} line {number}", line


def _read_tsv(path: Place) -> Iterator[FilePair]:
    for place, line in read_text_lines(path):
        score, *texts = line.split("\t")
        is_rejected = len(texts) == 3 and {*texts.pop().split(",")} <= {*FILTERS}
        try:
            value = float(score)
            source, target = texts
        except ValueError:
            value = None
        if value is None or (line.count("\t") == 3 and not is_rejected):
            raise CorpusError(
                f"{place}: expected SCORE TAB SOURCE TEXT TAB TARGET TEXT, not {line[:60]!r}"
            )
        yield FilePair(place=place, score=value, ids=None, texts=(source, target))


def _read_jsonl(path: Place) -> Iterator[FilePair]:
    for place, line in read_text_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            cause = getattr(error, "msg", error)
            raise CorpusError(f"{place}: not JSON ({cause})") from error
        if not isinstance(record, dict):
            raise CorpusError(f"{place}: expected a JSON object, not {line[:60]!r}")
        yield _of_record(place, record)


def _read_parquet(path: Place) -> Iterator[FilePair]:
    path = file_of_pairs(path)
    known = [*FIELDS, *(f"{side}_{name}" for side in SIDES for name in OF_A_SIDE)]
    number = 0
    with parquet_file(path) as file:
        columns = [name for name in known if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=columns):
            for number, record in enumerate(batch.to_pylist(), number + 1):  # noqa: B020
                yield _of_record(f"{path} record {number}", record)


def _of_record(place: str, record: Mapping[str, Any]) -> FilePair:
    score = record.get("score")
    if score is None and _is_number(record.get("cost")):
        score = -record["cost"]
    if score is not None and not _is_number(score):
        raise CorpusError(f"{place}: score {score!r} is not a number")
    source, target = (_ids(place, record, side) for side in SIDES)
    texts = tuple(record.get(f"{side}_text") for side in SIDES)
    return FilePair(
        place=place,
        score=score,
        ids=None if source is None or target is None else (source, target),
        texts=(texts[0], texts[1]) if all(isinstance(text, str) for text in texts) else None,  # type: ignore[arg-type]
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ids(place: str, record: Mapping[str, Any], side: str) -> Ids | None:
    """Return the ids of a side, () of a gap, or None if it has no field."""
    own, merged = record.get(f"{side}_id"), record.get(f"{side}_ids")
    if own is None and merged is None:
        return None
    duplicates = record.get(f"{side}_duplicates") or []
    for name, value in (("duplicates", duplicates), ("ids", merged or [])):
        if not isinstance(value, list):
            raise CorpusError(f"{place}: {side}_{name} must be a list of ids, not {value!r}")
    names = [own] if merged is None else merged
    for one in (*names, *duplicates):
        if not isinstance(one, str | int) or isinstance(one, bool):
            raise CorpusError(f"{place}: the {side} id {one!r} is not a string or an integer")
    return tuple(str(one).strip() for one in (*names, *duplicates))


def _read_tmx(path: Place) -> Iterator[FilePair]:
    number = 0
    source = ""
    try:
        for event, element in _xml_events(path):
            if element.tag == "header":
                source = base_language(element.get("srclang", ""))
            elif element.tag == "body" and event == "start":
                body = element
            elif element.tag == "tu" and event == "end":
                number += 1
                yield _of_unit(f"{path} unit {number}", element, source)
                body.clear()  # or the tree grows with the file
    except ElementTree.ParseError as error:
        raise CorpusError(f"{path}: not a whole TMX file ({error}); fetch it again") from error


def _xml_events(path: Place) -> Iterator[Any]:
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(["start", "end"])
    for chunk in read_chunks(path):
        parser.feed(chunk)
        yield from parser.read_events()
    parser.close()


def _of_unit(place: str, unit: ElementTree.Element, source: str) -> FilePair:
    variants = unit.findall("tuv")
    if len(variants) != 2:
        raise CorpusError(f"{place}: has {len(variants)} languages, expected two")
    languages = [base_language(one.get(_LANGUAGE) or one.get("lang") or "") for one in variants]
    if source and languages[1] == source != languages[0]:
        variants.reverse()
    scores = [prop.text for prop in unit.findall("prop") if prop.get("type") == "x-score"]
    try:
        score = float(scores[0] or "") if scores else None
    except ValueError:
        raise CorpusError(f"{place}: score {scores[0]!r} is not a number") from None
    ids, other_ids = (
        tuple(
            (prop.text or "").strip() for prop in one.findall("prop") if prop.get("type") == "x-id"
        )
        for one in variants
    )
    text, other_text = ("".join(map(_text, one.findall("seg"))) for one in variants)
    both = (ids, other_ids) if ids and other_ids else None
    return FilePair(place=place, score=score, ids=both, texts=(text, other_text))


def _text(segment: ElementTree.Element) -> str:
    """Return the text of a segment without inline codes."""
    inner = "".join(
        ("" if child.tag in _CODES else _text(child)) + (child.tail or "") for child in segment
    )
    return (segment.text or "") + inner


READERS: dict[str, Callable[[Place], Iterator[FilePair]]] = {
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
    ".dataset": _read_parquet,
    ".tmx": _read_tmx,
}
