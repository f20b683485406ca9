"""The gradient of sums of rows against torch's own; a bag in training against one that encodes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch.nn import functional

from encoder import load_encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import Features
from encoder.checkpoint import WEIGHTS
from encoder.laser.networks import Layer, token_mask
from encoder.tokenizer import Tokenizer
from encoder.training.architectures import make_model
from encoder.training.architectures.bag import Bag, bag_sums
from encoder.training.architectures.network import Network
from encoder.training.data import LONGEST
from encoder.training.options import training_options
from tests.encoder.test_tokenizer import tokens_of


@pytest.mark.parametrize("sparse", [False, True])
@given(lists=st.lists(st.lists(st.integers(0, 6), max_size=9), max_size=6))
def test_sums_and_their_gradient(sparse: bool, lists: list[list[int]]) -> None:
    start = torch.from_numpy(np.random.default_rng(0).standard_normal((7, 5), dtype=np.float32))
    one, other = (torch.nn.Parameter(start.clone()) for _ in range(2))
    tokens = tokens_of(lists)
    ids, offsets = (torch.from_numpy(part).long() for part in (tokens.ids, tokens.offsets))
    whole = functional.embedding_bag(ids, other, offsets, mode="sum", include_last_offset=True)
    sums = [bag_sums(one, tokens, sparse=sparse), whole]
    torch.testing.assert_close(sums[0], sums[1])
    for result in sums:
        (result**3).sum().backward()
    assert one.grad is not None and one.grad.is_sparse == sparse
    if sparse:
        touched = sorted({row for rows in lists for row in rows})
        assert one.grad.coalesce().indices()[0].tolist() == touched
    torch.testing.assert_close(one.grad.to_dense(), other.grad, rtol=1e-4, atol=1e-4)


def test_a_bag_in_training_gives_what_it_gives_when_it_is_used(
    tokenizer: Tokenizer, sentences: list[str]
) -> None:
    bag = Bag(Features(tokenizer.pieces(), 50), 12)
    table = bag.table.detach().numpy()
    used = BagEncoder(name="x", tokenizer=tokenizer, table=table, ngram_rows=50)
    with torch.no_grad():
        sums = bag(tokenizer.encode(sentences)).numpy()
    np.testing.assert_allclose(sums, used.encode(sentences, normalize=False), rtol=1e-5, atol=1e-3)


@pytest.fixture
def spelled(tokenizer: Tokenizer) -> Network:
    options = training_options("bilstm", dim=8, ngram_rows=60)
    torch.manual_seed(0)
    network = make_model(options, Features(tokenizer.pieces(), 60))
    assert isinstance(network, Network)
    return network


def test_pieces_are_known_by_their_ngrams(tokenizer: Tokenizer, spelled: Network) -> None:
    """Of each piece alone, in slow words; the end has no spelling."""
    embeddings, pieces = spelled.network.embed_tokens, tokenizer.pieces()
    features = Features(pieces, 60)
    weight, ngrams, mixed = (
        embeddings.get_parameter(name).detach().numpy().astype(np.float64)
        for name in ("weight", "ngrams", "mixed.weight")
    )
    table = embeddings.fold().numpy()
    assert len(table) == len(pieces) + 1
    known = 0
    for piece in range(len(pieces)):
        (rows,) = features.split(tokens_of([[piece]]))[1].ids.reshape(1, -1)
        sums = np.zeros(weight.shape[1])
        for row in rows[rows >= len(pieces)]:
            sums += ngrams[row - len(pieces)]
            known += 1
        expected = (weight[piece] + np.tanh(mixed @ sums)) / 2
        np.testing.assert_allclose(table[piece], expected, atol=1e-5)
    assert known > len(pieces)
    np.testing.assert_allclose(table[-1], weight[-1] / 2, atol=1e-6)
    ids = torch.tensor([[3, 5], [5, len(pieces)]])
    np.testing.assert_allclose(embeddings(ids).detach(), table[ids], atol=1e-6)


def test_a_network_of_ngrams_is_saved_as_an_ordinary_one(
    tokenizer: Tokenizer, spelled: Network, sentences: list[str], tmp_path: Path
) -> None:
    sentences = [sentence for sentence in sentences if len(sentence) < LONGEST]  # training cuts
    with torch.no_grad():
        expected = spelled.eval()(tokenizer.encode(sentences)).numpy()
    encoder, save = spelled.export(tokenizer, sample=sentences, whitening=0.0)
    np.testing.assert_allclose(encoder.encode(sentences, normalize=False), expected, atol=1e-5)
    save(tmp_path / "out", facts={})
    loaded = load_encoder(str(tmp_path / "out"))
    np.testing.assert_allclose(loaded.encode(sentences, normalize=False), expected, atol=1e-5)
    assert not any("ngrams" in name for name in load_file(tmp_path / "out" / WEIGHTS))


def test_a_transformer_learns_nearly_the_same_in_bfloat16() -> None:
    torch.manual_seed(0)
    layer = Layer(32, 64, 8, before=True, activation=functional.relu)
    x = torch.randn(5, 9, 32)
    seen = token_mask(torch.tensor([9, 3, 7, 1, 5]), 9, x.device)[:, None, None]
    gradients = []
    for coarse in (False, True):
        layer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=coarse):
            (layer(x, seen).float() ** 2).mean().backward()
        gradients.append(torch.cat([one.grad.flatten() for one in layer.parameters()]))
    exact, rounded = gradients
    assert not torch.equal(exact, rounded)
    assert (exact - rounded).norm() < 0.03 * exact.norm()
