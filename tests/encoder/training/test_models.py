"""The gradient of sums of rows against torch's own; a bag in training against one that encodes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from encoder.bag import BagEncoder
from encoder.features import Features
from encoder.tokenizer import Tokenizer
from encoder.training.architectures.bag import Bag, bag_sums
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
