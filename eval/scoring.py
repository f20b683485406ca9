"""Scores of mined pairs against gold pairs, and extraction by threshold.

A duplicate counts for all its ids. Pairs without ids (``.tsv``) get all ids of their texts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from eval.data.bucc import Sentences, read_gold, read_sentences, text_key
from eval.data.textfiles import fingerprint
from eval.metrics import bucc, laser_compat
from eval.metrics.laser_compat import ScoredTexts
from eval.output import Record, id_lines, score_line, score_record, signature
from miner.storage.atomic import write_text
from miner.storage.layout import SIDES
from miner.storage.pair_files import file_of_pairs, pairs_format, read_pairs
from miner.storage.pair_files.base import FilePair

OPTIMIZED: Literal["optimized"] = "optimized"

SideFiles = tuple[Path] | tuple[Path, Path]  # one file with ids, or sentences and their ids
Sides = tuple[Sentences, Sentences]
Gold = frozenset[bucc.IdPair]


def read_candidates(path: Path, sides: Sides | None) -> bucc.Candidates:
    """Read the mined pairs in a file as candidates.

    A pair without ids gets all ids that its texts have in ``sides``. A pair with ids of one side
    only, such as a gap of an alignment, is skipped. ValueError says that the file is unreadable or
    malformed, or a pair has no score above -inf, or neither ids nor texts that are in ``sides``.
    """
    ids_of = sides and tuple(side.ids_by_text() for side in sides)
    scores, ids = [], []
    for pair in read_pairs(path):
        score, pair_ids = _score(pair), pair.ids or _ids_of_texts(path, pair, ids_of)
        if all(pair_ids):  # not a sentence without a partner, in an alignment
            scores.append(score)
            ids.append(pair_ids)
    sources, targets = ([pair_ids[side] for pair_ids in ids] for side in (0, 1))
    return bucc.Candidates(scores=np.array(scores, np.float64), sources=sources, targets=targets)


def _read_scored_texts(path: Path) -> list[ScoredTexts]:
    rows = []
    for pair in read_pairs(path):
        if pair.texts is None:
            raise ValueError(f"{pair.place}: no texts; --compat laser requires them, so omit it")
        rows.append((_score(pair), *pair.texts))
    return rows


def _score(pair: FilePair) -> float:
    if pair.score is None:
        raise ValueError(f"{pair.place}: no score; pass pairs with scores, such as adit's output")
    if math.isnan(pair.score) or pair.score == -math.inf:
        raise ValueError(f"{pair.place}: the score is {pair.score}; expected a number above -inf")
    return pair.score


def _ids_of_texts(
    path: Path, pair: FilePair, ids_of: Sequence[Mapping[str, bucc.Ids]] | None
) -> list[bucc.Ids]:
    if pair.texts is None:
        raise ValueError(f"{pair.place}: a side has neither an id nor a text; add one of them")
    if ids_of is None:
        raise ValueError(_missing_sides(path))
    for side, text, known in zip(SIDES, pair.texts, ids_of, strict=True):
        if text_key(text) not in known:
            raise ValueError(
                f"{pair.place}: the {side} text {text[:60]!r} is not among the {side} sentences; "
                "pass the sentences that the pairs were mined from"
            )
    return [known[text_key(text)] for text, known in zip(pair.texts, ids_of, strict=True)]


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """The inputs of a scoring, and the file to write.

    ``sides``, each one file of sentences with ids, or a file of sentences and one of ids, are
    needed for pairs without ids. Pairs are extracted by ``threshold``, which ``optimized`` chooses
    by F1, and their ids written to ``output``. Without ``gold``, pairs are only extracted, and
    ValueError is raised if ``output`` or a float above -inf as ``threshold`` is missing.
    """

    pairs: Path
    gold: Path | None
    sides: tuple[SideFiles, SideFiles] | None
    threshold: float | Literal["optimized"] = -math.inf
    output: Path | None = None

    def __post_init__(self) -> None:
        has_threshold = isinstance(self.threshold, float) and self.threshold > -math.inf
        if self.gold is None and not (has_threshold and self.output is not None):
            raise ValueError("missing --gold; pass it, or both --threshold and --output")

    def read_sides(self) -> Sides | None:
        """Read both sides by ``read_sentences``, or return None without ``sides``."""
        return self.sides and (read_sentences(*self.sides[0]), read_sentences(*self.sides[1]))


@dataclass(frozen=True, kw_only=True)
class ScoringReport:
    """The result of a scoring, as a line of text and as a record for JSON.

    ``record`` has the counts ``extracted`` and ``pairs`` (read), ``signature`` and, with gold, the
    fields of ``score_record``. ``remark`` says that ids do not fit the gold pairs, or is None.
    """

    line: str
    record: Record
    remark: str | None = None


def score_pairs(options: ScoringOptions) -> ScoringReport:
    """Score mined pairs by the rules of ``eval.metrics.bucc``.

    If ``output`` is not None, it gets the ids extracted, or OutputError is raised. ValueError says
    that a file is missing or malformed, or pairs or gold pairs do not fit ``sides``.
    """
    sides = options.read_sides()
    candidates = read_candidates(options.pairs, sides)
    ranked = bucc.rank(candidates)
    threshold, remark, result = options.threshold, None, None
    if options.gold is not None:
        gold = read_gold(options.gold, sides)
        judged = bucc.judge(ranked, gold)
        is_optimized = threshold == OPTIMIZED
        score = bucc.best_score(judged) if is_optimized else bucc.score_at(judged, float(threshold))
        threshold, result = score.threshold, (score_line(score), score_record(score))
        remark = _gold_remark(ranked, gold)
    extracted = bucc.extracted_pairs(ranked, float(threshold))
    rules = {"ties": "grouped", "repeats": "any", "compat": "none"}
    return _report(options, extracted, len(candidates), rules, result, remark)


def score_pairs_like_laser(options: ScoringOptions) -> ScoringReport:
    """Score mined pairs as LASER's bucc.py does.

    A pair counts once, with its best score. A pair whose source or target occurs repeatedly, or
    not at all, among the sentences of its side is dropped. If ``output`` is not None, the ids of
    the extracted pairs, whose scores are the threshold or more, are written to it or replace it.

    Raises:
        ValueError: The pairs are not in .tsv, ``options`` has no sides, a file is missing or
            malformed, or gold ids are not in ``sides``.
        OutputError: ``output`` cannot be written.
    """
    if pairs_format(options.pairs) != ".tsv":
        raise ValueError(
            f"{options.pairs}: --compat laser reads only .tsv; convert the pairs to it with "
            "'adit convert', or omit --compat"
        )
    sides = options.read_sides()
    if sides is None:
        raise ValueError(_missing_sides(options.pairs))
    rows = _read_scored_texts(options.pairs)
    ids = (laser_compat.unique_ids(side.texts, side.ids) for side in sides)
    scores = laser_compat.score_by_ids(rows, *ids)
    threshold, label, result = options.threshold, "threshold", None
    if options.gold is not None:
        gold = read_gold(options.gold, sides)
        if threshold == OPTIMIZED:
            threshold, label = laser_compat.best_threshold(scores, gold), "best threshold"
        score = laser_compat.measure(scores, gold, float(threshold))
        result = laser_compat.format_score(score, label), score_record(score)
    extracted = laser_compat.extract(scores, float(threshold))
    rules = {"ties": "split", "repeats": "dropped", "compat": "laser"}
    return _report(options, extracted, len(rows), rules, result)


def _missing_sides(path: Path) -> str:
    return (
        f"{path}: pairs have texts but no ids; pass the files of sentences with ids, as --src and "
        "--tgt"
    )


def _gold_remark(ranked: bucc.Candidates, gold: Gold) -> str | None:
    for side, column, id_lists in (("source", 0, ranked.sources), ("target", 1, ranked.targets)):
        ids = {identifier for pair_ids in id_lists for identifier in pair_ids}
        if ids and ids.isdisjoint(pair[column] for pair in gold):
            return (  # probably the wrong file
                f"no {side} id of the gold occurs in the pairs, whose first is {id_lists[0][0]!r}; "
                "check that the gold belongs to these pairs, source first"
            )
    return None


def _report(
    options: ScoringOptions,
    extracted: Sequence[bucc.IdPair],
    pairs: int,
    rules: Mapping[str, str],
    result: tuple[str, Record] | None,
    remark: str | None = None,
) -> ScoringReport:
    if options.output is not None:
        write_text(options.output, id_lines(extracted))
    line, record = result or (f"threshold={options.threshold!r} extracted={len(extracted)}", {})
    fields: Record = {"gold": record.get("gold", "none")}
    if options.gold is not None:
        fields["gold_sha256"] = fingerprint(options.gold)
    fields |= {"pairs": pairs, "pairs_sha256": fingerprint(Path(str(file_of_pairs(options.pairs))))}
    for side, files in zip(SIDES, options.sides or (), strict=False):
        fields[f"{side}_sha256"] = "+".join(map(fingerprint, files))
    fields["threshold"] = "none" if options.threshold == -math.inf else options.threshold
    record |= {"extracted": len(extracted), "pairs": pairs}
    record["signature"] = signature("bucc", **fields, **rules)
    return ScoringReport(line=line, record=record, remark=remark)
