"""Compare the time from vectors to pairs with LASER's mine_bitexts.

    python benchmarks/mine.py --rows 32768 --dim 1024
    python benchmarks/mine.py --rows 100000 --vectors de.npy en.npy

mines random vectors, a third of them with a noisy copy on the other side, or those of files, by
`miner.mine` and by a re-creation of the reference: two FAISS flat searches, a Python loop that
scores each candidate with a dot product, and a greedy one-to-one choice. Each is a process of its
own, from its start to its pairs in a file. Prints seconds, their ratio, and how many pairs are the
same. What compiled code is kept on disk is made before.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from worlds import load_sides, make_sides


def ours(x: np.ndarray, y: np.ndarray, k: int) -> list[tuple[float, int, int]]:
    from miner import mine

    found = mine(x, y, k=k)
    rows = (found.score.tolist(), found.source.tolist(), found.target.tolist())
    return list(zip(*rows, strict=True))


def reference(x: np.ndarray, y: np.ndarray, k: int) -> list[tuple[float, int, int]]:
    """Mine unit rows as mine_bitexts.py does with --retrieval max."""
    import faiss

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


WAYS = {"miner.mine": ours, "reference": reference}


def mine_files(way: str, folder: Path) -> None:
    x, y = (np.load(folder / f"{side}.npy") for side in "xy")
    with (folder / f"{way}.tsv").open("w", encoding="utf-8") as out:
        out.writelines(f"{score}\t{i}\t{j}\n" for score, i, j in WAYS[way](x, y, k=4))


def seconds_of(way: str, folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--part", way, str(folder)], check=True)
    return time.perf_counter() - start


def pairs_of(way: str, folder: Path) -> set[str]:
    lines = (folder / f"{way}.tsv").read_text(encoding="utf-8").splitlines()
    return {line.partition("\t")[2] for line in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=32_768)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--vectors", nargs=2, metavar=("SRC", "TGT"), help=".npy files")
    parser.add_argument("--runs", type=int, default=1, help="of miner.mine; their median counts")
    parser.add_argument("--part", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        mine_files(args.part[0], Path(args.part[1]))
        return 0
    if args.vectors:
        x, y = load_sides(args.vectors, args.rows)
    else:
        x, y = make_sides("random", args.rows, args.dim)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for runs, rows in ((1, 8192), (args.runs, None)):  # the first compiles
            np.save(folder / "x.npy", x[:rows])
            np.save(folder / "y.npy", y[:rows])
            ours_took = [seconds_of("miner.mine", folder) for _ in range(runs)]
        their_seconds, our_seconds = seconds_of("reference", folder), median(ours_took)
        found, wanted = (pairs_of(way, folder) for way in WAYS)
    print(f"{len(x):,} x {len(y):,} x {x.shape[1]}, {os.cpu_count()} cores, {platform.machine()}")
    each = ", ".join(f"{took:.1f}" for took in sorted(ours_took))
    print(f"miner.mine     {our_seconds:7.1f} s  ({each})")
    print(f"reference      {their_seconds:7.1f} s  {their_seconds / our_seconds:.2f} times ours")
    print(f"{len(found):,} and {len(wanted):,} pairs, {len(found & wanted):,} of them the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
