"""Alignment of made documents, against an exhaustive one."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.monotone import align as module
from miner.monotone.align import align
from miner.monotone.blocks import merged_blocks, text_blocks
from miner.monotone.path import COUNT_POWER, LENGTH_POWER, SMOOTHING, cheapest_path


def document(rng, beads, *, dim=24, noise=0.3):
    """Source and target blocks of which the beads of those sizes are translations."""
    sides = [], []
    for a, b in beads:
        parts = rng.standard_normal((max(a, b, 1), dim))
        for side, count in zip(sides, (a, b), strict=True):
            cuts = np.array_split(parts, count) if count else []
            side.extend((part.sum(axis=0), len(part)) for part in cuts)
    blocks = []
    for side in sides:
        sums = np.array([vector for vector, _ in side]).reshape(-1, dim)
        sums = sums + noise * rng.standard_normal(sums.shape)
        lengths = np.array([50.0 * size for _, size in side])
        blocks.append(merged_blocks(sums.astype(np.float32), lengths))
    return blocks


def sizes(alignment):
    return list(
        zip(np.diff(alignment.source).tolist(), np.diff(alignment.target).tolist(), strict=True)
    )


def slow_path(source, target, noises, ends, beads, gap, merge, weight):
    """The least cost over all beads and gaps everywhere, by recursion from the first sentence."""
    rows, columns = map(len, ends)
    opening, missing = gap
    gaps = [*((size, 0) for size in range(1, rows)), *((0, size) for size in range(1, columns))]
    best = {(0, 0): 0.0}
    for i, j in itertools.product(range(rows), range(columns)):
        for a, b in [*gaps, *beads]:
            if (i - a, j - b) not in best:
                continue
            length, other = ends[0][i] - ends[0][i - a], ends[1][j] - ends[1][j - b]
            if 0 in (a, b):
                sentences = [*np.diff(ends[0][i - a : i + 1]), *np.diff(ends[1][j - b : j + 1])]
                cost = opening + missing * sum(map(math.sqrt, sentences))
            else:
                cosine = float(source[a - 1, i - a] @ target[b - 1, j - b])
                noise = noises[0][a - 1, i - a] + noises[1][b - 1, j - b]
                unlike = 2 * (1 - min(cosine, 1)) / (noise + 1e-6)
                unlike += weight * abs(math.log((length + SMOOTHING) / (other + SMOOTHING)))
                cost = unlike * (a * b) ** COUNT_POWER * ((length + other) / 2) ** LENGTH_POWER
                cost += merge * (a + b - 2)
            best[i, j] = min(best.get((i, j), math.inf), best[i - a, j - b] + cost)
    return best[len(ends[0]) - 1, len(ends[1]) - 1]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from((0, 0.3, 1.2))
)
def test_the_path_is_the_cheapest(rows, columns, seed, opening):
    rng = np.random.default_rng(seed)
    sides = [
        merged_blocks(rng.standard_normal((count, 8), dtype=np.float32), rng.random(count) * 100)
        for count in (rows, columns)
    ]
    noises = [rng.random((5, count)).astype(np.float32) for count in (rows, columns)]
    ends = [np.concatenate([[0], np.cumsum(side.lengths / 50)]) for side in sides]
    beads = module._beads(5, 5)
    band = np.zeros(rows + 1, dtype=np.int64), np.full(rows + 1, columns + 1)
    vectors, gap = (sides[0].vectors, sides[1].vectors), (float(opening), 0.4)
    path, costs = cheapest_path(vectors, tuple(noises), tuple(ends), beads, gap, 0.1, 0.8, band)
    least = slow_path(sides[0].vectors, sides[1].vectors, noises, ends, beads, gap, 0.1, 0.8)
    assert costs.sum() == pytest.approx(least, rel=1e-5)
    assert path[-1].tolist() == [rows, columns]
    steps = np.diff(np.concatenate([[[0, 0]], path]), axis=0)
    possible = {(1, 0), (0, 1), *map(tuple, beads.tolist())}
    assert {tuple(step) for step in steps.tolist()} <= possible


def test_merged_split_and_missing_sentences_are_found():
    beads = [(1, 1), (1, 2), (1, 1), (2, 1), (1, 1), (1, 0), *[(1, 1)] * 9, (0, 1), (1, 3), (4, 1)]
    source, target = document(np.random.default_rng(1), beads)
    assert sizes(align(source, target)) == beads


def test_from_coarse_to_fine_gives_what_the_whole_table_does(monkeypatch):
    rng = np.random.default_rng(2)
    kinds = [(1, 1)] * 8 + [(1, 2), (2, 1), (1, 0), (0, 1)]
    beads = [kinds[k] for k in rng.integers(len(kinds), size=300)]
    beads[100:100] = [(0, 1)] * 60  # a part that one side alone has
    source, target = document(rng, beads)
    whole = align(source, target)
    monkeypatch.setattr(module, "FULL_CELLS", 1 << 10)
    fine = align(source, target)
    assert np.mean([bead in set(marks(whole)) for bead in marks(fine)]) > 0.98
    assert np.mean([bead in set(marks(whole)) for bead in gold_marks(beads)]) > 0.95


def foreign(kind, count, side):
    """Beads of translations with sentences that one side alone has among them, by ``kind``."""
    own = (1, 0) if side == 0 else (0, 1)
    size, extra = count
    at = {"start": [0], "middle": [size // 2], "end": [size]}.get(kind)
    places = at or np.random.default_rng(size).integers(0, size + 1, extra // 5).tolist()
    beads = []
    for place in range(size + 1):
        beads += [own] * (extra // len(places) * places.count(place))
        beads += [(1, 2) if place % 9 == 4 else (1, 1)] * (place < size)
    return beads


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kind", ["start", "middle", "end", "scattered"])
@pytest.mark.parametrize("count", [(10, 40), (30, 30), (130, 400)])
def test_what_one_side_alone_has_is_a_gap(count, kind, side):
    """Costs that grew with the root of a bead's sentences merged it with what has a translation."""
    beads = foreign(kind, count, side)
    source, target = document(np.random.default_rng(5), beads, dim=48, noise=0.5)
    found = set(marks(align(source, target)))
    gold = [mark for mark, bead in zip(gold_marks(beads), beads, strict=True) if all(bead)]
    assert np.mean([mark in found for mark in gold]) > 0.95
    merged = [mark for mark in found if mark[0] < mark[1] and mark[2] < mark[3]]
    assert np.mean([mark in set(gold) for mark in merged]) > 0.95


