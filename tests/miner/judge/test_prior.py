"""Probabilities: what is estimated of scores drawn from known distributions."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.judge.prior import (
    BINS_PER_UNIT,
    ESTIMATE,
    LEAVE_ONE_OUT_WEIGHT,
    LIKELY,
    LOOKALIKE_RATE,
    MIN_MEAN_DISTANCE,
    PRIOR_CORRECT_PAIRS,
    PRIOR_LEAVE_ONE_OUT_PAIRS,
    PRIOR_WRONG_PAIRS,
    PROBABILITY,
    SCORES,
    SHIFTS,
    TAIL_OFFSET,
    Peak,
    Probabilities,
    count_kept,
    count_scores,
    fit_peak,
)

WRONG, RIGHT = USUAL = Peak(-6.5, 2.0, 0.6), Peak(6.5, 0.5, 1.5)


def drawn(peak: Peak, count: int, seed: int = 0) -> np.ndarray:
    """Draw scores: of both sides of a peak, the steeper one has fewer."""
    random = np.random.default_rng(seed)
    before = random.random(count) < peak.fall / (peak.rise + peak.fall)
    away = random.exponential(1 / np.where(before, peak.rise, peak.fall))
    return peak.place + np.where(before, -away, away)


def run_of(right: int, wrong: int, peaks: tuple[Peak, Peak] = USUAL, seed: int = 0) -> np.ndarray:
    return np.concatenate([drawn(peaks[1], right, seed), drawn(peaks[0], wrong, seed + 1)])


def log_likelihood(peak: Peak, counts: np.ndarray) -> float:
    """Of pairs with a mean distance of at least ``MIN_MEAN_DISTANCE`` on either side."""
    away = SCORES - peak.place
    below, above = (
        max((counts * np.maximum(sign * away, 0)).sum() / counts.sum(), MIN_MEAN_DISTANCE)
        for sign in (-1, 1)
    )
    mean = -math.log(1 / peak.rise + 1 / peak.fall) - peak.rise * below - peak.fall * above
    return float(counts.sum() * mean)


def test_a_peak_is_a_density() -> None:
    fine = np.exp(Peak(SCORES[200], 1.7, 0.6).log_densities()).sum() / BINS_PER_UNIT
    assert fine == pytest.approx(1, abs=0.01)


@given(st.lists(st.integers(-90, 90), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_no_peak_is_likelier_than_the_one_that_is_fit(places: list[int], random: object) -> None:
    counts = count_scores(np.array(places) / BINS_PER_UNIT)
    found = fit_peak(counts)
    best = log_likelihood(found, counts)
    for _ in range(50):
        place = float(SCORES[random.randrange(len(SCORES))])  # type: ignore[attr-defined]
        rise, fall = (4.0 ** random.uniform(-2, 2) for _ in range(2))  # type: ignore[attr-defined]
        assert log_likelihood(Peak(place, rise, fall), counts) <= best + 1e-9 * len(places)


def test_a_peak_is_found_again() -> None:
    found = fit_peak(count_scores(drawn(WRONG, 100_000)))
    np.testing.assert_allclose(found, WRONG, rtol=0.04)


@pytest.mark.parametrize(("right", "wrong"), [(100, 4900), (500, 4500), (2500, 2500), (4900, 100)])
@pytest.mark.parametrize(
    "peaks", [USUAL, (Peak(-7.5, 1.5, 0.7), Peak(5.5, 0.6, 1.0))], ids=["usual", "others"]
)
def test_what_is_right_is_found(right: int, wrong: int, peaks: tuple[Peak, Peak]) -> None:
    """Also where a run's words match worse than usual, and its sentences are less alike."""
    scores = run_of(right, wrong, peaks)
    found = Probabilities.fit(USUAL, [scores])
    assert found.share == pytest.approx(right / (right + wrong), rel=0.15, abs=0.004)
    odds = peaks[1].log_densities() - peaks[0].log_densities() + math.log(right / wrong)
    between = np.interp(scores, SCORES, 1 / (1 + np.exp(-odds)))
    assert np.abs(found.predict(scores) - between).mean() < 0.02


