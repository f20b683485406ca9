"""LASER's bucc.py: its own outputs, byte for byte, and its habits one by one."""

from pathlib import Path

import pytest

from eval.data.bucc import read_gold, read_sentences
from eval.metrics import laser_compat
from eval.scoring import _read_scored_texts

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "bucc_py"


def unique_ids(*rows: tuple[str, str]) -> dict[str, str]:
    return laser_compat.unique_ids([row[1] for row in rows], [row[0] for row in rows])


@pytest.fixture(scope="module")
def golden_scores() -> dict[tuple[str, str], float]:
    sides = (
        read_sentences(GOLDEN / f"texts.{side}", GOLDEN / f"ids.{side}") for side in ("de", "en")
    )
    ids = (laser_compat.unique_ids(side.texts, side.ids) for side in sides)
    return laser_compat.score_by_ids(_read_scored_texts(GOLDEN / "candidates.tsv"), *ids)


def as_lines(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def test_golden_optimised(golden_scores: dict[tuple[str, str], float]) -> None:
    gold = read_gold(GOLDEN / "gold")
    threshold = laser_compat.best_threshold(golden_scores, gold)
    score = laser_compat.measure(golden_scores, gold, threshold)
    assert (
        laser_compat.format_score(score, "best threshold") + "\n"
        == (GOLDEN / "expected.txt").read_text()
    )
    extracted = laser_compat.extract(golden_scores, threshold)
    assert as_lines(extracted) == (GOLDEN / "extracted.tsv").read_text()
    assert score.extracted == len(extracted)


def test_golden_at_a_given_threshold(golden_scores: dict[tuple[str, str], float]) -> None:
    extracted = laser_compat.extract(golden_scores, 1.10)
    assert as_lines(extracted) == (GOLDEN / "extracted.th1.10.tsv").read_text()


def test_a_repeated_sentence_has_no_id() -> None:
    side = unique_ids(("1", "a"), ("2", "b"), ("3", " a "), ("4", "a"))
    assert side == {"b": "2"}


def test_texts_are_compared_stripped() -> None:
    side = unique_ids(("1", " a\u3000"), ("2", "b  c"))
    scores = laser_compat.score_by_ids([(1.0, "a", "b  c "), (2.0, "a", "b c")], side, side)
    assert scores == {("1", "2"): 1.0}


def test_the_best_score_counts_at_the_place_of_the_first() -> None:
    side = unique_ids(("1", "a"), ("2", "b"))
    rows = [(1.0, "a", "a"), (1.5, "b", "b"), (2.0, "a", "a"), (1.7, "a", "a")]
    scores = laser_compat.score_by_ids(rows, side, side)
    assert list(scores.items()) == [(("1", "1"), 2.0), (("2", "2"), 1.5)]


def test_a_negative_score_is_kept() -> None:
    side = unique_ids(("1", "a"))
    assert laser_compat.score_by_ids([(-1.0, "a", "a")], side, side) == {("1", "1"): -1.0}


def test_extraction_keeps_scores_equal_to_the_threshold() -> None:
    scores = {("1", "1"): 1.0, ("2", "2"): 2.0, ("3", "3"): 0.9}
    assert laser_compat.extract(scores, 1.0) == [("1", "1"), ("2", "2")]


def test_threshold_is_halfway_to_the_next_score() -> None:
    scores = {("1", "1"): 3.0, ("2", "2"): 2.0, ("3", "x"): 1.0}
    assert laser_compat.best_threshold(scores, {("1", "1"), ("2", "2")}) == 1.5


def test_the_search_parts_a_tie_and_the_extraction_does_not() -> None:
    scores = {("1", "1"): 1.0, ("2", "x"): 1.0, ("3", "x"): 0.5}
    gold = {("1", "1")}
    assert laser_compat.best_threshold(scores, gold) == 1.0
    score = laser_compat.measure(scores, gold, 1.0)
    assert (score.extracted, score.precision, score.recall) == (2, 0.5, 1.0)


def test_the_last_candidate_gives_its_own_score() -> None:
    scores = {("1", "1"): 3.0, ("2", "2"): 2.0}
    assert laser_compat.best_threshold(scores, {("1", "1"), ("2", "2")}) == 2.0


def test_without_a_correct_candidate_the_threshold_is_zero() -> None:
    scores = {("1", "x"): 3.0, ("2", "x"): -1.0}
    gold = {("1", "1")}
    assert laser_compat.best_threshold(scores, gold) == 0
    score = laser_compat.measure(scores, gold, 0.0)
    assert (score.extracted, score.correct) == (1, 0)
    line = "- best threshold=0.000000: precision=0.00, recall=0.00, F1=0.00"
    assert laser_compat.format_score(score, "best threshold") == line
