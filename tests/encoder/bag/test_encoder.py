"""The weighted bag against its definition, and the independence of every row from the others."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

import encoder.bag.encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import Features
from encoder.tokenizer import Tokenizer
from tests.encoder.test_tokenizer import lists_of

DIM = 24


@pytest.fixture(scope="module", params=[0, 97])
def ngram_rows(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def table(tokenizer: Tokenizer, ngram_rows: int) -> NDArray[np.float32]:
    generator = np.random.default_rng(5)
    return generator.standard_normal((len(tokenizer) + ngram_rows, DIM), dtype=np.float32)


@pytest.fixture
def bag(tokenizer: Tokenizer, table: NDArray[np.float32], ngram_rows: int) -> BagEncoder:
    return BagEncoder(name="test", tokenizer=tokenizer, table=table, ngram_rows=ngram_rows)


def rows_of(tokenizer: Tokenizer, ngram_rows: int, sentence: str) -> list[int]:
    numbers, words = Features(tokenizer.pieces(), ngram_rows).split(tokenizer.encode([sentence]))
    rows = lists_of(words)
    return [row for number in numbers.ids for row in rows[number]]


def oracle_bags(table: NDArray[np.float32], lists: list[list[int]]) -> NDArray[np.float64]:
    bags = np.zeros((len(lists), table.shape[1]))
    for row, tokens in enumerate(lists):
        for token in tokens:
            bags[row] += table[token]
    return bags


def test_encode_is_the_sum_at_unit_length(
    bag: BagEncoder,
    tokenizer: Tokenizer,
    table: NDArray[np.float32],
    ngram_rows: int,
    sentences: list[str],
) -> None:
    vectors = bag.encode(sentences)
    assert (vectors.dtype, vectors.shape, bag.dim) == (np.float32, (len(sentences), DIM), DIM)
    lists = [rows_of(tokenizer, ngram_rows, sentence) for sentence in sentences]
    assert any(row >= len(tokenizer) for rows in lists for row in rows) == (ngram_rows > 0)
    bags = oracle_bags(table, lists)
    empty = np.array([not tokens for tokens in lists])
    assert 0 < empty.sum() < 5
    assert not vectors[empty].any()
    norms = np.linalg.norm(bags[~empty], axis=1, keepdims=True)
    np.testing.assert_allclose(vectors[~empty], bags[~empty] / norms, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors[~empty], axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 2, 7, 88, 89, 90])
def test_chunks_do_not_show(
    bag: BagEncoder, sentences: list[str], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(sentences) == 89
    whole = bag.encode(sentences)
    monkeypatch.setattr(encoder.bag.encoder, "CHUNK_SENTENCES", chunk)
    assert bag.encode(sentences).tobytes() == whole.tobytes()


def test_order_and_company_do_not_show(bag: BagEncoder, sentences: list[str]) -> None:
    whole = bag.encode(sentences)
    order = np.random.default_rng(2).permutation(len(sentences))
    assert bag.encode([sentences[row] for row in order]).tobytes() == whole[order].tobytes()
    for row, sentence in enumerate(sentences):
        assert bag.encode([sentence]).tobytes() == whole[row].tobytes()


def test_no_sentences_at_all(bag: BagEncoder) -> None:
    vectors = bag.encode([])
    assert (vectors.shape, vectors.dtype) == ((0, DIM), np.float32)


def test_one_sentence_is_not_its_characters(bag: BagEncoder) -> None:
    assert bag.encode("abde").tobytes() == bag.encode(["abde"])[0].tobytes()
    assert bag.words("abde").offsets.tolist() == [0, 1]
    assert bag.words("abde").vectors.tobytes() == bag.words(["abde"]).vectors.tobytes()


def test_the_vectors_are_the_callers_own(bag: BagEncoder) -> None:
    first = bag.encode(["abde"])
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(bag.encode(["abde"]), kept)


@pytest.mark.parametrize(("rows", "ngram_rows"), [(-1, 0), (1, 0), (4, 5), (6, 5)])
def test_a_table_of_another_vocabulary_is_refused(
    tokenizer: Tokenizer, rows: int, ngram_rows: int
) -> None:
    table = np.zeros((len(tokenizer) + rows, DIM), dtype=np.float32)
    told = f"encoder odd: {300 + rows - ngram_rows} vectors for 300 pieces, so "
    with pytest.raises(ValueError, match=f"^{told}"):
        BagEncoder(name="odd", tokenizer=tokenizer, table=table, ngram_rows=ngram_rows)


def test_words_add_up_to_the_sentence(bag: BagEncoder, sentences: list[str]) -> None:
    words = bag.words(sentences)
    assert (words.vectors.dtype, words.weights.dtype) == (np.float32, np.float32)
    assert len(words.offsets) == len(sentences) + 1
    sums = np.zeros((len(sentences), DIM))
    of_sentence = np.repeat(np.arange(len(sentences)), np.diff(words.offsets))
    weighted = words.vectors * words.weights[:, None].astype(float)
    np.add.at(sums, of_sentence, weighted[words.ids])
    norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(sums / norms, bag.encode(sentences), atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(words.vectors, axis=1), 1, atol=1e-5)


def test_words_are_those_between_spaces(bag: BagEncoder, tokenizer: Tokenizer) -> None:
    words = bag.words(["", "abde  gihu\tabde", "abde"])
    assert words.offsets.tolist() == [0, 0, 3, 4]
    assert words.ids[0] == words.ids[2] == words.ids[3]
    assert len(words.vectors) == len(words.weights) == 2
    assert len(tokenizer.encode(["gihu"]).ids) > 1
    single = bag.encode(["gihu"])
    np.testing.assert_allclose(words.vectors[words.ids[1]], single[0], atol=1e-6)


def test_the_bundled_encoder_needs_no_torch_and_for_few_sentences_no_numba() -> None:
    code = """
import sys
from encoder import load_encoder, rows
bag = load_encoder("mini")
few = bag.encode(["The bridge is closed.", ""])
assert not {"torch", "numba", "pyarrow"} & sys.modules.keys()
rows.COMPILED_FROM = 0
assert few.tobytes() == bag.encode(["The bridge is closed.", ""]).tobytes()
assert len(bag.words(["The bridge is closed."]).weights) >= 4
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
