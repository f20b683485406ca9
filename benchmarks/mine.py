"""Vectors to pairs, side by side with what LASER's mine_bitexts does.

    python benchmarks/mine.py --rows 32768 --dim 1024
    python benchmarks/mine.py --rows 100000 --vectors de.npy en.npy

mines random vectors, a third of them with a noisy copy on the other side, or those of files, by
`miner.mine` and by a re-creation of the reference: two FAISS flat searches, a Python loop that
scores each candidate with a dot product, and a greedy one-to-one choice. Prints seconds, their
ratio, and whether the pairs are the same.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time

import faiss
import numpy as np
import torch

from miner import mine
from worlds import load_sides, make_sides


def reference(x: np.ndarray, y: np.ndarray, k: int) -> list[tuple[float, int, int]]:
    """What mine_bitexts.py computes with --retrieval max --margin ratio, on unit rows."""

    def search(queries: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        index = faiss.IndexFlatIP(base.shape[1])
        index.add(base)
        return index.search(queries, k)

    def score(
        a: np.ndarray, b: np.ndarray, found: np.ndarray, a_mean: np.ndarray, b_mean: np.ndarray
    ) -> np.ndarray:
        scores = np.zeros(found.shape)
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                other = found[i, j]
                scores[i, j] = a[i].dot(b[other]) / ((a_mean[i] + b_mean[other]) / 2)
        return scores

    forward, forward_ids = search(x, y)
    backward, backward_ids = search(y, x)
    forward_mean, backward_mean = forward.mean(axis=1), backward.mean(axis=1)
    forward_scores = score(x, y, forward_ids, forward_mean, backward_mean)
    backward_scores = score(y, x, backward_ids, backward_mean, forward_mean)
    forward_best = forward_ids[np.arange(len(x)), forward_scores.argmax(axis=1)]
    backward_best = backward_ids[np.arange(len(y)), backward_scores.argmax(axis=1)]
    pairs = np.stack(
        [
            np.concatenate([np.arange(len(x)), backward_best]),
            np.concatenate([forward_best, np.arange(len(y))]),
        ],
        axis=1,
    )
    scores = np.concatenate([forward_scores.max(axis=1), backward_scores.max(axis=1)])
    sources, targets, chosen = set(), set(), []
    for i in np.argsort(-scores):
        source, target = pairs[i]
        if source not in sources and target not in targets:
            sources.add(source)
            targets.add(target)
            chosen.append((float(scores[i]), int(source), int(target)))
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=32_768)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--vectors", nargs=2, metavar=("SRC", "TGT"), help=".npy files")
    args = parser.parse_args()
    if args.vectors:
        x, y = load_sides(args.vectors, args.rows)
    else:
        x, y = make_sides("random", args.rows, args.dim)
    mine(x[:8192], y[:8192])  # compiles
    start = time.perf_counter()
    ours = mine(x, y)
    our_seconds = time.perf_counter() - start
    start = time.perf_counter()
    theirs = reference(x, y, k=4)
    their_seconds = time.perf_counter() - start
    same = set(zip(ours.source.tolist(), ours.target.tolist(), strict=True)) == {
        (source, target) for _, source, target in theirs
    }
    print(f"{len(x):,} x {len(y):,} x {x.shape[1]}, {torch.get_num_threads()} threads, ", end="")
    print(platform.machine())
    print(f"miner.mine     {our_seconds:7.1f} s")
    print(f"reference      {their_seconds:7.1f} s  {their_seconds / our_seconds:.2f} times ours")
    print(f"the same pairs: {same} ({len(ours):,})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
