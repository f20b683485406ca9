"""Score mined pairs against gold, and extract pairs above a threshold.

``miner.storage.pair_files`` reads the pairs. The ids of duplicates count, too. If pairs have no ids
(``.tsv``), all ids of their texts are used.
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
from miner.storage.pair_files import FilePair, file_of_pairs, pairs_format, read_pairs

OPTIMIZED: Literal["optimized"] = "optimized"

SideFiles = tuple[Path] | tuple[Path, Path]  # ID TAB sentence lines, or sentences and ids
Sides = tuple[Sentences, Sentences]
Gold = frozenset[bucc.IdPair]


def read_candidates(path: Path, sides: Sides | None) -> bucc.Candidates:
    """Read mined pairs as candidates.

    Pairs with ids have these; of others each text has all ids of that text among the ``sides``.

    Raises:
        ValueError: A pair has no score, or none that can be kept, or neither ids nor known texts.
    """
    known = sides and tuple(side.ids_by_text() for side in sides)
    scores, ids = [], []
    for pair in read_pairs(path):
        score = _score(pair)
        if pair.ids is None and pair.texts is not None:
            if known is None:
                raise _needs_sides(path)
            found = [
                _ids_of_text(pair, *each) for each in zip(SIDES, pair.texts, known, strict=True)
            ]
        elif pair.ids is None:
            raise ValueError(f"{pair.place}: a side has neither an id nor a text")
        elif all(pair.ids):
            found = [*pair.ids]
        else:
            continue  # a sentence without a partner, in an alignment
        scores.append(score)
        ids.append(found)
    sources, targets = ([each[side] for each in ids] for side in (0, 1))
    return bucc.Candidates(scores=np.array(scores, np.float64), sources=sources, targets=targets)


def read_scored_texts(path: Path) -> list[ScoredTexts]:
    """Read the scores and texts of pairs."""
    rows = []
    for pair in read_pairs(path):
        if pair.texts is None:
            raise ValueError(f"{pair.place}: no texts")
        rows.append((_score(pair), *pair.texts))
    return rows


def _score(pair: FilePair) -> float:
    if pair.score is None:
        raise ValueError(f"{pair.place}: no score")
    if math.isnan(pair.score) or pair.score == -math.inf:
        raise ValueError(f"{pair.place}: the score is {pair.score}; expected a number above -inf")
    return pair.score


def _ids_of_text(pair: FilePair, side: str, text: str, known: Mapping[str, bucc.Ids]) -> bucc.Ids:
    if (ids := known.get(text_key(text))) is None:
        raise ValueError(
            f"{pair.place}: the {side} text is not among the {side} sentences: {text[:60]!r}"
        )
    return ids


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
            raise ValueError("missing --gold; only --threshold with --output works without it")

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
    candidates = read_candidates(options.pairs, sides)
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
    if pairs_format(options.pairs) != ".tsv":
        raise ValueError(f"{options.pairs}: --compat laser reads pairs in .tsv only")
    sides = options.read_sides()
    if sides is None:
        raise _needs_sides(options.pairs)
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


def _needs_sides(path: Path) -> ValueError:
    return ValueError(
        f"{path}: contains texts, not ids; pass the sentences with ids as --src and --tgt, or as "
        "--src-texts, --src-ids, --tgt-texts and --tgt-ids"
    )


def _stranger_ids(ranked: bucc.Candidates, gold: Gold) -> str | None:
    """Return a remark if gold and candidates share no id on a side: the wrong file, probably."""
    for side, column, known in (("source", 0, ranked.sources), ("target", 1, ranked.targets)):
        ids = {identifier for same in known for identifier in same}
        if ids and ids.isdisjoint(pair[column] for pair in gold):
            return (
                f"no {side} id of the gold occurs in the pairs, whose first is {known[0][0]!r}; "
                "check that the gold belongs to these pairs, source first"
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
    fields |= {"pairs": pairs, "pairs_sha256": fingerprint(Path(str(file_of_pairs(options.pairs))))}
    for side, files in zip(SIDES, options.sides or (), strict=False):
        fields[f"{side}_sha256"] = "+".join(map(fingerprint, files))
    fields["threshold"] = "none" if options.threshold == -math.inf else options.threshold
    full = signature("bucc", **fields, **rules)
    line, record = shown or (f"threshold={options.threshold!r} extracted={len(extracted)}", {})
    counts = {"extracted": len(extracted), "pairs": pairs}
    return ScoringReport(line=line, record={**record, **counts, "signature": full}, remark=remark)
