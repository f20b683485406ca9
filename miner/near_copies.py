"""Find near-copies among pairs by MinHash and locality-sensitive hashing.

A pair counts as the set of character 4-grams of both its texts, each with its side. MinHash (Broder
1997) estimates the Jaccard similarity of two sets from signatures of ``HASHES`` numbers. Two pairs
are compared if they agree in one of 16 bands of 4 numbers, as 99.98% do that are 80% similar.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import IntArray, Mask
from miner.threads import blocks

Signatures: TypeAlias = NDArray[np.uint32]

SIMILARITY = 0.8  # least estimate for near-copies
HASHES = 64  # numbers per signature
BAND = 4  # numbers per band
GRAM = 4  # characters
SEED = 1
BLOCK = 1 << 16  # signatures read at a time: 16 MB
HELD_BYTES = 40  # per pair of a band: key, position, order


def signatures(source: Sequence[str], target: Sequence[str]) -> Signatures:
    """Return MinHash signatures of P pairs of texts, uint32 (P, HASHES).

    Pairs that differ only in case and in the width of white space have the same signature. Raises
    ModuleNotFoundError if rensa is not installed.
    """
    from rensa import RMinHash

    rows = np.empty((len(source), HASHES), dtype=np.uint32)
    for row, texts in enumerate(zip(source, target, strict=True)):
        sketch = RMinHash(num_perm=HASHES, seed=SEED)
        for side, text in zip("<>", texts, strict=True):
            plain = " ".join(text.casefold().split())
            starts = range(max(1, len(plain) - GRAM + 1))
            sketch.update([side + plain[start : start + GRAM] for start in starts])
        rows[row] = sketch.digest()
    return rows


def near_copies(signatures: Signatures, *, held: int = 1 << 22) -> Mask:
    """Find the pairs that are near-copies of better pairs, as a mask (P,).

    ``signatures`` (P, HASHES) are of pairs, best first. A pair is found if its estimated similarity
    is at least 0.8 to the best pair with the same four numbers, for any of 16 bands. About ``held``
    pairs, of 40 bytes each, are in memory at a time, which does not change the result.
    """
    copies = np.zeros(len(signatures), dtype=bool)
    parts = -(-len(signatures) // held)
    for first in range(0, HASHES, BAND):
        for part in range(parts):
            positions, keys = _of_part(signatures, first, part, parts)
            _, first_of, cluster = np.unique(keys, return_index=True, return_inverse=True)
            best = positions[first_of[cluster]]
            likely = (positions != best) & ~copies[positions]
            rows, best_rows = positions[likely], best[likely]
            for block in blocks(len(rows), BLOCK):
                similarity = (signatures[rows[block]] == signatures[best_rows[block]]).mean(axis=1)
                copies[rows[block][similarity >= SIMILARITY]] = True
    return copies


def _of_part(
    signatures: Signatures, first: int, part: int, parts: int
) -> tuple[IntArray, NDArray[np.uint64]]:
    positions, keys = [], []
    for block in blocks(len(signatures), BLOCK):
        band = np.ascontiguousarray(signatures[block, first : first + BAND]).view(np.uint64)
        key = band[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ band[:, 1]
        members = np.flatnonzero(key % np.uint64(parts) == part)
        positions.append(members + block.start)
        keys.append(key[members])
    return np.concatenate(positions), np.concatenate(keys)
