import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.choices import check_choice
from miner.margin import MARGINS, margin_scores
from tests.miner import oracle

COSINES = st.floats(-1, 1, width=32)


@pytest.mark.parametrize("margin", MARGINS)
@given(
    cosine=COSINES,
    near_source=st.lists(COSINES, min_size=1, max_size=6),
    near_target=st.lists(COSINES, min_size=1, max_size=6),
)
def test_equals_the_papers_formula(margin, cosine, near_source, near_target):
    """Also where one side has fewer than k sentences, and so smaller neighbourhoods."""
    score = margin_scores(
        np.array([cosine], dtype=np.float32),
        np.array([np.mean(near_source)]),
        np.array([np.mean(near_target)]),
        margin=margin,
    )
    sums, sizes = (sum(near_source), sum(near_target)), (len(near_source), len(near_target))
    expected = oracle.margin(margin, cosine, sums, sizes)
    np.testing.assert_allclose(score, [expected], rtol=1e-9, atol=1e-9)
    assert score.dtype == np.float64


@pytest.mark.parametrize(
    ("margin", "expected"), [("ratio", 1.6), ("distance", 0.3), ("absolute", 0.8), ("csls", 0.6)]
)
def test_by_hand(margin, expected):
    """cos = 0.8, the means are 0.6 and 0.4: b = 0.5."""
    cosine = np.array([0.8], dtype=np.float32)
    score = margin_scores(cosine, np.array([0.6]), np.array([0.4]), margin=margin)
    np.testing.assert_allclose(score, [expected], atol=1e-7)


def test_a_neighbourhood_that_is_not_similar_does_not_turn_the_ratio_round():
    cosine = np.array([-0.2, -0.1, 0, 0.1, 0.2], dtype=np.float32)
    for mean in (0.0, -0.3, -1.0):
        means = np.full(5, mean)
        scores = margin_scores(cosine, means, means, margin="ratio")
        assert np.isfinite(scores).all()
        assert (np.diff(scores) > 0).all()


def test_ratio_is_the_default():
    one = np.ones(1)
    assert margin_scores(one.astype(np.float32), 2 * one, 2 * one) == [0.5]


@pytest.mark.parametrize("margin", ["Ratio", "", "cosine"])
def test_unknown_margin(margin):
    message = f"margin {margin!r} is unknown; choose one of ratio, distance, absolute, csls"
    with pytest.raises(ValueError, match=message):
        check_choice("margin", margin, MARGINS)
    with pytest.raises(ValueError, match=message):
        margin_scores(np.ones(1, dtype=np.float32), np.ones(1), np.ones(1), margin=margin)


def test_means_leave_out_what_is_not_there():
    found = Neighbours(
        ids=np.array([[5, 2, -1], [-1, -1, -1], [1, 2, 3]]),
        cosines=np.array(
            [[0.5, 0.25, -np.inf], [-np.inf] * 3, [0.75, 0.5, 0.25]], dtype=np.float32
        ),
    )
    assert found.means().tolist() == [0.375, 0, 0.5]
    assert found.means().dtype == np.float64
    assert len(found) == 3
