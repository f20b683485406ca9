"""Reading PAIRS files, as mine-corpus writes them, into candidates for scoring.

``.tsv``: ``score TAB source text TAB target text``. ``.jsonl`` and ``.parquet``: one record a pair,
of which ``score``, ``source_id``, ``target_id`` and, where present, ``source_duplicates`` and
``target_duplicates`` (lists of ids with the same text) are used.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from eval.data.sentences import Sentences, text_key
from eval.data.textfiles import read_lines
from eval.metrics.bucc import Candidates, Ids
from eval.metrics.laser_compat import ScoredTexts
from miner.storage.corpus.parquet import parquet_file

REQUIRED = ("score", "source_id", "target_id")
OPTIONAL = ("source_duplicates", "target_duplicates")


def read_scored_texts(path: Path) -> list[ScoredTexts]:
    """Read a ``.tsv`` file.

    Raises:
        ValueError: a line is not a number and two texts.
    """
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split("\t")
        try:
            score, source, target = float(fields[0]), *fields[1:]
        except ValueError:
            raise ValueError(
                f"{path} line {number}: expected SCORE TAB SOURCE TEXT TAB TARGET TEXT, "
                f"not {line[:60]!r}"
            ) from None
        rows.append((score, source, target))
    return rows


def candidates_from_texts(
    rows: Sequence[ScoredTexts], *, source: Sentences, target: Sentences, path: Path
) -> Candidates:
    """Give each pair of texts all the ids that its texts have.

    Raises:
        ValueError: a text is not among the sentences (``path`` is named in the message).
    """
    sides = ("source", source.ids_by_text()), ("target", target.ids_by_text())
    ids: tuple[list[Ids], list[Ids]] = ([], [])
    for number, (_, *texts) in enumerate(rows, start=1):
        for (side, by_text), text, found in zip(sides, texts, ids, strict=True):
            known = by_text.get(text_key(text))
            if known is None:
                raise ValueError(
                    f"{path} line {number}: the {side} text is not among the {side} sentences: "
                    f"{text[:60]!r}"
                )
            found.append(known)
    scores = np.array([score for score, _, _ in rows], dtype=np.float64)
    return Candidates(scores=scores, sources=ids[0], targets=ids[1])


def read_records(path: Path) -> Candidates:
    """Read a ``.jsonl`` or ``.parquet`` file.

    Raises:
        ValueError: another suffix, or a file or record without the fields needed.
    """
    if path.suffix == ".jsonl":
        return _candidates(_json_records(path), path)
    if path.suffix == ".parquet":
        return _candidates(_parquet_records(path), path)
    raise ValueError(f"{path}: unknown format; give a name in .tsv, .jsonl or .parquet")


def _json_records(path: Path) -> Iterable[Mapping[str, object]]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} line {number}: not JSON ({error.msg})") from error
        if not isinstance(record, dict):
            raise ValueError(f"{path} line {number}: expected a JSON object, not {line[:60]!r}")
        yield record


def _parquet_records(path: Path) -> Iterable[Mapping[str, object]]:
    with parquet_file(path) as file:
        columns = [name for name in REQUIRED + OPTIONAL if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=columns):
            yield from batch.to_pylist()


def _candidates(records: Iterable[Mapping[str, object]], path: Path) -> Candidates:
    scores: list[float] = []
    sources: list[Ids] = []
    targets: list[Ids] = []
    for number, record in enumerate(records, start=1):
        missing = [name for name in REQUIRED if record.get(name) is None]
        if missing:
            raise ValueError(f"{path} record {number}: no {' and no '.join(missing)}")
        score = record["score"]
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ValueError(f"{path} record {number}: score {score!r} is not a number")
        scores.append(score)
        sources.append(_ids(record, "source", f"{path} record {number}"))
        targets.append(_ids(record, "target", f"{path} record {number}"))
    return Candidates(scores=np.array(scores, dtype=np.float64), sources=sources, targets=targets)


def _ids(record: Mapping[str, object], side: str, where: str) -> Ids:
    first, repeats = record[f"{side}_id"], record.get(f"{side}_duplicates") or []
    if not isinstance(repeats, list):
        raise ValueError(f"{where}: {side}_duplicates must be a list of ids, not {repeats!r}")
    ids = (first, *repeats)
    for identifier in ids:
        if not isinstance(identifier, str):
            raise ValueError(f"{where}: the {side} id {identifier!r} is not a string")
    return tuple(str(identifier) for identifier in ids)
