"""Score pairs, as mine-corpus writes them, against gold, and extract those above a threshold.

``.tsv``: ``score TAB source text TAB target text``. ``.jsonl`` and ``.parquet``: one record a pair,
of which ``score``, ``source_id``, ``target_id`` and, where present, ``source_duplicates`` and
``target_duplicates`` (lists of ids with the same text) are used.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from eval.data.bucc import Sentences, read_gold, read_sentences, text_key
from eval.data.textfiles import fingerprint, read_lines
from eval.metrics import bucc, laser_compat
from eval.metrics.laser_compat import ScoredTexts
from eval.output import Record, id_lines, score_line, score_record, signature
from miner.storage.atomic import write_text
from miner.storage.corpus.reader import parquet_file
from miner.storage.layout import SIDES

REQUIRED = ("score", "source_id", "target_id")
OPTIONAL = ("source_duplicates", "target_duplicates")
OPTIMIZED: Literal["optimized"] = "optimized"

SideFiles = tuple[Path] | tuple[Path, Path]  # ID TAB sentence lines, or sentences and ids
Sides = tuple[Sentences, Sentences]
Gold = frozenset[bucc.IdPair]


def read_scored_texts(path: Path) -> list[ScoredTexts]:
    """Read a ``.tsv`` file; a ValueError names a line that is not a number and two texts."""
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
    rows: Sequence[ScoredTexts], source: Sentences, target: Sentences, *, path: Path
) -> bucc.Candidates:
    """Give each pair of texts all the ids that its texts have; a ValueError names one without."""
    sides = list(zip(SIDES, (source.ids_by_text(), target.ids_by_text()), strict=True))
    found: list[list[bucc.Ids]] = []
    for number, (_, *texts) in enumerate(rows, start=1):
        keys = [text_key(text) for text in texts]
        for (side, known), text, key in zip(sides, texts, keys, strict=True):
            if key not in known:
                raise ValueError(
                    f"{path} line {number}: the {side} text is not among the {side} sentences: "
                    f"{text[:60]!r}"
                )
        found.append([known[key] for (_, known), key in zip(sides, keys, strict=True)])
    return _candidates([score for score, _, _ in rows], found)


def _candidates(scores: Sequence[float], ids: Sequence[Sequence[bucc.Ids]]) -> bucc.Candidates:
    sources, targets = ([each[side] for each in ids] for side in (0, 1))
    return bucc.Candidates(scores=np.array(scores, np.float64), sources=sources, targets=targets)


def read_records(path: Path) -> bucc.Candidates:
    """Read a ``.jsonl`` or ``.parquet`` file; a ValueError names what lacks the fields needed."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise ValueError(f"{path}: unknown format; give a name in .tsv, .jsonl or .parquet")
    scores, ids = [], []
    records = _json_records(path) if path.suffix == ".jsonl" else _parquet_records(path)
    for number, record in enumerate(records, start=1):
        where = f"{path} record {number}"
        if missing := [name for name in REQUIRED if record.get(name) is None]:
            raise ValueError(f"{where}: no {' and no '.join(missing)}")
        score = record["score"]
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ValueError(f"{where}: score {score!r} is not a number")
        scores.append(score)
        ids.append([_ids(record, side, where) for side in SIDES])
    return _candidates(scores, ids)


def _json_records(path: Path) -> Iterable[Record]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} line {number}: not JSON ({error.msg})") from error
        if not isinstance(record, dict):
            raise ValueError(f"{path} line {number}: expected a JSON object, not {line[:60]!r}")
        yield record


def _parquet_records(path: Path) -> Iterable[Record]:
    with parquet_file(path) as file:
        columns = [name for name in REQUIRED + OPTIONAL if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=columns):
            yield from batch.to_pylist()


def _ids(record: Record, side: str, where: str) -> bucc.Ids:
    first, repeats = record[f"{side}_id"], record.get(f"{side}_duplicates") or []
    if not isinstance(repeats, list):
        raise ValueError(f"{where}: {side}_duplicates must be a list of ids, not {repeats!r}")
    for identifier in (first, *repeats):
        if not isinstance(identifier, str):
            raise ValueError(f"{where}: the {side} id {identifier!r} is not a string")
    return first, *repeats


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """Pairs to score, and how; the sides are needed for pairs that carry texts and no ids.

    Without gold there is nothing to do but to extract at a given threshold; else a ValueError.
    """

    pairs: Path
    gold: Path | None
    sides: tuple[SideFiles, SideFiles] | None
    threshold: float | Literal["optimized"] = -math.inf
    output: Path | None = None

    def __post_init__(self) -> None:
        given = isinstance(self.threshold, float) and self.threshold > -math.inf
        if self.gold is None and not (given and self.output is not None):
            raise ValueError("without --gold only --threshold with --output has a meaning")

    def read_sides(self) -> Sides | None:
        """Read the sentences of both sides, where they are given."""
        return self.sides and (read_sentences(*self.sides[0]), read_sentences(*self.sides[1]))


