import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both
from miner.knn.faiss_index import (
    MAX_POINTS,
    TRAINING_BYTES,
    add_rows,
    cells_of,
    check_index,
    empty_index,
    search_index,
    set_breadth,
    train_index,
    training_points,
)
from miner.knn.method import parse_method


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
    return search_both(*sides, k=4)[0]


def built(base, text):
    """The index of ``text``, trained on all of ``base`` and filled with it."""
    spec = parse_method(text)
    index = empty_index(spec, base.shape[1])
    if training_points(index, len(base)):
        train_index(index, base, factory=spec.factory)
    add_rows(index, base, factory=spec.factory)
    set_breadth(index, spec)
    return index


KINDS = [
    *(
        "Flat",
        "IVF16,Flat",
        "HNSW16",
        "NSG16",
        "SQ8",
        "IVF4,SQ8",
        "PCA24,HNSW16",
        "PCA24,IVF4,Flat",
    ),
    *("PQ8x4", "IVF4,PQ16x4", "OPQ8,IVF4,PQ8x4fs", "HNSW8_PQ16x4", "IVF16_HNSW8,Flat"),
    *("IVF4,Flat,RFlat", "IVF4,PQ8x4,Refine(SQ8)", "RQ4x4"),
]


@pytest.mark.parametrize("text", KINDS)
def test_an_index_finds_most_and_the_library_prints_nothing(sides, exactly, text, capfd):
    check_index(text)
    source, target = sides
    found = search_index(built(target, text), source, count=16)
    assert found.ids.shape == found.cosines.shape == (600, 16)
    assert found.ids.dtype == np.int64
    assert (found.ids[:, :1] == exactly.ids[:, :1]).mean() > 0.3
    assert (found.ids == exactly.ids[:, :1]).any(axis=1).mean() > 0.6
    assert capfd.readouterr() == ("", "")


def test_flat_finds_everything(sides, exactly):
    source, target = sides
    found = search_index(built(target, "Flat"), source, count=4)
    np.testing.assert_array_equal(found.ids, exactly.ids)
    np.testing.assert_allclose(found.cosines, exactly.cosines, atol=1e-6)


def test_breadth_of_the_search_is_set(sides):
    source = sides[0]
    assert built(source, "IVF64,Flat").nprobe == 4
    assert built(source, "IVF4,Flat").nprobe == 1
    assert built(source, "HNSW8").hnsw.efSearch == 128
    outer = built(source, "PCA16,HNSW8")  # named: it owns what it holds
    assert faiss.downcast_index(outer.index).hnsw.efSearch == 128


def test_parameters_go_before_our_breadth(sides):
    source = sides[0]
    assert built(source, "IVF64,Flat:nprobe=9").nprobe == 9
    graph = built(source, "HNSW8:efSearch=33,efConstruction=21").hnsw
    assert (graph.efSearch, graph.efConstruction) == (33, 21)
    outer = built(source, "PCA16,IVF16,SQ8:nprobe=5")
    assert faiss.try_extract_index_ivf(outer).nprobe == 5
    assert built(source, "IVF4,Flat,RFlat:k_factor_rf=2").k_factor == 2


def test_what_the_index_does_not_find_is_masked(sides):
    """One cell of many is probed, and it holds fewer rows than are asked for."""
    source, target = sides
    found = search_index(built(target[:40], "IVF16,Flat"), source, count=8)
    missing = found.ids == -1
    assert missing.any()
    assert not missing[:, 0].all()
    assert (found.cosines[missing] == -np.inf).all()
    assert np.isfinite(found.cosines[~missing]).all()


@pytest.mark.parametrize(
    "text", ["IVF1024,Flat", "HNSW32", "IVF64,PQ48", "OPQ16,PQ512", "OPQ64,IVF65536,PQ64", "SQ8"]
)
def test_indexes_that_some_vectors_suit(text):
    check_index(text)