def test_groups_do_not_change_places() -> None:
    """Of right pairs that score unlike each other, the lesser ones are not taken for wrong ones."""
    scores = np.concatenate([drawn(RIGHT._replace(rise=0.3), 1900), drawn(WRONG, 60, seed=2)])
    found = Probabilities.fit(USUAL, [scores])
    assert found.share == pytest.approx(1900 / 1960, abs=0.03)
    assert (found.predict(scores[:1900]) >= LIKELY).mean() > 0.95
    low = np.full(100, -14.0)
    assert (Probabilities.fit(USUAL, [low]).predict(low) < LIKELY).all()


def test_all_right_and_all_wrong() -> None:
    parallel, unrelated = run_of(3000, 0), run_of(0, 3000)
    known = drawn(WRONG, 300, seed=9)
    likely = Probabilities.fit(USUAL, [parallel], known).predict(parallel)
    assert (likely >= LIKELY).mean() > 0.97
    assert (Probabilities.fit(USUAL, [unrelated]).predict(unrelated) < LIKELY).all()
    nothing = Probabilities.fit(USUAL, [])
    assert nothing.predict(np.empty(0)).tolist() == []


def test_few_pairs_are_judged_by_what_is_usual() -> None:
    scores = np.array([7.0, 6.0, -6.0])
    likely = Probabilities.fit(USUAL, [scores]).predict(scores)
    assert (likely > 0.9).tolist() == [True, True, False]


def test_pairs_known_to_be_wrong_count() -> None:
    """Where nearly all pairs are right, they say how wrong ones score."""
    peaks = Peak(-2.0, 2.0, 0.6), RIGHT
    plain, told = (
        np.mean([error_of(900, 40, peaks, known, seed) for seed in range(4)])
        for known in (np.empty(0), drawn(peaks[0], 1000, seed=5))
    )
    assert told < 0.7 * plain


def error_of(
    right: int, wrong: int, peaks: tuple[Peak, Peak], known: np.ndarray, seed: int
) -> float:
    """Return the mean error of the probabilities of a run."""
    scores = run_of(right, wrong, peaks, seed)
    odds = peaks[1].log_densities() - peaks[0].log_densities() + math.log(right / wrong)
    expected = np.interp(scores, SCORES, 1 / (1 + np.exp(-odds)))
    found = Probabilities.fit(USUAL, [scores], known).predict(scores)
    return float(np.abs(found - expected).mean())


@pytest.mark.parametrize("seed", range(3))
def test_correct_pairs_with_low_scores_are_found(seed: int) -> None:
    """As in Tamil or Korean, whose words match worse than those of the training text."""
    peaks = Peak(-7.5, 2.6, 0.86), Peak(1.5, 0.3, 1.0)
    known = drawn(peaks[0], 300, seed=5)
    assert error_of(180, 620, peaks, known, seed) < 0.04
    found = Probabilities.fit(USUAL, [run_of(180, 620, peaks, seed)], known)
    assert found.share == pytest.approx(180 / 800, abs=0.04)


def test_some_that_are_right_after_all_do_not_decide() -> None:
    scores, wrong = run_of(300, 5000), drawn(WRONG, 300, seed=5)
    plain, told = (
        Probabilities.fit(USUAL, [scores], each)
        for each in (wrong, np.append(wrong, [8.0, 7.5, 7.0]))
    )
    assert told.share == pytest.approx(plain.share, rel=0.02)
    np.testing.assert_allclose(told.predict(scores), plain.predict(scores), atol=0.025)


def test_known_pairs_that_look_right_are_counted() -> None:
    """Near-copies of translations are found without these."""
    scores = run_of(300, 5000)
    found = Probabilities.fit(USUAL, [scores], drawn(RIGHT, 1000, seed=7))
    assert found.alike > 0.8
    assert found.share == pytest.approx(300 / 5300, rel=0.1)


def test_where_hardly_any_pair_is_right_none_is_sure() -> None:
    """A few sentences without a translation find one that looks like it."""
    scores = run_of(30, 30_000)
    found = Probabilities.fit(USUAL, [scores])
    assert found.most == pytest.approx(1 - LOOKALIKE_RATE / (30 / 30_000), abs=0.15)
    assert found.predict(scores).max() <= found.most


def test_blocks_and_order_do_not_show() -> None:
    scores, wrong = run_of(300, 3000), drawn(WRONG, 50, seed=5)
    mixed = np.random.default_rng(3).permutation(scores)
    whole = Probabilities.fit(USUAL, [scores], wrong)
    assert Probabilities.fit(USUAL, np.array_split(mixed, 7), wrong[::-1]) == whole


