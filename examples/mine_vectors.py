"""Mine vectors of any encoder: two .npy files in, pairs of row numbers out.

python examples/mine_vectors.py de.npy en.npy
"""

import sys

import numpy as np

from miner import mine


def main(source: str, target: str) -> None:
    """Print score, source row and target row of each pair that is best for both."""
    pairs = mine(np.load(source), np.load(target), margin="ratio", retrieval="intersect")
    for i, j, score in zip(pairs.source, pairs.target, pairs.score, strict=True):
        print(f"{score:.4f}\t{i}\t{j}")


if __name__ == "__main__":
    main(*sys.argv[1:])
