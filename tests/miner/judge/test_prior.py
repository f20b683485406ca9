"""Probabilities: what is estimated of scores drawn from known distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.judge.prior import BINS, LIKELY, PROBABILITY, SLOPES, Probabilities, count_kept


def drawn(right: int, wrong: int, *, apart: float = 6.0, seed: int = 0) -> np.ndarray:
    """Log likelihood ratios of two bells of spread 1 that are so far apart."""
    random = np.random.default_rng(seed)
    places = np.concatenate([random.normal(apart, 1, right), random.normal(0, 1, wrong)])
    return apart * (places - apart / 2)


@pytest.mark.parametrize(("right", "wrong"), [(50, 4950), (500, 4500), (2500, 2500), (4900, 100)])
def test_the_share_of_right_pairs_is_found(right: int, wrong: int) -> None:
    found = Probabilities.estimated([drawn(right, wrong)])
    assert found.share == pytest.approx(right / (right + wrong), rel=0.05)
    assert (found.slope, found.shift) == (1.0, 0.0)


def test_all_right_and_all_wrong() -> None:
    parallel, unrelated = drawn(3000, 0), drawn(0, 3000)
    assert Probabilities.estimated([parallel]).of_scores(parallel).mean() > 0.999
    assert (Probabilities.estimated([unrelated]).of_scores(unrelated) < LIKELY).all()
    nothing = Probabilities.estimated([])
    assert nothing.of_scores(np.empty(0)).tolist() == []


@pytest.mark.parametrize(("slope", "shift"), [(0.8, 0.0), (1.8, 0.0), (1.0, 3.0), (0.75, -2.0)])
def test_wrong_pairs_mend_a_judge_that_is_off(slope: float, shift: float) -> None:
    """A judge whose log odds are off by a factor and a sum, and what is known of wrong pairs."""
    scores, wrong = (drawn(*sizes, seed=seed) for sizes, seed in (((300, 5000), 1), ((0, 1000), 2)))
    found = Probabilities.estimated([(scores - shift) / slope], (wrong - shift) / slope)
    right = found.of_scores((scores - shift) / slope)
    expected = 1 / (1 + np.exp(-(scores + np.log(300 / 5000))))
    assert right.sum() == pytest.approx(300, rel=0.05)
    assert np.abs(right - expected).mean() < 0.002


def test_few_wrong_pairs_change_little() -> None:
    scores = drawn(300, 5000)
    plain, some = (Probabilities.estimated([scores], wrong) for wrong in (None, scores[-2:]))
    assert abs(some.slope - 1) < 0.3
    assert some.share == pytest.approx(plain.share, rel=0.05)


def test_one_pair_that_is_right_after_all_does_not_decide() -> None:
    scores, wrong = drawn(300, 5000), drawn(0, 300, seed=5)
    plain, told = (
        Probabilities.estimated([scores], each) for each in (wrong, np.append(wrong, 12.0))
    )
    assert told.slope == pytest.approx(SLOPES[0], abs=1e-3)
    assert told.share == pytest.approx(plain.share, rel=0.1)


def test_wrong_pairs_that_look_right_are_not_used() -> None:
    """Near-copies of translations are found without these."""
    scores = drawn(300, 5000)
    alike = Probabilities.estimated([scores], scores[:100])
    assert alike.alike == pytest.approx(1.0, abs=0.02)
    plain = Probabilities.estimated([scores])
    assert (alike.slope, alike.shift, alike.prior) == (plain.slope, plain.shift, plain.prior)
    assert plain.alike is None


def test_blocks_and_order_do_not_show() -> None:
    scores, wrong = drawn(300, 3000), drawn(0, 50, seed=5)
    mixed = np.random.default_rng(3).permutation(scores)
    whole = Probabilities.estimated([scores], wrong)
    assert Probabilities.estimated(np.array_split(mixed, 7), wrong[::-1]) == whole


def test_the_estimate_is_a_fixed_point() -> None:
    """Of the slow, plain iteration over pairs; bins are as wide as 1 / BINS."""
    scores = np.floor(drawn(400, 3600) * BINS) / BINS
    share = 0.5
    for _ in range(500):
        chances = 1 / (1 + np.exp(-(scores + np.log(share / (1 - share)))))
        share = (chances.sum() + 0.5) / (len(scores) + 1)
    found = Probabilities.estimated([scores])
    assert found.share == pytest.approx(share, rel=2e-3)
    np.testing.assert_allclose(found.of_scores(scores), chances, atol=2e-3)
    assert not (found.of_scores(scores) / PROBABILITY % 1).any()


def kept_slowly(scores: np.ndarray, wrong: np.ndarray, rule: str, limit: float) -> int:
    best = 0
    for count in range(1, len(scores) + 1):
        if count < len(scores) and scores[count] == scores[count - 1]:
            continue  # no threshold is between them
        good = {
            "all": True,
            "threshold": scores[count - 1] > limit,
            "probability": 1 - wrong[count - 1] >= limit,
            "fdr": sum(wrong[:count]) <= limit * count,
        }[rule]
        best = count if good else best
    return best


@given(
    chances=st.lists(st.integers(0, 8), max_size=12),
    rule=st.sampled_from(["all", "threshold", "probability", "fdr"]),
    limit=st.sampled_from([0.125, 0.25, 0.5, 0.75]),
)
def test_what_is_kept(chances: list[int], rule: str, limit: float) -> None:
    scores = np.sort(np.array(chances, dtype=float))[::-1] / 8
    assert count_kept(scores, 1 - scores, rule, limit) == kept_slowly(
        scores, 1 - scores, rule, limit
    )
