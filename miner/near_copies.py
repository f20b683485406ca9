"""Near-copies among pairs of sentences, by MinHash and locality-sensitive hashing.

A pair is taken for the set of the character 4-grams of both its texts. MinHash (Broder 1997)
estimates the Jaccard similarity of two such sets from signatures of ``HASHES`` numbers; pairs that
agree in one of 16 bands of 4 of these are compared: of those that are 80 % alike 99.98 % are.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import IntArray, Mask
from miner.threads import blocks

Signatures: TypeAlias = NDArray[np.uint32]

SIMILARITY = 0.8  # estimated, of near-copies
HASHES, BAND = 64, 4
GRAM = 4  # characters
SEED = 1
BLOCK = 1 << 16  # signatures read at a time: 16 MB
HELD_BYTES = 40  # of a pair in a band: its key, its place, their order


def signatures(source: Sequence[str], target: Sequence[str]) -> Signatures:
    """Return the signatures of pairs of texts but for case and blanks: uint32 (P, HASHES)."""
    from rensa import RMinHash

    found = np.empty((len(source), HASHES), dtype=np.uint32)
    for place, texts in enumerate(zip(source, target, strict=True)):
        sketch = RMinHash(num_perm=HASHES, seed=SEED)
        for side, text in zip("<>", texts, strict=True):
            plain = " ".join(text.casefold().split())
            starts = range(max(1, len(plain) - GRAM + 1))
            sketch.update([side + plain[start : start + GRAM] for start in starts])
        found[place] = sketch.digest()
    return found


def near_copies(signatures: Signatures, *, held: int = 1 << 22) -> Mask:
    """Return which of the pairs, best first, are near-copies of better ones: (P,).

    In each band, pairs are compared with the best of all that agree with them there. At most about
    ``held`` of them are in memory at a time; the result does not depend on it.
    """
    copies = np.zeros(len(signatures), dtype=bool)
    parts = -(-len(signatures) // held)
    for first in range(0, HASHES, BAND):
        for part in range(parts):
            places, keys = _of_part(signatures, first, part, parts)
            _, first_of, cluster = np.unique(keys, return_index=True, return_inverse=True)
            best = places[first_of[cluster]]
            likely = (places != best) & ~copies[places]
            own, other = places[likely], best[likely]
            for block in blocks(len(own), BLOCK):
                alike = (signatures[own[block]] == signatures[other[block]]).mean(axis=1)
                copies[own[block][alike >= SIMILARITY]] = True
    return copies


def _of_part(
    signatures: Signatures, first: int, part: int, parts: int
) -> tuple[IntArray, NDArray[np.uint64]]:
    """Return the places and the keys of the pairs whose key of a band is in a part of all keys."""
    places, keys = [], []
    for block in blocks(len(signatures), BLOCK):
        band = np.ascontiguousarray(signatures[block, first : first + BAND]).view(np.uint64)
        key = band[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ band[:, 1]
        mine = np.flatnonzero(key % np.uint64(parts) == part)
        places.append(mine + block.start)
        keys.append(key[mine])
    return np.concatenate(places), np.concatenate(keys)
