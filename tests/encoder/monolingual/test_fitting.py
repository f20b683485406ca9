"""A table whose sums are given vectors, against a dense solution."""

import numpy as np

from encoder.monolingual.sides import fit_table, scale_to, spelling_table
from encoder.rows import sum_rows
from encoder.tokenizer import Tokens


def test_the_table_is_that_of_ridge_regression() -> None:
    generator = np.random.default_rng(1)
    words = Tokens.of(generator.integers(12, size=size).tolist() for size in (3, 1, 4, 2, 5, 0, 2))
    wanted = generator.standard_normal((7, 5)).astype(np.float32)
    dense = np.zeros((7, 12))
    np.add.at(dense, (words.owners, words.ids), 1)
    expected = np.linalg.solve(dense.T @ dense + 0.5 * np.eye(12), dense.T @ wanted)
    found = fit_table(words, wanted, rows=12, penalty=0.5)
    assert np.allclose(found, expected, atol=1e-4)


def test_words_of_their_own_are_met_and_rows_of_no_word_are_zero() -> None:
    generator = np.random.default_rng(2)
    words = Tokens.of([[number, 40 + number % 7] for number in range(40)])
    wanted = generator.standard_normal((40, 8)).astype(np.float32)
    table = fit_table(words, wanted, rows=50, penalty=0.01)
    assert np.abs(sum_rows(table, words) - wanted).max() < 0.2
    assert not table[47:].any()


def test_weights_are_lengths() -> None:
    rows = scale_to(np.array([[3, 4], [0, 0], [0, 2]], np.float32), np.array([2, 1, 3], np.float32))
    assert np.allclose(rows, [[1.2, 1.6], [0, 0], [0, 3]])


def test_spelling_is_as_long_as_weights_and_rare_features_are_longer() -> None:
    words = [Tokens.of([[0, 1], [0, 2], [3]]), Tokens.of([[0, 2], [4]])]
    weights = [np.log([2, 20, 50]).astype(np.float32), np.log([4, 40]).astype(np.float32)]
    table = spelling_table(words, weights, rows=6, dim=4000, seed=1)
    shares = np.zeros(6)
    asked = there = 0.0
    for each, idf in zip(words, weights, strict=True):
        for word in range(len(each)):
            rows = each.ids[each.offsets[word] : each.offsets[word + 1]]
            share = np.exp(-float(idf[word]))
            shares[rows] += share / 2
            asked += share * float(idf[word]) ** 2
            there += share * float(np.sum(table[rows].sum(axis=0) ** 2))
    assert np.isclose(asked, there, rtol=1e-4)
    lengths = np.linalg.norm(table, axis=1) / -np.log(shares + 1e-6)
    assert np.allclose(lengths, lengths.mean(), rtol=0.05)
    again = spelling_table(words, weights, rows=6, dim=4000, seed=1)
    assert np.array_equal(table, again)
