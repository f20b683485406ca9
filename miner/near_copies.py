"""Near-copies among pairs of sentences, by MinHash and locality-sensitive hashing.

A pair is taken for the set of the character 4-grams of both its texts. MinHash (Broder 1997)
estimates the Jaccard similarity of two such sets from signatures of ``HASHES`` numbers; pairs that
agree in one of 16 bands of 4 of these are compared: of those that are 80 % alike 99.98 % are.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Signatures: TypeAlias = NDArray[np.uint32]

SIMILARITY = 0.8  # estimated, of near-copies
HASHES, BAND = 64, 4
GRAM = 4  # characters
SEED = 1
BLOCK = 1 << 16  # signatures read at a time: 16 MB
HELD_BYTES = 40  # of a pair in a band: its key, its place, their order


def signatures(source: Sequence[str], target: Sequence[str]) -> Signatures:
    """Return the signatures of pairs of texts: uint32 (P, HASHES)."""
    from rensa import RMinHash

    found = np.empty((len(source), HASHES), dtype=np.uint32)
    for place, texts in enumerate(zip(source, target, strict=True)):
        sketch = RMinHash(num_perm=HASHES, seed=SEED)
        for side, text in zip("<>", texts, strict=True):
            sketch.update(list(_grams(side, text)))
        found[place] = sketch.digest()
    return found


def _grams(side: str, text: str) -> Iterator[str]:
    """Yield the 4-grams of a text but for case and blanks, and the side that it is on."""
    plain = " ".join(text.casefold().split())
    for start in range(max(1, len(plain) - GRAM + 1)):
        yield side + plain[start : start + GRAM]


def near_copies(signatures: Signatures, *, held: int = 1 << 22) -> NDArray[np.bool_]:
    """Return which of the pairs, best first, are near-copies of better ones: bool (P,).

    In each band, pairs are compared with the best of all that agree with them there. At most about
    ``held`` of them are in memory at a time; the result does not depend on it.
    """
    copies = np.zeros(len(signatures), dtype=bool)
    parts = -(-len(signatures) // held)
    for first in range(0, HASHES, BAND):
        for part in range(parts):
            places, keys = _of_part(signatures, first, part, parts)
            order = np.argsort(keys, kind="stable")
            ranked = keys[order]
            starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)])
            sizes = np.diff(np.append(starts, len(ranked)))
            best = places[order[np.repeat(starts, sizes)]]
            own = places[order]
            likely = (own != best) & ~copies[own]
            _mark(signatures, own[likely], best[likely], copies)
    return copies


def _of_part(
    signatures: Signatures, first: int, part: int, parts: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the places and the keys of the pairs whose key of a band is in a part of all keys."""
    places, keys = [], []
    for start in range(0, len(signatures), BLOCK):
        band = np.ascontiguousarray(signatures[start : start + BLOCK, first : first + BAND])
        halves = band.view(np.uint64)
        key = halves[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ halves[:, 1]
        mine = np.flatnonzero(key % np.uint64(parts) == part)
        places.append(mine + start)
        keys.append(key[mine])
    return np.concatenate(places), np.concatenate(keys)


def _mark(
    signatures: Signatures,
    own: NDArray[np.int64],
    best: NDArray[np.int64],
    copies: NDArray[np.bool_],
) -> None:
    for start in range(0, len(own), BLOCK):
        block = slice(start, start + BLOCK)
        alike = (signatures[own[block]] == signatures[best[block]]).mean(axis=1)
        copies[own[block][alike >= SIMILARITY]] = True
