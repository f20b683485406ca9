"""Words of made-up sentences."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Ragged:
    vectors: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray

    @property
    def ids(self):
        return np.arange(len(self.weights), dtype=np.int32)


def words_of(lengths, seed, dim=6):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((sum(lengths), dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = random.uniform(0.1, 3, sum(lengths)).astype(np.float32)
    return Ragged(vectors, weights, np.cumsum([0, *lengths]))


def one(words, sentence):
    part = slice(words.offsets[sentence], words.offsets[sentence + 1])
    vectors, weights = words.vectors[part], words.weights[part]
    return Ragged(vectors, weights, np.array([0, len(weights)]))
