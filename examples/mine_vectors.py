"""Mine vectors of any encoder from two .npy files, and print pairs of rows.

python examples/mine_vectors.py de.npy en.npy
"""

import sys

import numpy as np

from miner import mine

source, target = map(np.load, sys.argv[1:])
pairs = mine(source, target, margin="ratio", retrieval="intersect")  # best in both directions
for i, j, score in zip(pairs.source, pairs.target, pairs.score, strict=True):
    print(f"{score:.4f}\t{i}\t{j}")