def test_the_estimate_is_the_slow_one() -> None:
    """The plain iteration over pairs, with peaks by their log likelihoods at all places."""
    pairs = [(score, 1.0, False) for score in run_of(60, 400, (WRONG, RIGHT._replace(place=5.0)))]
    pairs += [(score, 1.0, True) for score in drawn(WRONG, 50, seed=5)]
    pairs = [
        ((math.floor(score * BINS_PER_UNIT) + 0.5) / BINS_PER_UNIT, *rest) for score, *rest in pairs
    ]
    before = []
    for peak, weight in zip(USUAL, (PRIOR_WRONG_PAIRS, PRIOR_CORRECT_PAIRS), strict=True):
        dense = [slow_density(peak, score) for score in SCORES]
        before.append(
            [(score, weight * d / sum(dense)) for score, d in zip(SCORES, dense, strict=True)]
        )
    right, share, alike = RIGHT, 0.1, LOOKALIKE_RATE

    def density(score: float) -> float:
        return slow_density(WRONG, score)

    for _ in range(60):
        groups: tuple[list, list] = list(before[0]), list(before[1])
        sums = [0.0, 0.0]
        for score, _, known in pairs:
            odds = alike / (1 - alike) if known else share / (1 - share)
            odds *= slow_density(right, score) / density(score)
            groups[1].append((score, odds / (1 + odds)))
            groups[0].append((score, (LEAVE_ONE_OUT_WEIGHT if known else 1) / (1 + odds)))
            sums[known] += odds / (1 + odds)
        share = (sums[0] + 0.5) / (460 + 1)
        alike = (sums[1] + LOOKALIKE_RATE * PRIOR_LEAVE_ONE_OUT_PAIRS) / (
            50 + PRIOR_LEAVE_ONE_OUT_PAIRS
        )
        wrong, right = (
            slow_peak(group, *(usual.place + shift for shift in shifts))
            for group, usual, shifts in zip(groups, USUAL, SHIFTS, strict=True)
        )
        density = slow_wrong(groups[0], wrong)
    found = Probabilities.fit(
        USUAL,
        [np.array([one[0] for one in pairs[:460]])],
        np.array([one[0] for one in pairs[460:]]),
    )
    assert found.share == pytest.approx(
        (share - LOOKALIKE_RATE) / (1 - LOOKALIKE_RATE), abs=2 * ESTIMATE
    )
    for score in (-4.0, -1.0, 0.0, 1.0, 4.0):
        odds = share / (1 - share) * slow_density(right, score) / density(score)
        expected = odds / (1 + odds) * (share - LOOKALIKE_RATE) / (1 - LOOKALIKE_RATE) / share
        (chance,) = found.predict(np.array([score]))
        assert chance == pytest.approx(expected, abs=0.005)
        assert chance / PROBABILITY % 1 == 0


def slow_density(peak: Peak, score: float) -> float:
    away = score - peak.place
    side = math.exp(-peak.fall * away) if away > 0 else math.exp(peak.rise * away)
    return side / (1 / peak.rise + 1 / peak.fall)


def slow_wrong(group: list[tuple[float, float]], peak: Peak) -> Callable[[float], float]:
    """Return the density of wrong pairs: above a start, as many as there are, by their mean."""
    start = peak.place + TAIL_OFFSET
    pairs = sum(weight for score, weight in group if score > start)
    excess = sum(weight * (score - start) for score, weight in group if score > start) / pairs
    share = pairs / sum(weight for _, weight in group)
    return lambda score: (
        slow_density(peak, score)
        if score <= start
        else share / excess * math.exp(-(score - start) / excess)
    )


def slow_peak(group: list[tuple[float, float]], least: float, most: float) -> Peak:
    scores, weights = np.array(group).T
    best, found = -math.inf, None
    for place in np.unique(scores):
        if not least <= place <= most:
            continue
        below, above = (
            max((weights * np.maximum(side, 0)).sum() / weights.sum(), MIN_MEAN_DISTANCE)
            for side in (place - scores, scores - place)
        )
        both = math.sqrt(below * above)
        peak = Peak(float(place), 1 / (below + both), 1 / (above + both))
        value = -math.log(1 / peak.rise + 1 / peak.fall) - peak.rise * below - peak.fall * above
        if value > best:
            best, found = value, peak
    assert found is not None
    return found


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
