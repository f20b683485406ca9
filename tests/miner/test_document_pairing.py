"""Pairs of made documents, against a table of all pairs."""

import numpy as np
import pytest

from miner import document_pairing
from miner.document_pairing import (
    SAME_NAME,
    DocumentsInMemory,
    mutual_share,
    pair_documents,
    pair_sides,
)
from miner.knn.core.rescore import unit_rows


def documents(rng, count, *, dim=32, noise=0.4):
    """Documents of 3 to 9 sentences on subjects of their own, and their translations."""
    source, target = [], []
    shift = rng.standard_normal(dim)  # what a language's vectors share
    for _ in range(count):
        subject = rng.standard_normal(dim)
        rows = subject + rng.standard_normal((rng.integers(3, 10), dim))
        source.append(unit_rows(rows.astype(np.float32)))
        other = rows[rng.random(len(rows)) > 0.1] if len(rows) > 3 else rows
        other = other + noise * rng.standard_normal(other.shape) + shift
        target.append(unit_rows(other.astype(np.float32)))
    return source, target


def own_parts(documents):
    means = np.stack([rows.astype(np.float64).mean(axis=0) for rows in documents])
    own = means - means.mean(axis=0)
    return own / np.linalg.norm(own, axis=1, keepdims=True)


def slow_pairs(source, target, threshold):
    cosines = own_parts(source) @ own_parts(target).T
    scored = []
    for p, own in enumerate(source):
        for q, other in enumerate(target):
            table = own @ other.T
            share = sum(
                2 * max(0.0, float(table[i, j])) / sum(table.shape)
                for i in range(len(own))
                for j in [int(table[i].argmax())]
                if table[:, j].argmax() == i
            )
            scored.append((-(float(cosines[p, q]) + share) / 2, p, q))
    kept = []
    for score, p, q in sorted(scored):
        if -score >= threshold and all(p != a and q != b for a, b in kept):
            kept.append((p, q))
    return kept


def test_translations_are_paired_and_others_left_alone():
    source, target = documents(np.random.default_rng(0), 40)
    shuffled = np.random.default_rng(1).permutation(40)[:30]
    found = pair_documents(source[5:], [target[i] for i in shuffled])
    pairs = {(p + 5, int(shuffled[q])) for p, q in zip(found.source, found.target, strict=True)}
    assert pairs == {(int(i), int(i)) for i in shuffled if i >= 5}
    assert (np.diff(found.scores) <= 0).all()


@pytest.mark.parametrize("threshold", [-1.0, 0.2])
def test_all_candidates_give_what_the_whole_table_does(threshold):
    source, target = documents(np.random.default_rng(2), 12, noise=2.0)
    found = pair_documents(source, target[:9], candidates=12, threshold=threshold)
    expected = slow_pairs(source, target[:9], threshold)
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == expected


def test_blocks_of_candidates_change_nothing(monkeypatch):
    source, target = documents(np.random.default_rng(4), 20)
    whole = pair_documents(source, target)
    monkeypatch.setattr(document_pairing, "BLOCK_ROWS", 9)
    cut = pair_documents(source, target)
    assert (cut.source == whole.source).all()
    assert (cut.target == whole.target).all()
    assert (cut.scores == whole.scores).all()


def test_names_decide_between_equals_and_not_against_the_text():
    source, target = documents(np.random.default_rng(5), 3)
    names = ["de/a", "de/b", "de/c"]
    twice = DocumentsInMemory([source[0], source[0], source[2]], names)
    found = pair_sides(twice, DocumentsInMemory([target[0], target[2]], ["en/b", "en/a"]))
    assert set(zip(found.source.tolist(), found.target.tolist(), strict=True)) == {(1, 0), (2, 1)}
    alone = pair_sides(
        DocumentsInMemory(source[:2], names[:2]), DocumentsInMemory(target[2:], ["en/a"])
    )
    assert len(alone) == 0
    plain = pair_documents(source, target).scores
    named = pair_sides(*(DocumentsInMemory(side, names) for side in (source, target))).scores
    assert named == pytest.approx(plain + SAME_NAME * (1 - plain))


def test_mutual_share():
    rows = np.eye(4, dtype=np.float32)
    assert mutual_share(rows, rows) == 1
    assert mutual_share(rows[:2], rows[2:]) == 0
    assert mutual_share(rows[:1], rows) == pytest.approx(2 / 5)


def test_one_document_and_none():
    source, target = documents(np.random.default_rng(3), 1)
    assert len(pair_documents(source, target)) == 1
    with pytest.raises(ValueError, match="has no documents"):
        pair_documents([], target)
    with pytest.raises(ValueError, match="a document has no sentences"):
        pair_documents([source[0], source[0][:0]], target)
    with pytest.raises(ValueError, match="differ in dimensions"):
        pair_documents([source[0], source[0][:, :3]], target)


def test_equal_documents_and_empty_vectors():
    rows = np.eye(3, dtype=np.float32)
    found = pair_documents([rows, rows], [rows, rows], threshold=-1.0)
    assert sorted(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [
        (0, 0),
        (1, 1),
    ]
    assert np.isfinite(found.scores).all()
    nothing = np.zeros((2, 3), dtype=np.float32)
    assert len(pair_documents([nothing], [rows])) == 0
