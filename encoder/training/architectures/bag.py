"""The weighted bag (``encoder.bag.encoder``) in training."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from encoder import Encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import SCHEME, Features
from encoder.checkpoint import save_encoder
from encoder.rows import Matrix
from encoder.tokenizer import Tokenizer, Tokens
from encoder.training.architectures.model import Model, Trained

Context = Any  # the context of an autograd function

NGRAM_LENGTH = 0.3  # initial length of an n-gram's vector, relative to a piece's


class Bag(Model):
    """A bag in training, whose table has random rows of ``features`` at first."""

    def __init__(self, features: Features, dim: int) -> None:
        super().__init__()
        table = torch.randn(len(features), dim) / math.sqrt(dim)
        table[features.pieces :] *= NGRAM_LENGTH
        self.table = nn.Parameter(table)
        self._features = features

    def forward(self, tokens: Tokens) -> Tensor:
        """Embed S sentences of pieces as sums of table rows, float32 (S, D)."""
        sentences, words = self._features.split(tokens)
        return bag_sums(bag_sums(self.table, words, sparse=True), sentences, sparse=False)

    def start_from(self, encoder: Encoder) -> None:
        """Copy the table of another bag, which must have the same pieces.

        Raises:
            ValueError: The encoder is not a bag, or has another version or shape.
        """
        if not isinstance(encoder, BagEncoder) or encoder.scheme != SCHEME:
            raise ValueError(
                f"--start: {encoder.name} is not a bag that 'adit train' of this version wrote; "
                "pass such an encoder, or, for a network, its own --architecture"
            )
        rows = encoder.rows()
        if rows.shape != self.table.shape:
            count, dim = rows.shape
            raise ValueError(
                f"--start: {encoder.name} has other dimensions or n-gram rows than this training; "
                f"pass --dim {dim} --ngram-rows {count - self._features.pieces}"
            )
        with torch.no_grad():
            self.table.copy_(torch.from_numpy(rows))

    def drop(self, tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
        """Return sentences of pieces, each word removed with probability ``rate``."""
        return self._features.drop_words(tokens, rate, generator)

    def export(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the encoder and a function to save it (``Model.export``)."""
        self.eval()
        rows = self._features.ngram_rows
        encoder = partial(BagEncoder, name="training", tokenizer=tokenizer, ngram_rows=rows)
        table = self.table.detach().cpu().numpy()
        if whitening:
            table = partly_whiten(table, encoder(table=table).encode(sample), power=whitening)
        save = partial(save_encoder, table=table, ngram_rows=rows, tokenizer_model=tokenizer.model)
        return encoder(table=table), save


def bag_sums(table: Tensor, tokens: Tokens, *, sparse: bool) -> Tensor:
    """Sum the table rows in each of S lists of row numbers, with a gradient.

    ``table`` is float32 (V, D), the sums (S, D). ``sparse`` makes the table's gradient sparse.
    """
    parts = (torch.from_numpy(array.astype(np.int32)) for array in (tokens.ids, tokens.offsets))
    return _Sums.apply(table, *(part.to(table.device) for part in parts), sparse)


class _Sums(torch.autograd.Function):
    # Tokens are sorted by row, and each row sums its gradients, 4 times as fast as in torch, which
    # adds to the table token by token, at distant places.

    @staticmethod
    def forward(ctx: Context, table: Tensor, ids: Tensor, offsets: Tensor, sparse: bool) -> Tensor:
        ctx.save_for_backward(ids, offsets)
        ctx.rows, ctx.sparse = len(table), sparse
        return _sums(table, ids, offsets)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        ids, offsets = ctx.saved_tensors
        owners = torch.repeat_interleave(offsets.diff())
        rows, order = torch.sort(ids, stable=True)
        touched, counts = torch.unique_consecutive(rows, return_counts=True)
        ends = functional.pad(counts.cumsum(0), (1, 0))
        values = _sums(gradient.contiguous(), owners[order].int(), ends.int())
        shape = (ctx.rows, gradient.shape[1])
        if ctx.sparse:
            table_gradient = torch.sparse_coo_tensor(
                touched[None], values, shape, is_coalesced=True, check_invariants=False
            )
        else:
            table_gradient = gradient.new_zeros(shape).index_copy_(0, touched.long(), values)
        return table_gradient, None, None, None


def _sums(table: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
    return functional.embedding_bag(ids, table, offsets, mode="sum", include_last_offset=True)


def partly_whiten(table: Matrix, vectors: Matrix, *, power: float) -> Matrix:
    """Reduce common directions of sentence vectors in a table.

    The covariance of ``vectors`` (S, D), not all equal, is scaled to mean variance 1. The result is
    ``table`` (V, D) times the covariance to the power ``-power / 2``, float32. With power 1, all
    directions vary equally (Su et al. 2021, "Whitening Sentence Representations").
    """
    covariance = np.atleast_2d(np.cov(vectors, rowvar=False, dtype=np.float64))
    variances, directions = np.linalg.eigh(covariance)
    variances = np.maximum(variances, variances[-1] * 1e-6)  # not 0, with few sentences
    scales = (variances / variances.mean()) ** (-power / 2)
    return np.asarray(table @ ((directions * scales) @ directions.T), dtype=np.float32)
