"""Scores against a slow and obvious recount, and the rules one by one."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.metrics.bucc import (
    BuccScore,
    Candidates,
    best_score,
    extracted_pairs,
    judge,
    rank,
    score_at,
    threshold_between,
)

Row = tuple[float, tuple[str, ...], tuple[str, ...]]
Gold = set[tuple[str, str]]


def make(*rows: Row) -> Candidates:
    return Candidates(
        scores=np.array([row[0] for row in rows], dtype=np.float64),
        sources=[row[1] for row in rows],
        targets=[row[2] for row in rows],
    )


def simple(*rows: tuple[float, str, str]) -> Candidates:
    return make(*((score, (source,), (target,)) for score, source, target in rows))


def best(candidates: Candidates, gold: Gold) -> BuccScore:
    return best_score(judge(rank(candidates), gold))


def at(candidates: Candidates, gold: Gold, threshold: float) -> BuccScore:
    return score_at(judge(rank(candidates), gold), threshold)


def recount(rows: list[Row], gold: Gold, threshold: float) -> tuple[int, int, int]:
    """Extracted, correct and found by the definition: sets, and every combination of ids."""
    best_of: dict[tuple[str, str], Row] = {}
    for row in rows:
        name = row[1][0], row[2][0]
        if name not in best_of or row[0] > best_of[name][0]:
            best_of[name] = row
    kept = [row for row in best_of.values() if row[0] > threshold]
    stands_for = [{(s, t) for s in row[1] for t in row[2]} for row in kept]
    correct = sum(1 for pairs in stands_for if pairs & gold)
    return len(kept), correct, len(set().union(*stands_for) & gold)


def exact_f1(extracted: int, correct: int, found: int, gold: int) -> Fraction:
    if not correct or not gold:
        return Fraction(0)
    precision, recall = Fraction(correct, extracted), Fraction(found, gold)
    return 2 * precision * recall / (precision + recall)


ids = st.lists(st.sampled_from("abcde"), min_size=1, max_size=3, unique=True).map(tuple)
# Few distinct scores, so that ties are common; neighbours among the floats; infinity.
scores = st.sampled_from(
    [1.25, 1.0, math.nextafter(1.0, 0), 0.5, 0.0, -0.0, -1.5, 5e-324, math.inf]
)
row_lists = st.lists(st.tuples(scores, ids, ids), max_size=12)
golds = st.sets(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")), max_size=8)


@given(rows=row_lists, gold=golds, threshold=scores)
def test_score_at_a_threshold_is_the_recount(rows: list[Row], gold: Gold, threshold: float) -> None:
    score = at(make(*rows), gold, threshold)
    assert (score.extracted, score.correct, score.found) == recount(rows, gold, threshold)
    counts = score.extracted, score.correct, score.found, score.gold
    assert score.f1 == pytest.approx(float(exact_f1(*counts)), rel=1e-12)


@given(rows=row_lists, gold=golds)
def test_best_f1_is_the_best_of_all_thresholds(rows: list[Row], gold: Gold) -> None:
    candidates = make(*rows)
    outcomes = []
    for threshold in sorted({row[0] for row in rows}, reverse=True):
        counts = recount(rows, gold, math.nextafter(threshold, -math.inf))
        outcomes.append((exact_f1(*counts, len(gold)), -counts[0]))
    f1, fewest = max(outcomes, default=(Fraction(0), 0))
    score = best(candidates, gold)
    assert exact_f1(score.extracted, score.correct, score.found, len(gold)) == f1
    assert -score.extracted == (fewest if f1 else 0)
    assert score == at(candidates, gold, score.threshold)
    assert score.extracted == len(extracted_pairs(rank(candidates), score.threshold))


@given(rows=row_lists, gold=golds, seed=st.randoms())
def test_the_order_of_candidates_does_not_matter(rows: list[Row], gold: Gold, seed) -> None:
    # One set of ids for each name: of two that differ, which counts is a matter of order.
    rows = [(score, source[:1], target[:1]) for score, source, target in rows]
    shuffled = rows.copy()
    seed.shuffle(shuffled)
    assert best(make(*shuffled), gold) == best(make(*rows), gold)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(kept=finite, dropped=finite)
def test_threshold_between_keeps_the_one_and_drops_the_other(kept: float, dropped: float) -> None:
    if kept < dropped:
        kept, dropped = dropped, kept
    if kept > dropped:
        assert dropped <= threshold_between(kept, dropped) < kept


@pytest.mark.parametrize(
    ("kept", "dropped", "expected"),
    [
        (1.5, 1.0, 1.25),
        (-1.0, -2.0, -1.5),
        (1.0, -math.inf, math.nextafter(1.0, 0.0)),
        (math.inf, 2.0, 2.0),
        (math.nextafter(1.0, 2.0), 1.0, 1.0),
        (sys.float_info.max, sys.float_info.max / 2, sys.float_info.max * 0.75),
    ],
)
def test_threshold_between(kept: float, dropped: float, expected: float) -> None:
    assert threshold_between(kept, dropped) == expected


def test_threshold_is_halfway_between_the_last_kept_and_the_first_dropped() -> None:
    candidates = simple((1.4, "a", "a"), (1.2, "b", "b"), (1.1, "c", "x"), (1.0, "d", "x"))
    score = best(candidates, {("a", "a"), ("b", "b"), ("e", "e")})
    assert score.threshold == pytest.approx(1.15)
    assert (score.extracted, score.correct, score.found, score.gold) == (2, 2, 2, 3)
    assert (score.precision, score.recall, score.f1) == (1.0, 2 / 3, 0.8)


def test_the_comparison_with_the_threshold_is_strict() -> None:
    candidates = simple((1.2, "a", "a"), (1.1, "b", "b"))
    assert at(candidates, {("a", "a")}, 1.1).extracted == 1
    assert extracted_pairs(rank(candidates), 1.1) == [("a", "a")]
    assert at(candidates, {("a", "a")}, -math.inf).extracted == 2


def test_equal_scores_stand_or_fall_together() -> None:
    # Parting the tie would keep (a, a) alone, with a perfect F1.
    candidates = simple((1.0, "a", "a"), (1.0, "b", "x"))
    score = best(candidates, {("a", "a")})
    assert (score.extracted, score.precision, score.recall) == (2, 0.5, 1.0)
    assert score.threshold == math.nextafter(1.0, 0.0)


def test_of_equally_good_thresholds_the_highest_is_chosen() -> None:
    # F1 is 1/2 with one candidate (P 1, R 1/3) and with five (P 2/5, R 2/3).
    rows = [(5.0, "a", "a"), (4.0, "w", "w"), (3.0, "x", "x"), (2.0, "y", "y"), (1.0, "b", "b")]
    score = best(simple(*rows), {("a", "a"), ("b", "b"), ("c", "c")})
    assert (score.f1, score.extracted) == (0.5, 1)


def test_a_candidate_stands_for_all_ids_of_its_sentences() -> None:
    candidates = make((1.2, ("a", "b"), ("c", "d")))
    score = at(candidates, {("b", "c"), ("z", "z")}, 0.0)
    assert (score.extracted, score.correct, score.found) == (1, 1, 1)
    assert extracted_pairs(rank(candidates), 0.0) == [("a", "c")]


def test_a_candidate_may_find_several_gold_pairs_and_is_one_correct_candidate() -> None:
    score = at(make((1.2, ("a", "b"), ("c", "d"))), {("a", "c"), ("b", "d")}, 0.0)
    assert (score.precision, score.recall, score.f1) == (1.0, 1.0, 1.0)
    assert (score.correct, score.found) == (1, 2)


def test_a_gold_pair_is_found_once() -> None:
    candidates = make((1.2, ("a", "b"), ("c",)), (1.1, ("b", "a"), ("c",)))
    score = at(candidates, {("a", "c"), ("z", "z")}, 0.0)
    assert (score.extracted, score.correct, score.found, score.recall) == (2, 2, 1, 0.5)


def test_an_id_pair_proposed_twice_counts_once_with_its_best_score() -> None:
    ranked = rank(simple((1.0, "a", "a"), (1.1, "b", "b"), (1.3, "a", "a")))
    assert ranked.scores.tolist() == [1.3, 1.1]
    assert extracted_pairs(ranked, 0.0) == [("a", "a"), ("b", "b")]


def test_ties_keep_the_order_given() -> None:
    ranked = rank(simple((1.0, "b", "b"), (2.0, "z", "z"), (1.0, "a", "a")))
    assert extracted_pairs(ranked, 0.0) == [("z", "z"), ("b", "b"), ("a", "a")]


@pytest.mark.parametrize("gold", [set(), {("a", "a")}])
def test_no_candidate(gold: Gold) -> None:
    score = best(simple(), gold)
    assert (score.threshold, score.extracted, score.f1) == (math.inf, 0, 0.0)
    assert (score.precision, score.recall, score.gold) == (0.0, 0.0, len(gold))
    assert at(simple(), gold, 1.0).extracted == 0


def test_no_correct_candidate_keeps_nothing() -> None:
    score = best(simple((1.0, "a", "b"), (math.inf, "c", "d")), {("a", "a")})
    assert (score.threshold, score.extracted, score.f1) == (math.inf, 0, 0.0)


def test_a_single_candidate() -> None:
    score = best(simple((1.0, "a", "a")), {("a", "a")})
    assert (score.threshold, score.extracted, score.f1) == (math.nextafter(1.0, 0.0), 1, 1.0)


@pytest.mark.parametrize("score", [math.nan, -math.inf])
def test_scores_that_no_threshold_can_keep_are_refused(score: float) -> None:
    with pytest.raises(ValueError, match=r"candidate 2 has the score (nan|-inf); scores must be"):
        simple((1.0, "a", "a"), (score, "b", "b"))
