import faiss
import numpy as np
import pytest

from miner.knn.exact import search_both
from miner.knn.faiss_index import build_index, check_factory, search_index, search_index_both
from miner.knn.rescore import unit_rows


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """FAISS's threads spin: on a busy machine, small work takes longer with more of them."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


@pytest.fixture(scope="module")
def sides():
    """600 sentences and noisy copies of them."""
    random = np.random.default_rng(0)
    source = random.standard_normal((600, 32))
    return unit_rows(source), unit_rows(source[::-1] + 0.3 * random.standard_normal((600, 32)))


@pytest.fixture(scope="module")
def exactly(sides):
    return search_both(*sides, k=4)


def recall(found, expected):
    hits = [np.isin(row, best).mean() for row, best in zip(found.ids, expected.ids, strict=True)]
    return float(np.mean(hits))


def test_flat_is_exact(sides, exactly):
    for found, expected in zip(
        search_index_both(*sides, factory="Flat", k=4), exactly, strict=True
    ):
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.cosines, expected.cosines)


@pytest.mark.parametrize(
    "factory",
    ["IVF16,Flat", "HNSW16", "SQ8", "IVF4,SQ8", "PCA24,HNSW16", "PCA24,IVF4,Flat"],
)
def test_an_index_finds_most_and_scores_exactly(sides, exactly, factory):
    source, target = sides
    for found, expected in zip(
        search_index_both(source, target, factory=factory, k=4), exactly, strict=True
    ):
        assert found.ids.shape == expected.ids.shape
        assert recall(found, expected) > 0.3
        # What it did find, it knows as well as the exact search.
        best = found.ids[:, 0] == expected.ids[:, 0]
        assert best.mean() > 0.5
        np.testing.assert_array_equal(found.cosines[best, 0], expected.cosines[best, 0])
    assert recall(found, expected) < 1 or factory in {"HNSW16", "SQ8"}


def test_breadth_of_the_search_is_set():
    base = unit_rows(np.random.default_rng(1).standard_normal((700, 32)))
    assert build_index(base, "IVF64,Flat").nprobe == 4
    assert build_index(base, "IVF4,Flat").nprobe == 1
    assert build_index(base, "HNSW8").hnsw.efSearch == 128
    outer = build_index(base, "PCA16,HNSW8")  # named: it owns what it holds
    assert faiss.downcast_index(outer.index).hnsw.efSearch == 128


def test_what_the_index_does_not_find_is_masked(sides):
    """One cell of many is probed, and it holds fewer than k rows."""
    source, target = sides
    found = search_index(source, target[:40], factory="IVF16,Flat", k=8)
    missing = found.ids == -1
    assert missing.any()
    assert not missing[:, 0].all()
    assert (found.cosines[missing] == -np.inf).all()
    assert np.isfinite(found.cosines[~missing]).all()
    assert np.isfinite(found.means()).all()
    assert (np.diff(missing.astype(int), axis=1) >= 0).all(), "the missing come last"


def test_k_is_clipped_to_the_other_side(sides):
    source, target = sides
    forward, backward = search_index_both(source[:3], target[:5], factory="HNSW8", k=4)
    assert forward.ids.shape == (3, 4)
    assert backward.ids.shape == (5, 3)


@pytest.mark.parametrize("factory", ["Flat", "IVF16,Flat"])
def test_an_empty_side(sides, factory):
    source, target = sides
    forward, backward = search_index_both(source[:0], target[:50], factory=factory, k=4)
    assert forward.ids.shape == (0, 4)
    assert backward.ids.shape == (50, 0)


@pytest.mark.parametrize("factory", ["IVF1024,Flat", "HNSW32", "IVF64,PQ48", "OPQ16,PQ512", "SQ8"])
def test_factory_strings_that_some_vectors_suit(factory):
    check_factory(factory)


@pytest.mark.parametrize(
    "factory", ["junk", "", "IVF,Flat", "IVF-3,Flat", "HNSW0", "IVF0,Flat", "IVF00,Flat", "LSH"]
)
def test_factory_strings_that_nothing_suits(factory):
    with pytest.raises(ValueError, match=f"^index {factory!r} is neither 'exact' nor"):
        check_factory(factory)


@pytest.mark.parametrize(
    ("factory", "rows", "reason"),
    [
        ("IVF64,Flat", 20, "20 sentences of 32 dimensions .*training points"),
        ("PQ8", 20, "20 sentences"),
        ("PQ48", 600, "32 dimensions .*multiple of the number of subquantizers"),
        ("PCA64,Flat", 600, "32 dimensions"),
        ("IDMap,Flat", 600, "add_with_ids"),
    ],
)
def test_an_index_that_cannot_be_built(sides, factory, rows, reason):
    source, target = sides
    message = rf"^index '{factory}' cannot be trained on .*{reason}.*; choose fewer cells"
    with pytest.raises(ValueError, match=message) as caught:
        search_index_both(source, target[:rows], factory=factory, k=4)
    assert "\n" not in str(caught.value)


def test_the_checks_of_every_search(sides):
    source, target = sides
    with pytest.raises(ValueError, match=r"^k is 0;"):
        search_index(source, target, factory="Flat", k=0)
    with pytest.raises(ValueError, match="32 dimensions, target vectors 16"):
        search_index(source, target[:, :16].copy(), factory="Flat", k=1)
