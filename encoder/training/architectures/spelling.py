"""Pieces known by their spelling, too, in the training of a network."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from encoder.bag.features import Features
from encoder.tokenizer import Tokens


class SpelledEmbedding(nn.Embedding):
    """Embeddings of V pieces and an end that share what their n-grams of letters have learnt.

    A piece's vector is the mean of its own and tanh(W s), s being the sum of its n-grams' vectors
    (Chidambaram et al. 2019, section 2.1, of words). A piece is spelt the same everywhere, so
    ``folded`` gives the table that an ordinary network has.
    """

    def __init__(self, weight: Tensor, features: Features) -> None:
        """Take the pieces' own vectors, float32 (V + 1, D)."""
        rows, dim = weight.shape
        super().__init__(rows, dim, _weight=weight.clone())
        self.ngrams = nn.Parameter(torch.randn(features.ngram_rows, dim) * weight.std())
        self.mixed = nn.Linear(dim, dim, bias=False)
        alone = Tokens(ids=np.arange(features.pieces, dtype=np.int32), offsets=np.arange(rows))
        numbers, words = features.split(alone)
        found = words.take(numbers.ids.astype(np.int64))
        ngram = found.ids >= features.pieces
        before = np.concatenate(([0], np.cumsum(ngram)))[found.offsets]
        self._spelling = Tokens(  # of the end, nothing
            ids=found.ids[ngram] - features.pieces, offsets=np.append(before, before[-1])
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Embed pieces: int64 (...) to float (..., D)."""
        different, places = torch.unique(ids, return_inverse=True)
        return self._embed(different)[places]

    def folded(self) -> Tensor:
        """Return the vectors of all pieces and of the end: (V + 1, D)."""
        with torch.no_grad():
            return self._embed(torch.arange(len(self.weight), device=self.weight.device))

    def _embed(self, pieces: Tensor) -> Tensor:
        spelling = self._spelling.take(pieces.cpu().numpy())
        ids, offsets = (
            torch.from_numpy(part).long().to(pieces.device)
            for part in (spelling.ids, spelling.offsets)
        )
        sums = functional.embedding_bag(
            ids, self.ngrams, offsets, mode="sum", include_last_offset=True
        )
        return (self.weight[pieces] + torch.tanh(self.mixed(sums))) / 2
