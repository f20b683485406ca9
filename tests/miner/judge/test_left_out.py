"""What is mined for a sentence without its partner, against mining anew without that."""

import numpy as np
import pytest

from miner.arrays import Neighbours
from miner.judge.prior import MAX_PAIRS, MIN_PAIRS, leave_one_out_pairs, sample_likely_pairs
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows

K = 3


@pytest.fixture(scope="module")
def sides() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    source = random.standard_normal((40, 6)).astype(np.float32)
    target = random.standard_normal((50, 6)).astype(np.float32)
    target[:40] += 2 * source
    return unit_rows(source), unit_rows(target)


def slowly(source: np.ndarray, target: np.ndarray, row: int, partner: int) -> dict[int, float]:
    """Margins of one source with each neighbour that is left; the last one's cosine twice."""
    cosines = source @ target.T
    near = sorted(range(len(target)), key=lambda other: -cosines[row, other])[:K]
    own = [float(cosines[row, other]) for other in near if other != partner]
    own += [float(cosines[row, near[-1]])] * (partner in near)
    means = {other: np.sort(cosines[:, other])[-K:].mean() for other in near if other != partner}
    return {
        other: float(cosines[row, other] / ((np.mean(own) + mean) / 2))
        for other, mean in means.items()
    }


def test_margins_without_the_partner(sides: tuple[np.ndarray, np.ndarray]) -> None:
    source, target = sides
    forward, backward = search_unit_rows(source, target, k=K)
    theirs = backward.means()[forward.ids]
    nothing = np.full(forward.ids.shape, -np.inf)
    partners = np.arange(40)
    found = leave_one_out_pairs(partners, forward, theirs, nothing, margin="ratio")
    assert found.queries.tolist() == list(range(40))
    margins = found.cosine / ((found.own_mean + found.other_mean) / 2)
    for row, best, margin in zip(range(40), found.rows.tolist(), margins, strict=True):
        expected = slowly(source, target, row, row)
        assert best == max(expected, key=expected.__getitem__)
        assert margin == pytest.approx(expected[best], rel=1e-5)
        assert found.cosine[row] == pytest.approx(float(source[row] @ target[best]), rel=1e-6)


def test_a_better_pair_stands_in_the_way(sides: tuple[np.ndarray, np.ndarray]) -> None:
    source, target = sides
    forward, backward = search_unit_rows(source, target, k=K)
    theirs = backward.means()[forward.ids]
    free = leave_one_out_pairs(
        np.arange(40), forward, theirs, np.full((40, K), -np.inf), margin="ratio"
    )
    taken = np.where(forward.ids % 2 == 0, 9.0, -np.inf)
    found = leave_one_out_pairs(np.arange(40), forward, theirs, taken, margin="ratio")
    assert found.queries.tolist() == np.flatnonzero(free.rows % 2 == 1).tolist()


def test_lists_with_nothing_left() -> None:
    lists = Neighbours.empty(3, 2)
    lists.ids[:, 0], lists.cosines[:, 0] = [4, 5, 6], 0.5
    theirs, taken = np.full((3, 2), 0.4), np.full((3, 2), -np.inf)
    found = leave_one_out_pairs(np.array([4, 1, 6]), lists, theirs, taken, margin="ratio")
    assert (found.queries.tolist(), found.rows.tolist()) == ([1], [5])


def test_likely_pairs() -> None:
    likely = np.repeat([1.0, 0.5, 0.49], [MIN_PAIRS, 40, 100])
    assert sample_likely_pairs(likely).tolist() == list(range(MIN_PAIRS + 40))
    assert sample_likely_pairs(likely[100:]).tolist() == list(range(MIN_PAIRS))
    assert sample_likely_pairs(likely[-3:]).tolist() == [0, 1, 2]
    assert sample_likely_pairs(likely[:0]).tolist() == []
    many = sample_likely_pairs(np.ones(5 * MAX_PAIRS))
    assert len(many) == MAX_PAIRS
    assert (many[0], many[-1]) == (0, 5 * MAX_PAIRS - 1)
