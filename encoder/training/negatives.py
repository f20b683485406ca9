"""Hard negatives: wrong translations that the encoder in training takes for nearly right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder.tokenizer import Tokens
    from encoder.training.architectures.model import Model
    from encoder.training.data import TokenPairs

BLOCK = 8192  # pairs among which each one's negatives are looked for
CHUNK = 1024  # sentences that are embedded at once


def mine_negatives(model: Model, pairs: TokenPairs, *, count: int, seed: int) -> NDArray[np.int64]:
    """Return rows of the ``count`` targets most like each pair's own: int64 (P, count).

    "Semantically similar to the correct translation" (Chidambaram et al. 2019, section 2.2), as
    the model stands, among ``BLOCK`` pairs drawn at random. Targets of an equal sentence on either
    side may be right and are left out; where too few are left, the nearest of them stand in.
    """
    vectors = _embed(model, pairs.target)
    equal = [torch.from_numpy(_numbers(side)) for side in (pairs.source, pairs.target)]
    order = np.random.default_rng(seed).permutation(len(pairs.weight))
    found = np.empty((len(order), count), dtype=np.int64)
    for rows in np.array_split(order, -(-len(order) // BLOCK)):
        there = torch.from_numpy(rows)
        cosines = vectors[there] @ vectors[there].T
        for numbers in equal:
            same = numbers[there, None] == numbers[None, there]
            cosines[same.to(cosines.device)] = -torch.inf
        nearest = cosines.topk(min(count, len(rows)), dim=1).indices.cpu().numpy()
        found[rows] = rows[nearest[:, np.arange(count) % nearest.shape[1]]]
    return found


def _embed(model: Model, tokens: Tokens) -> torch.Tensor:
    """Return unit vectors (S, D), without dropout."""
    model.eval()
    order = np.argsort(np.diff(tokens.offsets), kind="stable")
    vectors: list[torch.Tensor] = []
    with torch.inference_mode():
        for start in range(0, len(order), CHUNK):
            chunk = model(tokens.take(order[start : start + CHUNK]))
            vectors.append(functional.normalize(chunk.float()))
        return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]


def _numbers(tokens: Tokens) -> NDArray[np.int64]:
    """Return equal numbers for equal sentences: int64 (S,)."""
    numbers: dict[bytes, int] = {}
    ids = np.split(tokens.ids, tokens.offsets[1:-1])
    return np.array(
        [numbers.setdefault(one.tobytes(), len(numbers)) for one in ids], dtype=np.int64
    )
