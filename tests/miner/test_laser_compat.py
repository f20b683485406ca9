"""The pairs that LASER's mine_bitexts.py finds for the same vectors (tests/golden/mine_bitexts)."""

from pathlib import Path

import numpy as np
import pytest

from miner import mine

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "mine_bitexts"
DIM = 16


def read_side(side, *, unify):
    """Texts and their vectors; of a repeated text the first only, if ``unify``."""
    texts = (GOLDEN / f"{side}.txt").read_text(encoding="utf-8").splitlines()
    vectors = np.fromfile(GOLDEN / f"{side}.f32", dtype="<f4").reshape(len(texts), DIM)
    if unify:
        _, first = np.unique(texts, return_index=True)
        first.sort()
        return [texts[row] for row in first], vectors[first]
    return texts, vectors


def read_pairs(name):
    """(score, source text, target text) of each line."""
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(float(score), source, target) for score, source, target in rows]


def mined(margin, retrieval, *, unify, threshold):
    (sources, x), (targets, y) = read_side("src", unify=unify), read_side("tgt", unify=unify)
    found = mine(x, y, k=4, margin=margin, retrieval=retrieval, threshold=threshold)
    return [
        (score, sources[source], targets[target])
        for score, source, target in zip(
            found.score.tolist(), found.source.tolist(), found.target.tolist(), strict=True
        )
    ]


def scores_by_text(pairs):
    return {(source, target): score for score, source, target in pairs}


@pytest.mark.parametrize("unify", [True, False], ids=["unify", "all-lines"])
@pytest.mark.parametrize("retrieval", ["max", "intersect"])
@pytest.mark.parametrize("margin", ["absolute", "distance", "ratio"])
def test_the_same_pairs(margin, retrieval, unify):
    expected = read_pairs(f"mine.{margin}.{retrieval}{'.unify' if unify else ''}.tsv")
    # LASER's max keeps scores above 0 unless told otherwise; its intersect has no threshold.
    threshold = 0.0 if retrieval == "max" else -np.inf
    found = mined(margin, retrieval, unify=unify, threshold=threshold)
    assert len(expected) > 150
    # Where a sentence and its translation both occur twice (lines 49 and 50, 119 and 120), LASER
    # finds the pair once or twice as its float32 sums happen to be rounded: "absolute" once,
    # "ratio" and "distance" twice. So all lines are compared as a set of texts.
    assert scores_by_text(found).keys() == scores_by_text(expected).keys()
    if unify:
        assert len(found) == len(expected)
    for pair, score in scores_by_text(expected).items():
        assert scores_by_text(found)[pair] == pytest.approx(score, abs=1e-5), pair


def test_repeated_lines_that_translate_each_other_each_find_a_partner():
    found = [pair[1:] for pair in mined("absolute", "max", unify=False, threshold=0.0)]
    twice = {pair for pair in found if found.count(pair) == 2}
    assert len(twice) == 1


def test_the_same_pairs_above_a_threshold():
    expected = read_pairs("mine.ratio.max.unify.th1.2.tsv")
    found = mined("ratio", "max", unify=True, threshold=1.2)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected]
    for pair, other in zip(found, expected, strict=True):
        assert pair[0] == pytest.approx(other[0], abs=1e-5)


def test_the_threshold_is_strict():
    """A pair that scores exactly the threshold is not above it."""
    everything = mined("ratio", "max", unify=True, threshold=0.0)
    boundary = everything[20][0]
    found = mined("ratio", "max", unify=True, threshold=boundary)
    assert found == everything[:20]
