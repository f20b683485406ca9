"""The two-groups model, against its definition and against worlds where the truth is known."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from miner.score_calibration import Calibration
from miner.two_groups import (
    MIN_PAIRS,
    MIN_SEPARATION,
    Histogram,
    fit_groups,
)


def histogram(scores: np.ndarray, parts: int = 1) -> Histogram:
    counted = Histogram.empty(float(scores.min()), float(scores.max()))
    for part in np.array_split(scores, parts):
        counted.add(part)
    return counted


def world(
    wrong: int, right: int, *, apart: float = 5, seed: int = 0, excess: float | None = None
) -> tuple:
    """Scores, best first, and which of them are right.

    Those of wrong pairs are normal, or, with ``excess`` in standard deviations, exponential above
    their upper quartile, as they are in corpora.
    """
    random = np.random.default_rng(seed)
    low = random.normal(0, 1, wrong)
    if excess is not None:
        quartile = NormalDist().inv_cdf(0.75)
        tail = quartile + random.exponential(excess, wrong)
        low = np.where(low > quartile, tail, low)
    scores = np.concatenate([2 + 0.3 * low, random.normal(2 + apart * 0.3, 0.3, right)])
    order = np.argsort(-scores)
    return scores[order], (np.arange(wrong + right) >= wrong)[order]


def slow_fit(scores: list[float]) -> tuple[float, float, float, float]:
    """Expectation maximisation over single scores, from halves at the middle of their range."""
    middle = (min(scores) + max(scores)) / 2
    chances = [float(score > middle) for score in scores]
    for _ in range(200):
        right = sum(chances)
        wrong = len(scores) - right
        means = (
            sum((1 - chance) * score for chance, score in zip(chances, scores, strict=True))
            / wrong,
            sum(chance * score for chance, score in zip(chances, scores, strict=True)) / right,
        )
        variance = sum(
            (1 - chance) * (score - means[0]) ** 2 + chance * (score - means[1]) ** 2
            for chance, score in zip(chances, scores, strict=True)
        ) / len(scores)
        bells = [NormalDist(mean, math.sqrt(variance)) for mean in means]
        chances = []
        for score in scores:
            densities = wrong * bells[0].pdf(score), right * bells[1].pdf(score)
            chances.append(densities[1] / sum(densities))
    return wrong / len(scores), *means, math.sqrt(variance)


def test_the_fit_is_that_of_single_scores() -> None:
    scores, _ = world(300, 100, apart=4.5)
    groups = fit_groups(histogram(scores))
    assert (groups.wrong, groups.mean, groups.right_mean, groups.spread) == pytest.approx(
        slow_fit(scores.tolist()), rel=2e-3
    )


@pytest.mark.parametrize(("wrong", "right"), [(6000, 250), (1500, 500), (300, 300), (60, 400)])
def test_the_number_of_wrong_pairs(wrong: int, right: int) -> None:
    scores, _ = world(wrong, right)
    found = fit_groups(histogram(scores))
    assert found.wrong * len(scores) == pytest.approx(wrong, rel=0.05, abs=10)
    assert found.separation == pytest.approx(5, abs=0.4)


@pytest.mark.parametrize("rate", [0.05, 0.1])
@pytest.mark.parametrize(("wrong", "right"), [(60_000, 2500), (3000, 1000)])
def test_thresholds_keep_their_promise(wrong: int, right: int, rate: float) -> None:
    scores, is_right = world(wrong, right, apart=5, excess=0.5)
    calibration = Calibration.of(scores)
    threshold = calibration.threshold(rate)
    kept = scores > threshold
    expected = calibration.expected(threshold)
    assert expected.pairs == kept.sum()
    assert expected.share == pytest.approx(rate, rel=0.1)
    assert expected.wrong == expected.share * expected.pairs
    assert (~is_right[kept]).mean() < rate * 1.15
    assert is_right[kept].sum() > right / 2
    assert expected.interval[0] <= expected.share <= expected.interval[1] < 2 * rate
    first = int(np.searchsorted(calibration.histogram.edges, threshold))
    assert calibration.rates[first - 1] > rate  # one bin lower


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [0.05, 0.1])
def test_a_normal_tail_falls_faster_than_expected(rate: float, seed: int) -> None:
    scores, is_right = world(6000, 1000, seed=seed)
    kept = scores > Calibration.of(scores).threshold(rate)
    assert (~is_right[kept]).mean() < rate
    assert is_right[kept].mean() > 0.5


def test_probabilities() -> None:
    scores, is_right = world(20_000, 5000, apart=4)
    calibration = Calibration.of(scores)
    likely = calibration.probability(scores)
    assert (np.diff(likely) <= 0).all()
    assert 0 <= likely.min() <= likely.max() <= 1
    assert (1 - likely).sum() == pytest.approx(calibration.wrong[0], rel=0.02)
    for low, high in ((0.1, 0.5), (0.5, 0.9)):
        between = (low < likely) & (likely < high)
        assert low - 0.1 < is_right[between].mean() < high + 0.15


def test_the_histogram_does_not_depend_on_its_parts() -> None:
    scores, _ = world(500, 50)
    whole, parts = histogram(scores), histogram(scores, 7)
    np.testing.assert_array_equal(whole.counts, parts.counts)
    assert whole.counts.sum() == len(scores)
    assert (whole.edges[whole.bins(scores)] <= scores).all()


@pytest.mark.parametrize("seed", range(5))
def test_one_group_could_be_either(seed: int) -> None:
    scores = np.random.default_rng(seed).normal(3, 0.4, 1000)
    with pytest.raises(ValueError, match="do not fall into two groups"):
        fit_groups(histogram(scores))


def test_groups_too_near() -> None:
    scores, _ = world(2000, 1000, apart=MIN_SEPARATION - 1)
    with pytest.raises(ValueError, match="without --fdr"):
        fit_groups(histogram(scores))


def test_too_few_pairs() -> None:
    scores, _ = world(MIN_PAIRS // 2, MIN_PAIRS // 2 - 1)
    with pytest.raises(ValueError, match=f"^{MIN_PAIRS - 1} pairs are too few"):
        fit_groups(histogram(scores))


def test_scores_that_do_not_differ() -> None:
    with pytest.raises(ValueError, match="do not fall into two groups"):
        Calibration.of(np.ones(200))


def test_no_pairs() -> None:
    with pytest.raises(ValueError, match=r"^0 pairs are too few"):
        Calibration.of(np.array([]))


def test_a_rate_that_no_threshold_has() -> None:
    scores, _ = world(5000, 150, apart=3.5)
    calibration = Calibration.of(scores)
    assert calibration.threshold(1e-9) == math.inf
    nothing = calibration.expected(math.inf)
    assert (nothing.pairs, nothing.wrong, nothing.share) == (0, 0, 0)


def near_copies() -> tuple:
    """A world where some wrong pairs score higher than a normal distribution has it."""
    random = np.random.default_rng(5)

    def wrong(count: int) -> np.ndarray:
        high = np.where(random.random(count) < 0.3, random.exponential(0.25, count), 0)
        return random.normal(2, 0.3, count) + high

    scores = np.concatenate([wrong(20_000), random.normal(4, 0.3, 1000)])
    order = np.argsort(-scores)
    return scores[order], (np.arange(21_000) >= 20_000)[order], wrong(4000)


def test_near_copies_are_seen_with_and_without_such_sentences() -> None:
    scores, is_right, left_out = near_copies()
    shares = []
    for known in (None, left_out):
        calibration = Calibration.of(scores, known)
        kept = scores > calibration.threshold(0.1)
        shares.append((~is_right[kept]).mean())
        low, high = calibration.expected(calibration.threshold(0.1)).interval
        assert low <= 0.1 <= high
    assert all(0.08 < share < 0.125 for share in shares)


@pytest.mark.parametrize("fault", ["few", "tied", "far"])
def test_what_is_left_out_has_to_be_like_wrong_pairs(fault: str) -> None:
    """Where only sentences with a translation have near-copies, say, these say nothing."""
    scores, _ = world(3000, 1000)
    random = np.random.default_rng(1)
    left_out = {
        "few": random.normal(2, 0.3, 99),
        "tied": np.repeat(random.normal(2, 0.3, 50), 20),
        "far": random.normal(2.4, 0.3, 1000),
    }[fault]
    assert Calibration.of(scores, left_out).rates.tolist() == Calibration.of(scores).rates.tolist()
    usable = random.normal(2.2, 0.3, 1000)
    assert Calibration.of(scores, usable).rates.tolist() != Calibration.of(scores).rates.tolist()
