"""Batches of equal length, side by side in threads: every sentence once, errors told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from encoder import network
from encoder.network import NetworkEncoder, embed_tokens, length_batches
from encoder.tokenizer import Tokens


def tokens_of(lengths: list[int]) -> Tokens:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return Tokens(ids=np.arange(offsets[-1], dtype=np.int32), offsets=offsets)


class Sums:
    """A network whose vectors are the sum and the number of the ids."""

    dim = 2
    device = torch.device("cpu")
    precision = "float32"

    def __init__(self, *, ragged: bool = False) -> None:
        self.ragged = ragged

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        there = ids >= 0
        assert self.ragged or there.all()
        counts = there.sum(dim=1)
        assert counts.tolist() == sorted(counts.tolist(), reverse=True)
        return torch.stack([(ids * there).sum(dim=1), counts], dim=1)


class Letters:
    """A tokeniser of letters, and the end; it remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, sentences: list[str]) -> Tokens:
        self.seen += sentences
        tokens = tokens_of([len(sentence) + 1 for sentence in sentences])
        ids = [ord(letter) for sentence in sentences for letter in sentence + "\n"]
        return Tokens(ids=np.array(ids, dtype=np.int32), offsets=tokens.offsets)

    def for_language(self, language: str | None) -> Letters:
        return self


@given(st.lists(st.integers(1, 40)), st.integers(1, 100), st.booleans())
def test_batches_have_every_sentence_once(lengths: list[int], size: int, ragged: bool) -> None:
    batches = list(length_batches(np.array(lengths, dtype=np.int64), size, ragged=ragged))
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        assert ragged or len({lengths[row] for row in rows}) == 1
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= size


@given(st.lists(st.integers(1, 40), min_size=1), st.booleans())
def test_vectors_come_to_their_sentences(lengths: list[int], ragged: bool) -> None:
    tokens = tokens_of(lengths)
    vectors = embed_tokens(Sums(ragged=ragged), tokens)
    sums = np.add.reduceat(tokens.ids, tokens.offsets[:-1])
    np.testing.assert_array_equal(vectors.numpy(), np.stack([sums, lengths], axis=1))


def test_equal_sentences_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "CHUNK_SENTENCES", 2)
    tokenizer = Letters()
    encoder = NetworkEncoder(name="x", tokenizer=tokenizer, network=Sums())
    sentences = ["ab", "c", "ab", "", "def", "c"]
    vectors = encoder.encode(sentences, normalize=False)
    assert tokenizer.seen == ["ab", "c", "", "def"]
    assert vectors[:, 1].tolist() == [3, 2, 3, 1, 4, 2]
    assert vectors[:, 0].tolist() == [sum(map(ord, line)) + 10 for line in sentences]
    assert encoder.for_language("de") is encoder


def test_an_error_in_a_thread_is_raised_and_threads_are_given_back() -> None:
    class Broken(Sums):
        def embed(self, ids: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no memory")

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(RuntimeError, match="no memory"):
            embed_tokens(Broken(), tokens_of([3, 4, 5]))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
