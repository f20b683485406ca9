import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.arrays import Direction, Neighbours, Pairs
from miner.choices import check_choice
from miner.margin import MARGINS
from miner.score_ranges import (
    RowNeighbours,
    best_pairs,
    merge_directions,
    merge_in_ranges,
    select_in_ranges,
    sort_pairs,
)
from miner.selection import RETRIEVALS, candidate_pairs, select
from tests.miner import oracle
from tests.miner.oracle import Edge
from tests.miner.strategies import two_sides

FIELDS = Edge._fields


def neighbours(table, k):
    ids, cosines = oracle.nearest(table, k)
    return Neighbours(ids=ids, cosines=cosines)


def candidates_of(table, *, k, margin="ratio", source_ids=None, target_ids=None):
    rows, columns = table.shape
    return candidate_pairs(
        neighbours(table, k),
        neighbours(table.T, k),
        source_ids=np.arange(rows) if source_ids is None else source_ids,
        target_ids=np.arange(columns) if target_ids is None else target_ids,
        margin=margin,
    )


def best_of_lists(forward, backward, *, source_ids, target_ids, margin="ratio"):
    """The pairs that may be chosen, and how many candidates there are."""
    sources = RowNeighbours(ids=source_ids, lists=forward, means=forward.means())
    targets = RowNeighbours(ids=target_ids, lists=backward, means=backward.means())
    (ours,) = best_pairs([sources], [targets], side=Direction.FORWARD, margin=margin)
    (theirs,) = best_pairs([targets], [sources], side=Direction.BACKWARD, margin=margin)
    return merge_directions(ours.pairs, theirs.pairs)[0], ours.candidates + theirs.candidates


def edges_of(pairs):
    return [
        Edge(*values)
        for values in zip(*(getattr(pairs, name).tolist() for name in FIELDS), strict=True)
    ]


def pairs_of(edges):
    """Pairs of (source, target, score, direction); what selection does not look at is made up."""
    sources, targets, scores, directions = np.array(edges, dtype=np.float64).reshape(-1, 4).T
    return Pairs(
        source=sources.astype(np.int64),
        target=targets.astype(np.int64),
        score=scores,
        cosine=np.arange(len(edges), dtype=np.float32),
        source_mean=np.zeros(len(edges)),
        target_mean=np.zeros(len(edges)),
        rank=np.ones(len(edges), dtype=np.int32),
        direction=directions.astype(np.int8),
    )


@st.composite
def scored_edges(draw):
    """Pairs of few sentences with few scores: most are tied."""
    sentence, score = st.integers(0, 6), st.sampled_from([-1.0, 0.0, 0.5, 0.75, 1.0])
    edges = draw(
        st.lists(
            st.tuples(sentence, sentence, score, st.integers(1, 3)),
            unique_by=lambda edge: edge[:2],
            max_size=30,
        )
    )
    return pairs_of(edges)