@pytest.mark.parametrize(
    "text", ["junk", "", "IVF,Flat", "IVF-3,Flat", "HNSW0", "IVF0,Flat", "IVF00,Flat", "LSH"]
)
def test_factory_strings_that_nothing_suits(text):
    with pytest.raises(ValueError, match=f"^--index {text!r}: is unknown; use exact"):
        check_index(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("IVF64,Flat:nprobe", "nprobe"),
        ("IVF64,Flat:nprobe=", "nprobe="),
        ("IVF64,Flat:nprobe=0", "nprobe=0"),
        ("IVF64,Flat:nprobe=-1", "nprobe=-1"),
        ("IVF64,Flat:nprobe=1e9", "nprobe=1e9"),
        ("IVF64,Flat:nprobe=2147483648", "nprobe=2147483648"),
        ("IVF64,Flat:nprobe=4,efsearch=8", "efsearch=8"),
        ("IVF64,Flat:efSearch=8", "efSearch=8"),
        ("HNSW32:nprobe=8", "nprobe=8"),
        ("PQ8:ht=8", "ht=8"),
        ("Flat:nprobe=8", "nprobe=8"),
        ("IVF64,Flat:", ""),
        ("IVF64,Flat:nprobe=4,", ""),
        ("IVF64,Flat:nprobe=4:nprobe=5", "nprobe=4:nprobe=5"),
    ],
)
def test_parameters_that_an_index_does_not_have(text, named):
    with pytest.raises(
        ValueError, match=f"^--index {text!r}: {named!r} is not a parameter"
    ) as caught:
        check_index(text)
    assert "\n" not in str(caught.value)


PIECES = ["IVF", "HNSW", "PQ", "Flat", "4", "0", ",", "_", "(", ")", ":", "nprobe", "=", "-", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@settings(max_examples=60)
def test_any_text_is_an_index_or_a_value_error(text):
    try:
        check_index(text)
    except ValueError as error:
        assert repr(text.partition(":")[0])[1:-1] in str(error)
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        ("IVF64,Flat", 20, "cannot be trained on 20 sentences, fewer than the 64 centroids of its"),
        ("PQ8", 20, "cannot be trained on 20 sentences, fewer than the 256 centroids"),
        ("IVF16_HNSW8,PQ4x5", 31, "cannot be trained on 31 sentences, fewer than the 32 centroids"),
        ("PCA4,RQ2x5", 20, "cannot be trained on 20 sentences .*training points"),
        ("PQ48", 600, "cannot contain vectors of 32 dimensions .*multiple of the number"),
        ("PCA64,Flat", 600, "cannot .* 600 sentences|32 dimensions"),
        ("IDMap,Flat", 600, "cannot be filled with 600 sentences .*add_with_ids"),
    ],
)
def test_an_index_that_cannot_be_built(sides, text, rows, message):
    factory = text.partition(":")[0]
    with pytest.raises(ValueError, match=rf"^--index '{factory}': {message}") as caught:
        built(sides[0][:rows], text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("or --index exact")


def test_how_many_vectors_train_an_index():
    def points(text, rows, dim=64):
        return training_points(empty_index(parse_method(text), dim), rows)

    assert points("Flat", 10**9) == points("HNSW32", 10**9) == 0
    assert points("IVF4096,Flat", 10**9) == MAX_POINTS * 4096
    assert points("IVF4096,Flat", 5000) == 5000
    assert points("IVF16,PQ8", 10**9) == MAX_POINTS * 256
    assert points("SQ8", 10**9) == MAX_POINTS * 256
    # Memory is bounded, but not below what FAISS advises as the least.
    assert points("IVF65536,Flat", 10**9, dim=384) == TRAINING_BYTES // (4 * 384)
    assert points("IVF65536,Flat", 10**9, dim=1024) == 39 * 65536


def test_the_cells_of_nested_indexes():
    assert cells_of(empty_index(parse_method("OPQ8,IVF1024,PQ8"), 64)) == 1024
    assert cells_of(empty_index(parse_method("HNSW8_PQ8"), 64)) == 256
    assert cells_of(empty_index(parse_method("PCA8,IVF32,Flat,RFlat"), 64)) == 32
    assert cells_of(empty_index(parse_method("PQ8x12"), 64)) == 4096
    assert cells_of(empty_index(parse_method("HNSW8"), 64)) == 0