@dataclass(frozen=True, kw_only=True)
class ScoringReport:
    """The outcome as a line for people and as a record for JSON, with a signature; any doubt."""

    line: str
    record: Record
    remark: str | None = None


def score_pairs(options: ScoringOptions) -> ScoringReport:
    """Score by the rules of ``eval.metrics.bucc``, and write the extracted id pairs if asked to."""
    sides = options.read_sides()
    if options.pairs.suffix == ".tsv":
        both = _needed(sides, options)
        rows = read_scored_texts(options.pairs)
        candidates = candidates_from_texts(rows, *both, path=options.pairs)
    else:
        candidates = read_records(options.pairs)
    ranked = bucc.rank(candidates)
    threshold, remark, shown = options.threshold, None, None
    gold = None if options.gold is None else read_gold(options.gold, sides)
    if gold is not None:
        judged = bucc.judge(ranked, gold)
        best = threshold == OPTIMIZED
        score = bucc.best_score(judged) if best else bucc.score_at(judged, float(threshold))
        threshold, shown = score.threshold, (score_line(score), score_record(score))
        remark = _stranger_ids(ranked, gold)
    extracted = bucc.extracted_pairs(ranked, float(threshold))
    rules = {"ties": "grouped", "repeats": "any", "compat": "none"}
    return _report(options, extracted, gold, len(candidates), rules, shown, remark)


def score_pairs_like_laser(options: ScoringOptions) -> ScoringReport:
    """Score as LASER's bucc.py does."""
    if options.pairs.suffix != ".tsv":
        raise ValueError(f"{options.pairs}: --compat laser reads pairs in .tsv only")
    sides = _needed(options.read_sides(), options)
    rows = read_scored_texts(options.pairs)
    ids = (laser_compat.unique_ids(side.texts, side.ids) for side in sides)
    scores = laser_compat.score_by_ids(rows, *ids)
    threshold, label, shown = options.threshold, "threshold", None
    gold = None if options.gold is None else read_gold(options.gold, sides)
    if gold is not None:
        if threshold == OPTIMIZED:
            threshold, label = laser_compat.best_threshold(scores, gold), "best threshold"
        measured = laser_compat.measure(scores, gold, float(threshold))
        shown = laser_compat.format_score(measured, label), score_record(measured)
    extracted = laser_compat.extract(scores, float(threshold))
    rules = {"ties": "split", "repeats": "dropped", "compat": "laser"}
    return _report(options, extracted, gold, len(rows), rules, shown)


def _needed(sides: Sides | None, options: ScoringOptions) -> Sides:
    if sides is None:
        raise ValueError(
            f"{options.pairs} holds texts, not ids: give the sentences with ids as --src and "
            "--tgt, or as --src-texts, --src-ids, --tgt-texts and --tgt-ids"
        )
    return sides


def _stranger_ids(ranked: bucc.Candidates, gold: Gold) -> str | None:
    """Return a remark if gold and candidates share no id on a side: the wrong file, probably."""
    for side, column, known in (("source", 0, ranked.sources), ("target", 1, ranked.targets)):
        ids = {identifier for same in known for identifier in same}
        if ids and ids.isdisjoint(pair[column] for pair in gold):
            return (
                f"no {side} id of the gold occurs in the pairs, whose first is {known[0][0]!r}; "
                "is it the gold of these pairs, with the source first?"
            )
    return None


def _report(
    options: ScoringOptions,
    extracted: Sequence[bucc.IdPair],
    gold: Gold | None,
    pairs: int,
    rules: Mapping[str, str],
    shown: tuple[str, Record] | None,
    remark: str | None = None,
) -> ScoringReport:
    """Write the extraction, and sign; ``shown`` are the line and the record of the score."""
    if options.output is not None:
        write_text(options.output, id_lines(extracted))
    fields: Record = {"gold": "none" if gold is None else len(gold)}
    if options.gold is not None:
        fields["gold_sha256"] = fingerprint(options.gold)
    fields |= {"pairs": pairs, "pairs_sha256": fingerprint(options.pairs)}
    for side, files in zip(SIDES, options.sides or (), strict=False):
        fields[f"{side}_sha256"] = "+".join(map(fingerprint, files))
    fields["threshold"] = "none" if options.threshold == -math.inf else options.threshold
    full = signature("bucc", **fields, **rules)
    line, record = shown or (f"threshold={options.threshold!r} extracted={len(extracted)}", {})
    counts = {"extracted": len(extracted), "pairs": pairs}
    return ScoringReport(line=line, record={**record, **counts, "signature": full}, remark=remark)
