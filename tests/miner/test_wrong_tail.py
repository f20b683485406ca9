"""How wrong pairs fall off, against the same fit over single scores and against known worlds."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from miner.fdr import TAIL
from miner.two_groups import Histogram, TwoGroups
from miner.wrong_tail import CLEAR, PRIOR, PRIOR_EXCESS, WrongTail

NORMAL = NormalDist()
GROUPS = TwoGroups(wrong=0.95, mean=2.0, right_mean=3.8, spread=0.3)
START = 2 + 0.3 * NORMAL.inv_cdf(TAIL)
NONE = np.empty(0)


def world(pairs: int, excess: float, *, seed: int = 0) -> np.ndarray:
    """Scores of ``GROUPS``; a quarter of the wrong ones fall off from ``START`` on."""
    random = np.random.default_rng(seed)
    wrong = round(GROUPS.wrong * pairs)
    body = [random.normal(2, 0.3, 3 * wrong)]
    body = [scores[scores < START][: wrong - wrong // 4] for scores in body]
    tail = START + random.exponential(excess, wrong // 4)
    return np.concatenate([*body, tail, random.normal(3.8, 0.3, pairs - wrong)])


def fitted(scores: np.ndarray, left_out: np.ndarray = NONE) -> WrongTail:
    histogram = Histogram.empty(float(scores.min()), float(scores.max()))
    histogram.add(scores)
    return WrongTail.fitted(histogram, GROUPS, left_out)


def slow_fit(scores: list[float], left_out: list[float]) -> tuple[float, float]:
    """Share and excess by single scores, a fixed number of steps."""

    def right(score: float) -> float:
        return (1 - GROUPS.wrong) * NormalDist(3.8, 0.3).pdf(score)

    def wrong(score: float) -> float:
        return GROUPS.wrong * share / excess * math.exp(-(score - START) / excess)

    quartile = float(np.quantile(left_out, TAIL)) if left_out else 0
    known = [score - quartile for score in left_out if score > quartile]
    known += [PRIOR_EXCESS * 0.3] * PRIOR
    share, excess = 1 - TAIL, sum(known) / len(known)
    end = START
    while wrong(end) / (wrong(end) + right(end)) >= CLEAR:
        end += 1e-4
    inside = [score for score in scores if START <= score < end]
    for _ in range(200):
        chances = [wrong(score) / (wrong(score) + right(score)) for score in inside]
        seen = sum(chances)
        hidden = seen * math.exp(-(end - START) / excess) / (1 - math.exp(-(end - START) / excess))
        places = sum(
            chance * (score - START) for chance, score in zip(chances, inside, strict=True)
        )
        above = places + hidden * (end - START + excess) + sum(known)
        excess = above / (seen + hidden + len(known))
        share = (seen + hidden) / (GROUPS.wrong * len(scores))
    return share, excess


@pytest.mark.parametrize("left", [0, 300])
def test_the_fit_is_that_of_single_scores(left: int) -> None:
    scores = world(2000, 0.2)
    left_out = np.random.default_rng(1).normal(2, 0.3, left)
    tail = fitted(scores, left_out)
    assert (tail.share, tail.excess) == pytest.approx(
        slow_fit(scores.tolist(), left_out.tolist()), rel=0.01
    )


@pytest.mark.parametrize("excess", [0.1, 0.17, 0.3])
def test_the_law_that_scores_were_drawn_from(excess: float) -> None:
    tail = fitted(world(60_000, excess))
    assert tail.start == pytest.approx(START)
    assert tail.excess == pytest.approx(excess, rel=0.1)
    assert tail.share == pytest.approx(0.25, rel=0.05)
    high = np.array([3.0, 3.5])
    expected = 0.95 * 0.25 * np.exp(-(high - START) / excess)
    np.testing.assert_allclose(tail.above(high), expected, rtol=0.45)


def test_few_pairs_hardly_move_it() -> None:
    tail = fitted(world(40, 0.4))
    assert PRIOR_EXCESS * 0.3 < tail.excess < 0.3


def test_sentences_without_their_translation_move_it() -> None:
    scores = world(2000, 0.17)
    steep, slow = (np.random.default_rng(2).exponential(excess, 1000) + 2 for excess in (0.1, 0.4))
    assert fitted(scores, steep).excess < fitted(scores).excess < fitted(scores, slow).excess


def test_right_pairs_everywhere() -> None:
    """Where no score of the tail is clear, the law is the one before anything is seen."""
    groups = TwoGroups(wrong=0.1, mean=2.0, right_mean=2.9, spread=0.3)
    scores = np.random.default_rng(3).normal(2.9, 0.3, 1000)
    histogram = Histogram.empty(float(scores.min()), float(scores.max()))
    histogram.add(scores)
    tail = WrongTail.fitted(histogram, groups, NONE)
    assert (tail.share, tail.excess) == (1 - TAIL, pytest.approx(PRIOR_EXCESS * 0.3))


def test_wrong_pairs_are_normal_and_then_exponential() -> None:
    tail = WrongTail(groups=GROUPS, start=2.2, share=0.2, excess=0.5)
    assert tail.above(np.array([-np.inf, 2.0])) == pytest.approx([0.95, 0.95 * 0.5])
    assert tail.above(np.array([2.2, 2.7])) == pytest.approx([0.19, 0.19 / math.e])
    scores = np.linspace(0, 6, 601)
    assert (np.diff(tail.above(scores)) <= 0).all()
