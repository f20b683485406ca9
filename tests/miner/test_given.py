"""Given pairs: their scores by the definitions, and those of LASER's mode ``score``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.arrays import Pairs
from miner.given import NO_SENTENCE, distinct_pairs, given_pairs, lines_of
from miner.knn.core.rescore import rescore, unit_rows
from miner.knn.exact import search_both
from miner.margin import MARGINS
from miner.mining import mine
from tests.miner.test_laser_compat import DIM, GOLDEN, read_pairs, read_side


def rate(x: np.ndarray, y: np.ndarray, *, k: int = 4, margin: str = "ratio") -> Pairs:
    """Row i of both as a pair."""
    rows = np.arange(len(x))
    cosine = rescore(unit_rows(x), unit_rows(y), rows[:, None], k=1).cosines[:, 0]
    return given_pairs(rows, rows, cosine, *search_both(x, y, k=k), margin=margin)


def slow_score(x: np.ndarray, y: np.ndarray, i: int, j: int, k: int, margin: str) -> float:
    cosines = x @ y.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))
    own, other = (
        sum(sorted(line)[-k:]) / min(k, len(line)) for line in (cosines[i], cosines[:, j])
    )
    cosine, around = cosines[i, j], (own + other) / 2
    return {
        "ratio": cosine / around,
        "distance": cosine - around,
        "absolute": cosine,
        "csls": 2 * cosine - own - other,
    }[margin]


@pytest.mark.parametrize("k", [1, 4, 60])
@pytest.mark.parametrize("margin", MARGINS)
def test_lines_by_the_definitions(margin: str, k: int) -> None:
    random = np.random.default_rng(1)
    x, y = random.standard_normal((50, 12)), random.standard_normal((50, 12))
    y[::3] += 2 * x[::3]
    if margin == "ratio":  # neighbourhoods that are not similar at all have no ratio
        x, y = x + 2, y + 2
    found = rate(x, y, k=k, margin=margin)
    assert found.source.tolist() == found.target.tolist() == list(range(50))
    for i in range(50):
        expected = slow_score(x, y, i, i, k, margin)
        assert found.score[i] == pytest.approx(expected, abs=1e-6)
    cosines = x @ y.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))
    for i in range(50):
        places = [int((line > line[i]).sum()) + 1 for line in (cosines[i], cosines[:, i])]
        near = [place <= k for place in places]
        assert found.direction[i] == near[0] + 2 * near[1]
        assert found.rank[i] == (places[0] if near[0] else places[1] if near[1] else 0)


def test_a_mined_pair_has_the_score_it_was_mined_with() -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((80, 16)).astype(np.float32)
    y = x + random.standard_normal((80, 16)).astype(np.float32)
    mined, rated = mine(x, y), rate(x, y)
    own = mined.source == mined.target
    assert own.sum() > 40
    for name in ("score", "cosine", "source_mean", "target_mean", "rank", "direction"):
        rows = mined.source[own]
        assert np.array_equal(getattr(mined, name)[own], getattr(rated, name)[rows]), name


@pytest.mark.parametrize("margin", ["absolute", "distance", "ratio"])
def test_the_scores_of_laser(margin: str) -> None:
    """LASER numbers its texts without repeats and its vectors with them; so does this test."""
    texts, x = read_side("src", unify=False)
    others = (GOLDEN / "tgt240.txt").read_text(encoding="utf-8").splitlines()
    y = np.fromfile(GOLDEN / "tgt240.f32", dtype="<f4").reshape(-1, DIM)
    own, other = (
        np.array([list(dict.fromkeys(side)).index(one) for one in side]) for side in (texts, others)
    )
    forward, backward = search_both(x, y, k=4)
    units = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y)]
    cosine = np.einsum("pd,pd->p", units[0][own], units[1][other])
    found = given_pairs(own, other, cosine, forward.take(own), backward.take(other), margin=margin)
    expected = read_pairs(f"score.{margin}.tsv")
    assert len(expected) == 240
    assert found.score.tolist() == pytest.approx([score for score, _, _ in expected], abs=2e-6)


ROWS = st.lists(st.tuples(*[st.integers(NO_SENTENCE, 4)] * 2), max_size=12)


@given(ROWS)
def test_different_pairs(lines: list[tuple[int, int]]) -> None:
    source, target = (np.array([line[side] for line in lines], dtype=np.int64) for side in (0, 1))
    found, whole = distinct_pairs(source, target)
    usable = [line for line in lines if NO_SENTENCE not in line]
    assert [tuple(pair[:2]) for pair in found.T.tolist()] == sorted(set(usable))
    assert [lines.index((own, other)) for own, other, _ in found.T.tolist()] == found[2].tolist()
    assert lines_of(found, *found[:2, ::-1]).tolist() == found[2, ::-1].tolist()
    assert whole == len(usable)
