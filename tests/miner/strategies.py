"""Vectors that are hard to rank: equal, nearly equal, opposite, of any scale."""

import numpy as np
from hypothesis import strategies as st

from miner.knn.core.rescore import unit_rows


@st.composite
def hard_vectors(draw, rows, dim):
    """Float32 (rows, dim) around a few centres that ``draw``s share with the other side's."""
    centres = np.random.default_rng(7).standard_normal((3, dim)).astype(np.float32)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["random", "equal", "few", "near", "signs", "small"]))
    if kind == "random":
        vectors = random.standard_normal((rows, dim))
    elif kind == "equal":
        vectors = np.tile(centres[0], (rows, 1))
    elif kind == "few":
        vectors = centres[random.integers(0, 3, rows)]
    elif kind == "near":  # neighbours 1e-7 apart: float32 products cannot rank them
        vectors = centres[random.integers(0, 3, rows)] + 3e-7 * random.standard_normal((rows, dim))
    elif kind == "signs":
        vectors = random.choice([-1.0, 1.0], (rows, dim))
    else:  # few distinct cosines, many orthogonal vectors
        vectors = random.integers(-1, 2, (rows, dim))
        vectors[~vectors.any(axis=1), 0] = 1
    return vectors.astype(np.float32)


@st.composite
def two_sides(draw, max_rows=14):
    """Unit rows of both sides, (N, D) and (M, D), none of them empty."""
    dim = draw(st.sampled_from([1, 2, 3, 16, 40]))
    rows = st.integers(1, max_rows)
    return tuple(unit_rows(draw(hard_vectors(draw(rows), dim))) for _ in range(2))


def along_few_axes(rows, dim, axes, seed):
    """Rows that have most of their length along a few axes, which both sides share."""
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))[0]
    random = np.random.default_rng(seed)
    lengths = np.where(np.arange(dim) < axes, 1, 0.1)
    return unit_rows(random.standard_normal((rows, dim)) * lengths @ turned)
