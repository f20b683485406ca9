"""Strict and lax figures of alignments, against what Vecalign's score.py counts."""

import pytest

from eval.tasks.align import judge_beads, score_beads

GOLD = [((0,), (0,)), ((1,), (1, 2)), ((), (3,)), ((2, 3), (4,)), ((4,), ())]


def test_gold_itself():
    strict, lax = score_beads(GOLD, GOLD)
    assert strict == lax == {"precision": 1, "recall": 1, "f1": 1}


def test_strict_and_lax():
    found = [((0,), (0,)), ((1,), (1,)), ((), (2,)), ((), (3,)), ((2,), (4,)), ((3, 4), ())]
    # Right: 0-0 and the gap 3. Lax: 1-1 and 2-4, too. The gaps 2 and 3-4 are not in gold.
    assert judge_beads(found, GOLD).tolist() == [[1, 1], [0, 1], [0, 0], [1, 1], [0, 1], [0, 0]]
    strict, lax = score_beads(found, GOLD)
    assert (strict["precision"], lax["precision"]) == pytest.approx((2 / 6, 4 / 6))
    # Of gold's three beads with both sides, one is found, and all are touched.
    assert (strict["recall"], lax["recall"]) == pytest.approx((1 / 3, 1))
    assert strict["f1"] == pytest.approx(1 / 3)


def test_nothing_in_common():
    strict, lax = score_beads([((0,), (4,))], GOLD)
    assert (strict["f1"], lax["f1"]) == (0, 0)


def test_repeated_and_empty_beads_count_once_and_never():
    assert judge_beads([((0,), (0,)), ((0,), (0,)), ((), ())], GOLD).tolist() == [[1, 1]]
