"""Trees against a walk of one pair through one tree at a time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from miner.judge import model as module
from miner.judge.features import (
    COLUMNS,
    CONTEXT,
    EXCHANGED,
    LANGUAGE,
    NEGATED,
    NUMBERS,
    SEEN,
)
from miner.judge.model import (
    BUNDLED,
    CONTEXT_WEIGHT,
    CORRECTIONS,
    GIVEN,
    GIVEN_CORRECTIONS,
    GIVEN_SHIFT,
    GIVEN_SLOPE,
    LEAF,
    Judge,
    load_judge,
)
from miner.judge.prior import SCORES, Probabilities

TREE = Judge(
    feature=np.array([0, 1, 0, 0, 0, 0], dtype=np.int32),
    threshold=np.array([0.5, -1, 0, 0, 0, 0], dtype=np.float32),
    missing_left=np.array([1, 0, 0, 0, 0, 0], dtype=np.bool_),
    left=np.array([1, 2, -1, -1, -1, -1], dtype=np.int32),
    right=np.array([4, 3, -1, -1, -1, -1], dtype=np.int32),
    value=np.array([1, 2, 5, 7, 11, 13], dtype=np.int32) * LEAF,
    roots=np.array([0, 5], dtype=np.int32),
    peaks=np.array([[-1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
)


def walk(judge: Judge, row: np.ndarray) -> float:
    total = 0
    for root in judge.roots:
        node = root
        while judge.left[node] >= 0:
            number = row[judge.feature[node]]
            goes_left = (
                judge.missing_left[node] if np.isnan(number) else number <= judge.threshold[node]
            )
            node = judge.left[node] if goes_left else judge.right[node]
        total += int(judge.value[node])
    lowest = SCORES[0] if judge.is_given else judge.reference_peaks[0].place
    floor = min(total, round(lowest * LEAF))
    corrections = GIVEN_CORRECTIONS if judge.is_given else CORRECTIONS
    for name, (start, slope) in corrections.items():
        change = (float(row[COLUMNS.index(name)]) - start) * slope
        total = max(floor, total + round(min(0.0, change) * LEAF)) if change < 0 else total
    if judge.is_given and not np.isnan(row[-1]):
        total += round(float(row[COLUMNS.index(CONTEXT)]) * CONTEXT_WEIGHT * LEAF)
    return total / LEAF


def test_a_tree_by_hand() -> None:
    rows = np.zeros((5, len(COLUMNS)), dtype=np.float32)
    rows[:, :2] = [[0.5, -1], [0.5, 0], [0.6, 0], [np.nan, np.nan], [np.nan, -2]]
    assert TREE.scores(rows).tolist() == [18, 20, 24, 20, 18]


@pytest.mark.parametrize(
    ("name", "harmless", "wrong"),
    [(LANGUAGE, 9, -0.5), (NUMBERS, 0, 1), (EXCHANGED, 3.4, 3.75), (NEGATED, 3.7, 3.875)],
)
def test_a_pair_in_another_language_or_with_other_facts_scores_less(
    name: str, harmless: float, wrong: float
) -> None:
    rows = np.zeros((5, len(COLUMNS)), dtype=np.float32)
    start, slope = CORRECTIONS[name]
    rows[:, COLUMNS.index(name)] = [0, harmless, np.nan, wrong, 100 * np.sign(slope) * -1]
    full, lowest = float(TREE.scores(rows[:1])[0]), float(TREE.peaks[0, 0])
    lowered = (wrong - start) * slope
    assert TREE.scores(rows).tolist() == [full] * 3 + [full + lowered, lowest]
    assert TREE.feature_contributions(rows[3])[name] == lowered < 0
    below = replace(TREE, value=TREE.value - 40 * LEAF)  # the usual wrong pairs
    assert len(set(below.scores(rows).tolist())) == 1


def random_rows(count: int) -> np.ndarray:
    random = np.random.default_rng(1)
    rows = random.uniform(-1, 3, (count, len(COLUMNS))).astype(np.float32)
    rows[random.random(rows.shape) < 0.1] = np.nan
    return rows


@pytest.mark.parametrize("path", [BUNDLED, GIVEN])
def test_a_bundled_judge_is_its_walk_through_trees(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, rows = load_judge(path), random_rows(60)
    expected = [walk(judge, row) for row in rows]
    assert judge.scores(rows).tolist() == expected
    monkeypatch.setattr("miner.judge.model.THREAD_PAIRS", 7)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert judge.scores(rows).tolist() == expected
    assert judge.scores(rows[:0]).tolist() == []


@pytest.mark.parametrize("path", [BUNDLED, GIVEN])
def test_reasons_add_up_to_the_score(path: Path) -> None:
    judge, rows = load_judge(path), random_rows(20)
    sums = [sum(judge.feature_contributions(row).values()) for row in rows]
    known = judge.value[judge.roots].sum() / LEAF
    np.testing.assert_allclose(judge.scores(rows), known + np.array(sums), atol=1e-6)


def test_a_judge_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "judge.safetensors"
    TREE.save(path, {"pairs": 3})
    again = load_judge(path)
    assert again.name == TREE.name != load_judge().name
    rows = np.zeros((1, len(COLUMNS)), dtype=np.float32)
    assert again.scores(rows) == TREE.scores(rows)
    load_judge(GIVEN).save(path.with_name("given"), {})
    assert load_judge(path.with_name("given")).learned == load_judge(GIVEN).learned == SEEN


def test_probabilities_of_given_pairs_follow_from_each_score() -> None:
    scores = np.concatenate([np.linspace(-5, -1, 200), np.linspace(1, 5, 200)])
    mined, given = load_judge(), load_judge(GIVEN)
    assert mined.probabilities([scores]) == Probabilities.fit(mined.reference_peaks, [scores])
    whole, half = given.probabilities([scores]), given.probabilities([scores[:100], scores[100:]])
    odds = np.log(whole.predict(scores) / (1 - whole.predict(scores)))
    expected = GIVEN_SLOPE * scores + GIVEN_SHIFT
    np.testing.assert_allclose(odds[odds < 9], expected[odds < 9], atol=0.01)
    assert whole == half
    assert whole.share == pytest.approx(float(whole.predict(scores).mean()), abs=0.01)
    assert given.probabilities([]).share == 0


def test_a_file_that_is_no_judge_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "judge.safetensors"
    with pytest.raises(ValueError, match="is missing or damaged; reinstall Adit"):
        load_judge(path)
    path.write_bytes(BUNDLED.read_bytes()[:1000])
    with pytest.raises(ValueError, match="is missing or damaged"):
        load_judge(path)
    other = tmp_path / "other.safetensors"
    save_file(load_file(BUNDLED), other, metadata={"features": '["length"]'})
    with pytest.raises(ValueError, match="was trained on the features of another version"):
        load_judge(other)


def test_a_file_does_not_depend_on_the_features_of_the_other_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "judge.safetensors"
    judge = load_judge()
    judge.save(path, {})
    monkeypatch.setattr(module, "COLUMNS", (*SEEN, "another", CONTEXT))
    moved = load_judge(path)
    is_context = judge.feature == COLUMNS.index(CONTEXT)
    assert is_context.any()
    np.testing.assert_array_equal(moved.feature, judge.feature + is_context)