@pytest.mark.parametrize("margin", MARGINS)
@settings(max_examples=40)
@given(sides=two_sides(), k=st.integers(1, 5))
def test_candidates_equal_the_oracle(margin, sides, k):
    table = oracle.cosines(*sides)
    found = candidates_of(table, k=k, margin=margin)
    expected = oracle.candidates(table, k, margin)
    assert len(found) == len(expected)
    for name in FIELDS:
        values = np.array([getattr(edge, name) for edge in expected])
        if name in {"score", "source_mean", "target_mean"}:
            np.testing.assert_allclose(getattr(found, name), values, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(getattr(found, name), values)


@pytest.mark.parametrize("margin", MARGINS)
@settings(max_examples=40)
@given(sides=two_sides(), k=st.integers(1, 5), seed=st.integers(0, 9))
def test_the_best_of_lists_are_as_good_as_all(margin, sides, k, seed):
    table = oracle.cosines(*sides)
    forward, backward = neighbours(table, k), neighbours(table.T, k)
    gaps = np.random.default_rng(seed).integers(1, 5, (2, 20))
    ids = {
        name: own.cumsum()[: len(side)] for name, own, side in zip("st", gaps, sides, strict=True)
    }
    lists = [
        Neighbours(ids=ids[name][found.ids], cosines=found.cosines)
        for name, found in (("t", forward), ("s", backward))
    ]
    given = {"source_ids": ids["s"], "target_ids": ids["t"], "margin": margin}
    everything = candidate_pairs(*lists, **given)
    some, count = best_of_lists(*lists, **given)
    assert count == len(everything)
    assert set(edges_of(some)) <= set(edges_of(everything))
    for retrieval in RETRIEVALS:
        best, best_of_all = (select(pairs, retrieval=retrieval) for pairs in (some, everything))
        assert edges_of(best) == edges_of(best_of_all)


@settings(max_examples=40)
@given(
    sides=two_sides(),
    k=st.integers(1, 5),
    cuts=st.tuples(*[st.sets(st.integers(1, 13), max_size=3)] * 2),
    size=st.sampled_from([1, 2, 5, 1000]),
    threshold=st.sampled_from([-np.inf, 0.9, 1.0]),
)
def test_ranges_choose_what_one_choice_among_all_does(sides, k, cuts, size, threshold):
    table = oracle.cosines(*sides)
    lists = neighbours(table, k), neighbours(table.T, k)
    whole = candidate_pairs(
        *lists, source_ids=np.arange(len(sides[0])), target_ids=np.arange(len(sides[1]))
    )
    sources, targets = (
        [
            RowNeighbours(ids=ids, lists=found.take(ids), means=found.means()[ids])
            for ids in np.split(np.arange(len(found)), sorted(cut))
        ]
        for found, cut in zip(lists, cuts, strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        files, candidates = [], 0
        for side, own, others in (
            (Direction.FORWARD, sources, targets),
            (Direction.BACKWARD, targets, sources),
        ):
            for best in best_pairs(own, others, side=side):
                candidates += best.candidates
                files.append(sort_pairs(Path(folder) / f"{len(files)}.npy", best.pairs, best.side))
        for retrieval in RETRIEVALS:
            chosen = {"retrieval": retrieval, "threshold": threshold}
            parts = list(select_in_ranges(files, size=size, **chosen))
            found = [edge for part in parts for edge in edges_of(part)]
            assert found == edges_of(select(whole, **chosen))
    assert candidates == len(whole)


@given(pairs=scored_edges())
def test_max_is_what_rounds_of_mutually_best_pairs_come_to(pairs):
    edges = edges_of(pairs)
    first = {ties[0] for side in ("source", "target") for ties in oracle.best_of_each(edges, side)}
    ties = [
        {edge for ties in oracle.best_of_each(edges, side) for edge in ties}
        for side in ("source", "target")
    ]
    left, taken = first | (ties[0] & ties[1]), set()
    while left:
        best_of = {}
        for edge in sorted(left, key=oracle.best_first, reverse=True):
            best_of["source", edge.source] = best_of["target", edge.target] = edge
        mutual = {
            edge
            for edge in left
            if best_of["source", edge.source] == best_of["target", edge.target] == edge
        }
        taken |= mutual
        left = {
            edge
            for edge in left
            if all(edge.source != other.source and edge.target != other.target for other in mutual)
        }
    assert edges_of(select(pairs, retrieval="max")) == sorted(taken, key=oracle.best_first)


@given(pairs=scored_edges())
def test_many_are_taken_as_few_are(pairs):
    few = edges_of(select(pairs, retrieval="max"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("miner.selection.MIN_SIZE_TO_COMPILE", 0)
        assert edges_of(select(pairs, retrieval="max")) == few


def test_ranges_are_as_large_as_asked_for(tmp_path):
    ids = np.arange(1000)
    random = np.random.default_rng(0)
    lists = Neighbours(
        ids=random.permutation(1000)[:, None], cosines=random.random((1000, 1), dtype=np.float32)
    )
    part = RowNeighbours(ids=ids, lists=lists, means=np.ones(1000))
    (best,) = best_pairs([part], [part], side=Direction.FORWARD)
    files = [sort_pairs(tmp_path / "pairs.npy", best.pairs, best.side)]
    sizes = [len(part) for part in select_in_ranges(files, size=100, retrieval="forward")]
    assert sum(sizes) == 1000
    assert len(sizes) == 10
    assert max(sizes) <= 110


@given(
    pairs=scored_edges(),
    cut=st.integers(0, 20),
    size=st.sampled_from([1, 3, 1000]),
    threshold=st.sampled_from([-np.inf, 0.5, 0.75]),
)
def test_ranges_merge_what_is_in_several_files(pairs, cut, size, threshold):
    rows = np.arange(len(pairs))
    with tempfile.TemporaryDirectory() as folder:
        files = [
            sort_pairs(Path(folder) / f"{number}.npy", pairs.take(part), Direction.BOTH)
            for number, part in enumerate(np.split(rows, [min(cut, len(rows))]))
        ]
        parts = list(merge_in_ranges(files, size=size, threshold=threshold))
    found = [edge for part in parts for edge in edges_of(part)]
    kept = [edge for edge in edges_of(pairs) if edge.score > threshold]
    assert found == sorted(kept, key=oracle.best_first)


def test_what_is_known_of_a_pair():
    """Source 1 is in nobody's list but proposes target 0 itself, as its second."""
    table = np.array([[0.9, 0.5, 0.4], [0.3, 0.1, 0.2]], dtype=np.float32)
    found = candidates_of(table, k=1)
    assert found.source.tolist() == [0, 0, 0, 1]
    assert found.target.tolist() == [0, 1, 2, 0]
    assert found.direction.tolist() == [
        Direction.BOTH,
        Direction.BACKWARD,
        Direction.BACKWARD,
        Direction.FORWARD,
    ]
    assert found.rank.tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(found.score[3], 0.3 / ((0.3 + 0.9) / 2), rtol=1e-6)
    assert {name: getattr(found, name).dtype.name for name in FIELDS} == {
        "source": "int64",
        "target": "int64",
        "score": "float64",
        "cosine": "float32",
        "source_mean": "float64",
        "target_mean": "float64",
        "rank": "int32",
        "direction": "int8",
    }


@given(sides=two_sides(), k=st.integers(1, 3), data=st.data())
def test_ids_may_have_gaps(sides, k, data):
    """Where sentences were left out, ids are not positions."""
    table = oracle.cosines(*sides)
    gaps = st.integers(1, 2**40)
    ids = [np.cumsum([data.draw(gaps) for _ in side]) - 1 for side in sides]
    plain = candidates_of(table, k=k)
    forward, backward = neighbours(table, k), neighbours(table.T, k)
    moved = candidate_pairs(
        Neighbours(ids=ids[1][forward.ids], cosines=forward.cosines),
        Neighbours(ids=ids[0][backward.ids], cosines=backward.cosines),
        source_ids=ids[0],
        target_ids=ids[1],
    )
    np.testing.assert_array_equal(moved.source, ids[0][plain.source])
    np.testing.assert_array_equal(moved.target, ids[1][plain.target])
    for name in FIELDS[2:]:
        np.testing.assert_array_equal(getattr(moved, name), getattr(plain, name))


def test_no_neighbour_proposes_nothing():
    forward = Neighbours(
        ids=np.array([[1, -1], [-1, -1]]),
        cosines=np.array([[0.5, -np.inf], [-np.inf, -np.inf]], dtype=np.float32),
    )
    backward = Neighbours(
        ids=np.full((2, 2), -1), cosines=np.full((2, 2), -np.inf, dtype=np.float32)
    )
    found = candidate_pairs(
        forward, backward, source_ids=np.arange(2), target_ids=np.arange(2), margin="distance"
    )
    assert (found.source.tolist(), found.target.tolist()) == ([0], [1])
    assert found.score.tolist() == [0.25]
    some, count = best_of_lists(
        forward, backward, source_ids=np.arange(2), target_ids=np.arange(2), margin="distance"
    )
    assert (edges_of(some), count) == (edges_of(found), 1)


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@given(pairs=scored_edges(), threshold=st.sampled_from([-np.inf, 0.0, 0.5, 0.6, 1.0]))
def test_retrievals_equal_the_oracle(retrieval, pairs, threshold):
    chosen = select(pairs, retrieval=retrieval, threshold=threshold)
    assert edges_of(chosen) == oracle.select(edges_of(pairs), retrieval, threshold)


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@given(pairs=scored_edges(), seed=st.integers(0, 99))
def test_the_order_of_candidates_does_not_matter(retrieval, pairs, seed):
    shuffled = pairs.take(np.random.default_rng(seed).permutation(len(pairs)))
    chosen = edges_of(select(shuffled, retrieval=retrieval))
    assert chosen == edges_of(select(pairs, retrieval=retrieval))


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@given(pairs=scored_edges())
def test_what_every_retrieval_promises(retrieval, pairs):
    chosen = edges_of(select(pairs, retrieval=retrieval))
    assert chosen == sorted(chosen, key=oracle.best_first)
    assert set(chosen) <= set(edges_of(pairs))
    if retrieval != "backward":
        assert len({edge.source for edge in chosen}) == len(chosen)
    if retrieval != "forward":
        assert len({edge.target for edge in chosen}) == len(chosen)
    if retrieval == "intersect":
        assert all(edge.direction == Direction.BOTH for edge in chosen)


@given(pairs=scored_edges())
def test_intersect_lies_within_max_where_both_sides_propose_all(pairs):
    """Elsewhere not: a better pair that one side alone proposes may take a sentence away."""
    pairs = replace(pairs, direction=np.full(len(pairs), Direction.BOTH, dtype=np.int8))
    intersect = edges_of(select(pairs, retrieval="intersect"))
    assert set(intersect) <= set(edges_of(select(pairs, retrieval="max")))


def test_the_threshold_is_strict():
    pairs = pairs_of([(0, 0, 1.06, 3), (1, 1, np.nextafter(1.06, 2), 3)])
    assert select(pairs, threshold=1.06).source.tolist() == [1]


def test_max_is_greedy():
    """The best pair of all comes first even where another assignment has the larger sum."""
    pairs = pairs_of([(0, 0, 1.0, 3), (0, 1, 0.9, 2), (1, 0, 0.9, 1), (1, 1, 0.1, 0)])
    assert edges_of(select(pairs, retrieval="max"))[0][:2] == (0, 0)
    assert len(select(pairs, retrieval="max")) == 1


def test_max_takes_best_pairs_only():
    """Second choices are not proposed, though their sentences stay alone."""
    pairs = pairs_of([(0, 0, 1.0, 3), (1, 0, 0.9, 3), (1, 1, 0.5, 1), (0, 1, 0.8, 3)])
    assert [edge[:2] for edge in edges_of(select(pairs, retrieval="max"))] == [(0, 0)]


def test_repeated_sentences_each_find_a_partner():
    pairs = pairs_of([(x, y, 1.0, 3) for x in range(3) for y in range(4)])
    chosen = select(pairs, retrieval="max")
    assert edges_of(chosen) == sorted(edges_of(chosen), key=oracle.best_first)
    assert list(zip(chosen.source, chosen.target, strict=True)) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 3), (3, 0)])
def test_an_empty_side_gives_no_pairs(retrieval, rows, columns):
    table = np.zeros((rows, columns), dtype=np.float32)
    assert len(select(candidates_of(table, k=4), retrieval=retrieval)) == 0
    lists = neighbours(table, 4), neighbours(table.T, 4)
    ids = {"source_ids": np.arange(rows), "target_ids": np.arange(columns)}
    some, count = best_of_lists(*lists, **ids)
    assert (len(select(some, retrieval=retrieval)), count) == (0, 0)


def test_unknown_retrieval():
    message = "retrieval 'best' is unknown; choose one of max, intersect, forward, backward"
    with pytest.raises(ValueError, match=message):
        select(pairs_of([]), retrieval="best")
    with pytest.raises(ValueError, match=message):
        check_choice("retrieval", "best", RETRIEVALS)


def test_unknown_margin():
    with pytest.raises(ValueError, match="margin 'best' is unknown"):
        candidates_of(np.zeros((2, 2), dtype=np.float32), k=1, margin="best")


def test_equal_scores_of_repeated_sentences_are_equal_bits():
    """Ties are found by comparing scores, so they must not depend on where a row lies."""
    random = np.random.default_rng(0)
    table = random.uniform(-1, 1, (2000, 5)).astype(np.float32)
    table[1::2] = table[::2]
    found = candidates_of(table, k=5, margin="ratio")
    np.testing.assert_array_equal(
        found.score[found.source % 2 == 0], found.score[found.source % 2 == 1]
    )