def test_what_either_side_alone_has_in_many_places():
    """Halved documents, whose every second sentence is foreign, showed no path to begin with."""
    rng = np.random.default_rng(7)
    beads = [(1, 1)] * 130 + [(1, 0)] * 400 + [(0, 1)] * 400
    rng.shuffle(beads)
    found = set(marks(align(*document(rng, beads, dim=48, noise=1.0))))
    gold = [mark for mark, bead in zip(gold_marks(beads), beads, strict=True) if all(bead)]
    assert np.mean([mark in found for mark in gold]) > 0.9


def test_a_merge_costs_less_where_there_are_more():
    def cost(*beads):
        ends = np.concatenate([[[0, 0]], np.cumsum(beads, axis=0)])
        path = module.Alignment(source=ends[:, 0], target=ends[:, 1], costs=np.zeros(len(beads)))
        return module._merge(path)

    plain, merged, gap = [(1, 1)], [(2, 1)], [(0, 1)]
    assert cost(*plain * 20) > cost(*plain * 18, *merged * 2) > cost(*plain * 10, *merged * 10)
    assert cost(*plain * 20) == cost(*plain * 20, *gap * 30)
    assert cost(*merged * 30) == 0


def test_a_long_document_with_a_part_that_the_other_lacks():
    """A table of this size is searched from coarse to fine."""
    beads = [(1, 1)] * 400 + [(0, 1)] * 900 + [(1, 1)] * 400
    found = set(marks(align(*document(np.random.default_rng(6), beads, noise=0.5))))
    gold = [mark for mark, bead in zip(gold_marks(beads), beads, strict=True) if all(bead)]
    assert np.mean([mark in found for mark in gold]) > 0.98


def marks(alignment):
    bounds = zip(
        alignment.source, alignment.source[1:], alignment.target, alignment.target[1:], strict=False
    )
    return [tuple(int(bound) for bound in bead) for bead in bounds]


def gold_marks(beads):
    ends = np.concatenate([[[0, 0]], np.cumsum(beads, axis=0)]).tolist()
    return [(a, c, b, d) for (a, b), (c, d) in itertools.pairwise(ends)]


def test_the_table_grows_with_the_sentences_and_not_with_their_square(monkeypatch):
    cells = []
    plain = module._band

    def counted(*args):
        low, high = plain(*args)
        cells.append(int((high - low).sum()))
        return low, high

    monkeypatch.setattr(module, "_band", counted)
    for count in (1000, 4000):
        align(*document(np.random.default_rng(3), [(1, 1)] * count, dim=8))
    assert cells[-1] <= 4000 * (4 * module.MARGIN + 6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 1), (1, 7), (2, 2)])
def test_few_sentences(shape):
    rng = np.random.default_rng(4)
    sides = [
        merged_blocks(rng.standard_normal((count, 8), dtype=np.float32), np.full(count, 30.0))
        for count in shape
    ]
    found = align(*sides)
    assert (found.source[-1], found.target[-1]) == shape
    assert (found.source[0], found.target[0]) == (0, 0)


def test_sentences_without_vectors_or_lengths():
    empty = merged_blocks(np.zeros((3, 8), dtype=np.float32), np.zeros(3))
    found = align(empty, empty)
    assert np.isfinite(found.costs).all()
    assert (found.source[-1], found.target[-1]) == (3, 3)


def test_what_cannot_be_aligned():
    some, none = (merged_blocks(np.ones((n, 8), np.float32), np.ones(n)) for n in (2, 0))
    wider = merged_blocks(np.ones((2, 9), np.float32), np.ones(2))
    with pytest.raises(ValueError, match="without sentences"):
        align(some, none)
    with pytest.raises(ValueError, match="8 and 9 dimensions"):
        align(some, wider)


def test_a_bag_encodes_each_sentence_once_and_others_each_block():
    calls = []
    letters = np.eye(128, dtype=np.float32)

    def encode(sentences, *, normalize):
        calls.append(list(sentences))
        sums = np.array(
            [letters[[ord(c) for c in text if c != " "]].sum(axis=0) for text in sentences]
        )
        return sums / np.linalg.norm(sums, axis=1, keepdims=True) if normalize else sums

    texts = ["ab", "c", "dda", "b"]
    bag = text_blocks(texts, encode, is_bag=True)
    assert calls == [texts]
    other = text_blocks(texts, encode, is_bag=False)
    assert [len(call) for call in calls[1:]] == [4, 3, 2, 1]
    np.testing.assert_allclose(bag.vectors, other.vectors, atol=1e-6)
    assert bag.lengths.tolist() == [2, 1, 3, 1]
    assert not bag.vectors[4].any()
