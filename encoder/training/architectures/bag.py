"""The weighted bag in training, see ``encoder.bag.encoder``."""

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

Context = Any  # of an autograd function

NGRAMS_AT_FIRST = 0.3  # length of n-grams' vectors beside those of pieces, as a word has many


class Bag(Model):
    """The weighted bag.

    The gradient of its table is sparse: a batch touches some of its rows, and a step costs
    O(touched x D) instead of O(rows x D).
    """

    def __init__(self, features: Features, dim: int) -> None:
        super().__init__()
        table = torch.randn(len(features), dim) / math.sqrt(dim)
        table[features.pieces :] *= NGRAMS_AT_FIRST
        self.table = nn.Parameter(table)
        self._features = features

    def forward(self, tokens: Tokens) -> Tensor:
        """Sum the rows of each sentence's words: (S, D)."""
        sentences, words = self._features.split(tokens)
        return bag_sums(bag_sums(self.table, words, sparse=True), sentences, sparse=False)

    def begin_with(self, encoder: Encoder) -> None:
        """Take the rows of a bag that has as many of them, for the same features."""
        if not isinstance(encoder, BagEncoder) or encoder.scheme != SCHEME:
            raise ValueError(
                "--start: a bag can only start from a bag that this version's 'adit train' wrote"
            )
        rows = encoder.rows()
        if rows.shape != self.table.shape:
            found, wanted = ("{} rows of {}".format(*one.shape) for one in (rows, self.table))
            raise ValueError(
                f"--start: the base encoder has {found} parameters, and the new encoder {wanted}; "
                "pass the base encoder's --dim and --ngram-rows"
            )
        with torch.no_grad():
            self.table.copy_(torch.from_numpy(rows))

    def drop(self, tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
        """Leave out words with probability ``rate``, for a word without a piece is spelt wrong."""
        return self._features.drop_words(tokens, rate, generator)

    def finished(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the encoder, partly whitened by ``sample``, and what saves it."""
        self.eval()
        rows = self._features.ngram_rows
        encoder = partial(BagEncoder, name="training", tokenizer=tokenizer, ngram_rows=rows)
        table = self.table.detach().cpu().numpy()
        if whitening:
            table = partly_whitened(table, encoder(table=table).encode(sample), power=whitening)
        save = partial(save_encoder, table=table, ngram_rows=rows, tokenizer_model=tokenizer.model)
        return encoder(table=table), save


def bag_sums(table: Tensor, tokens: Tokens, *, sparse: bool) -> Tensor:
    """Sum rows of float32 (V, D), with a sparse gradient if asked for."""
    parts = (torch.from_numpy(one.astype(np.int32)) for one in (tokens.ids, tokens.offsets))
    return _Sums.apply(table, *(part.to(table.device) for part in parts), sparse)


class _Sums(torch.autograd.Function):
    """Sums of rows, whose gradient is sums of rows, too.

    torch's own gradient adds to the table token by token, in places far apart; here the tokens
    are sorted by row, and each row fetches what it is due: 4 times as fast.
    """

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
            found = torch.sparse_coo_tensor(
                touched[None], values, shape, is_coalesced=True, check_invariants=False
            )
        else:
            found = gradient.new_zeros(shape).index_copy_(0, touched.long(), values)
        return found, None, None, None


def _sums(table: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
    return functional.embedding_bag(ids, table, offsets, mode="sum", include_last_offset=True)


def partly_whitened(table: Matrix, vectors: Matrix, *, power: float) -> Matrix:
    """Multiply ``table`` (V, D) by the covariance of ``vectors`` to the power of ``-power / 2``.

    Sentence vectors (S, D), which the table gives, spread most along what is common to a kind of
    text, which says little of whether two sentences translate each other: these directions come to
    count for less. Full whitening (power 1; Su et al. 2021, "Whitening Sentence Representations")
    makes all directions vary alike; power 0 changes nothing.
    """
    covariance = np.cov(vectors, rowvar=False, dtype=np.float64)
    variances, directions = np.linalg.eigh(covariance)
    variances = np.maximum(variances, variances[-1] * 1e-6)  # few sentences leave some at zero
    scales = (variances / variances.mean()) ** (-power / 2)
    return np.asarray(table @ ((directions * scales) @ directions.T), dtype=np.float32)
