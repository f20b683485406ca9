"""Ways to a new language without parallel text, or with little: what docs/new-language.md says.

    python benchmarks/new_language.py words SRC.vec TGT.vec --test DICT --train DICT [--most 10000]
    ... --starts similarity,adversarial --seeds 5

Word translation, P@1 of the words of DICT that have vectors among all target words, by cosine (NN)
and CSLS, before and after refinement: of a map fitted to the pairs of --train whose source is not
in --test (supervised), of one fitted to identical words, and of starts that need no word.
"""

from __future__ import annotations

import argparse
import lzma
import time
from pathlib import Path

import numpy as np

from encoder.monolingual.options import MAX_WORDS
from encoder.monolingual.vec import WordVectors, read_vec
from eval.metrics.word_translation import translation_ranks
from miner.mapping.orthogonal import comparable_rows, identical_words, procrustes, refine
from miner.mapping.similarity import similarity_start

ROUNDS = 5


def read_pairs(path: Path) -> list[tuple[str, str]]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [(line.split()[0], line.split()[1]) for line in lines]


def precision(
    matrix: np.ndarray, source: WordVectors, target: WordVectors, pairs: list[tuple[str, str]]
) -> str:
    """P@1 by both methods, and how many words are covered."""
    places = [{word: row for row, word in enumerate(side.words)} for side in (source, target)]
    gold: dict[int, list[int]] = {}
    for first, second in pairs:
        if first in places[0] and second in places[1]:
            gold.setdefault(places[0][first], []).append(places[1][second])
    mapped = source.vectors @ matrix
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    ranks = translation_ranks(mapped[list(gold)], target.vectors, mapped, list(gold.values()))
    found = ", ".join(f"{name} {100 * (each == 1).mean():.1f}" for name, each in ranks.items())
    return f"{found} ({len(gold)} words)"


def words(args: argparse.Namespace) -> None:
    source, target = (
        WordVectors(words=side.words, vectors=comparable_rows(side.vectors))
        for side in (read_vec(path, most=args.most) for path in (args.source, args.target))
    )
    print(f"{len(source)} and {len(target)} words of {source.vectors.shape[1]} dimensions")
    test = read_pairs(args.test)
    asked = {word for word, _ in test}
    places = [{word: row for row, word in enumerate(side.words)} for side in (source, target)]
    known = [
        (places[0][first], places[1][second])
        for first, second in read_pairs(args.train)
        if first not in asked and first in places[0] and second in places[1]
    ]
    pairs = {
        "supervised": tuple(np.array(known).T),
        "identical": identical_words(source.words, target.words),
    }
    for name in args.starts.split(","):
        for seed in [0] if name in pairs else range(1, args.seeds + 1):
            begun = time.process_time()
            if name in pairs:
                rows, columns = pairs[name]
                matrix = procrustes(source.vectors[rows], target.vectors[columns])
                title = f"{name}, {len(rows)} pairs"
            else:
                matrix = begin(name, source, target, args, seed)
                title = f"{name}, seed {seed}, {time.process_time() - begun:.0f} s of a core"
            print(f"{title}: {precision(matrix, source, target, test)}", flush=True)
            found = refine(source.vectors, target.vectors, matrix, rounds=ROUNDS)
            print(
                f"  refined: {precision(found.matrix, source, target, test)}, criterion "
                f"{found.criterion:.4f}",
                flush=True,
            )


def begin(
    name: str, source: WordVectors, target: WordVectors, args: argparse.Namespace, seed: int
) -> np.ndarray:
    """The map of a start that needs no word."""
    if name == "similarity":
        return similarity_start(source.vectors, target.vectors, seed=seed).matrix
    from miner.mapping.adversarial import AdversarialOptions, adversarial_start

    options = AdversarialOptions(seed=seed, epochs=args.epochs, steps=args.steps)
    return adversarial_start(source.vectors, target.vectors, options).matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tasks = parser.add_subparsers(required=True)
    task = tasks.add_parser("words")
    task.add_argument("source", type=Path)
    task.add_argument("target", type=Path)
    task.add_argument("--test", type=Path, required=True)
    task.add_argument("--train", type=Path, required=True)
    task.add_argument("--most", type=int, default=MAX_WORDS)
    task.add_argument("--starts", default="supervised,identical,similarity")
    task.add_argument("--seeds", type=int, default=5)
    task.add_argument("--epochs", type=int, default=5)
    task.add_argument("--steps", type=int, default=5000)
    task.set_defaults(run=words)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
