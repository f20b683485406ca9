"""Read pairs from JSON lines and Parquet."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from miner.storage.corpus.lines import text_lines
from miner.storage.corpus.reader import parquet_file
from miner.storage.corpus.records import CorpusError, Rejection, is_encodable
from miner.storage.layout import SIDES
from miner.storage.pair_files.base import FilePair, Ids, Languages, PairFile
from miner.storage.pair_files.fields import language_of, named_sides
from miner.storage.places import Place

NESTED = "translation"  # the field of Hugging Face's datasets with a text per language
_NUMBERS = ("score", "cost", "probability")

Names = tuple[str, str]

OWN_NAMES: Names = ("source_text", "target_text")


def open_jsonl(
    path: Place, lines: Sequence[str], columns: Sequence[str], languages: Languages
) -> PairFile:
    """Recognise the fields of JSON lines by the first line.

    ``lines`` are the first lines, not all blank. ``columns`` are both fields' names, or empty, and
    ``languages`` BCP 47 tags, which choose if both fit. Fields may be in an object ``translation``.

    Raises:
        CorpusError: The first line is not a JSON object with the chosen or with known fields.
    """
    number = next(number for number, line in enumerate(lines, 1) if line.strip())
    try:
        first = _parsed(lines[number - 1])
    except CorpusError as error:
        raise CorpusError(f"{path} line {number}: {error}; correct or remove it") from error
    names, nested = _fields(path, first, columns, languages)
    return _pair_file("JSON lines", names, nested, partial(_read_jsonl, path, names, nested))


def open_parquet(path: Place, columns: Sequence[str], languages: Languages) -> PairFile:
    """Recognise the columns of Parquet as ``open_jsonl`` recognises fields.

    Errors of ``parquet_file`` are raised.

    Raises:
        CorpusError: The chosen or known columns are missing, or one of them is duplicate.
    """
    import pyarrow.types as pt

    with parquet_file(path) as file:
        schema = file.schema_arrow
        first = {
            field.name: {inner.name: "" for inner in field.type} if pt.is_struct(field.type) else ""
            for field in schema
        }
    names, nested = _fields(path, first, columns, languages)
    if repeated := next((name for name in names if schema.names.count(name) > 1), None):
        raise CorpusError(f"{path}: has several columns {repeated!r}; rename all except for one")
    wanted = {nested or names[0], nested or names[1], *_NUMBERS, "corpus"}
    wanted |= {f"{side}_{name}" for side in SIDES for name in ("id", "ids", "duplicates")}
    read = [name for name in schema.names if name in wanted]
    return _pair_file("Parquet", names, nested, partial(_read_parquet, path, read, names, nested))


def _pair_file(
    form: str, names: Names, nested: str, read: Callable[[], Iterator[FilePair]]
) -> PairFile:
    inside = f" of '{nested}'" if nested else ""
    return PairFile(
        layout=f"{form}, fields '{names[0]}' and '{names[1]}'{inside}",
        read=read,
        languages=(language_of(names[0]), language_of(names[1])),
    )


def _fields(
    path: Place, record: Mapping[str, Any], columns: Sequence[str], languages: Languages
) -> tuple[Names, str]:
    # The names of source and target, and of the field around them or "".
    nested = NESTED if isinstance(record.get(NESTED), dict) else ""
    known = [*(record[nested] if nested else record)]
    if not known:
        raise CorpusError(f"{path}: its first record has no fields; correct or remove it")
    if columns:
        if len(columns) != 2:
            raise CorpusError(
                f"--columns: expected two fields such as source,target, not {len(columns)}"
            )
        if lacking := next((name for name in columns if name not in known), None):
            raise CorpusError(
                f"{path}: no field {lacking!r}; choose --columns among {', '.join(known)}"
            )
        return (columns[0], columns[1]), nested
    codes = {language_of(name): name for name in known}
    if all(language and language in codes for language in languages):
        return (codes[languages[0]], codes[languages[1]]), nested
    if positions := named_sides(known):
        return (known[positions[0]], known[positions[1]]), nested
    if "source_id" in known or "source_ids" in known:
        return OWN_NAMES, nested  # pairs of ids
    raise CorpusError(
        f"{path}: no fields of source and target among {', '.join(known)}; name both with "
        "--columns SOURCE,TARGET (of adit convert or rate)"
    )


def _read_jsonl(path: Place, names: Names, nested: str) -> Iterator[FilePair]:
    for number, (line, problem) in enumerate(text_lines(path), 1):
        place = f"{path} line {number}"
        yield (
            FilePair(place=place, problem=problem) if problem else _pair(place, line, names, nested)
        )


def _read_parquet(
    path: Place, columns: Sequence[str], names: Names, nested: str
) -> Iterator[FilePair]:
    with parquet_file(path) as file:
        batches = file.iter_batches(columns=columns)
        records = chain.from_iterable(batch.to_pylist() for batch in batches)
        for number, record in enumerate(records, 1):
            yield _pair(f"{path} record {number}", record, names, nested)


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"not JSON ({getattr(error, 'msg', error)})") from error
    if not isinstance(record, dict):
        raise CorpusError(f"expected a JSON object, not {line[:60]!r}")
    return record


def _pair(place: str, content: str | Mapping[str, Any], names: Names, nested: str) -> FilePair:
    try:
        record = _parsed(content) if isinstance(content, str) else content
        score, cost, probability = (_number(record, name) for name in _NUMBERS)
        source, target = (_ids(record, side) for side in SIDES)
    except CorpusError as error:
        return FilePair(place=place, problem=str(error))
    texts = record.get(nested) if nested else record
    both = [texts.get(name) if isinstance(texts, Mapping) else None for name in names]
    has_texts = all(isinstance(text, str) for text in both)
    corpus = str(record.get("corpus") or "")
    if not is_encodable(corpus, *(source or ()), *(target or ()), *(both if has_texts else ())):
        return FilePair(place=place, problem=Rejection.UNDECODABLE.value)
    return FilePair(
        place=place,
        texts=(both[0], both[1]) if has_texts else None,  # type: ignore[arg-type]
        score=-cost if score is None and cost is not None else score,
        probability=probability,
        corpus=corpus,
        ids=None if source is None or target is None else (source, target),
    )


def _number(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    with suppress(OverflowError):  # of an integer
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    if name == "score" and value is not None:
        raise CorpusError(f"{name} {repr(value)[:60]} is not a number, or too large")
    return None


def _ids(record: Mapping[str, Any], side: str) -> Ids | None:
    # () of a gap, and None without a field.
    own, merged = record.get(f"{side}_id"), record.get(f"{side}_ids")
    if own is None and merged is None:
        return None
    duplicates = record.get(f"{side}_duplicates") or []
    for name, value in (("duplicates", duplicates), ("ids", merged or [])):
        if not isinstance(value, list):
            raise CorpusError(f"{side}_{name} must be a list of ids, not {repr(value)[:60]}")
    names = [own] if merged is None else merged
    for one in (*names, *duplicates):
        if not isinstance(one, str | int) or isinstance(one, bool):
            raise CorpusError(f"the {side} id {repr(one)[:60]} is not a string or an integer")
    return tuple(str(one).strip() for one in (*names, *duplicates))
