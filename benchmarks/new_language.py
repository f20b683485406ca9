"""Compare ways to add a language with little or no parallel text.

    python benchmarks/new_language.py words SRC.vec TGT.vec [--test DICT --train DICT] --most N
    ... --starts similarity,adversarial --seeds 5
    python benchmarks/new_language.py halves TEXT OUT --sentences 80000
    python benchmarks/new_language.py paths DATA OUT --pairs de-en,es-en,fr-en --ntrex DIR
    python benchmarks/new_language.py monolingual XX-YY.tsv.xz OUT --others ZZ-YY.tsv.xz...
    python benchmarks/new_language.py few FILE OUT --pairs 5000
    python benchmarks/new_language.py comparable XX-YY.tsv.xz OUT --sentences 20000
    python benchmarks/new_language.py rounds XX-YY.tsv.xz OUT BOOTSTRAPPED

``words``: word translation, P@1 of the words of DICT that have vectors among all target words, by
cosine (NN) and CSLS, before and after refinement: of a map fitted to the pairs of --train whose
source is not in --test (supervised), of one fitted to identical words, and of starts that need no
word. The source's vectors are turned at random first, for files may be mapped already. Without
dictionaries, those are words that both files have: 1,500 to test, the others to train.

``halves``: OUT/a.txt and OUT/b.txt, the first and the next so many lines of a file, shuffled.

``paths``: encoders and decoders for each language (Schwenk & Douze 2017), trained on the N-way text
of short English sentences in DATA by one source and one target (1:1), one source and all others
(1:N), and two or three sources and one target; each encoder sees as many sentences in all of them.
For each the share of sentences whose nearest neighbour in another language is no translation, among
held-out rows and in NTREX, with 95 % intervals. What is finished in OUT is not trained again.

``monolingual``: OUT/XX.txt and OUT/YY.txt, the different sentences of XX in a file, and those of YY
in others that are not in that one, so that none translates another.

``few``: a random part of a file's pairs, as OUT/FILE, without the corpora to exclude.

``comparable``: OUT/XX.txt and OUT/YY.txt of as many sentences of either side, half of which have
their translation there, in random order; and OUT/known.XX-YY.tsv.xz of 300 other pairs. ``rounds``:
of each round of adit bootstrap on these corpora, the F1 at the best threshold, and the share of the
pairs that were kept that are right.
"""

from __future__ import annotations

import argparse
import lzma
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from pyarrow import parquet

from encoder import Encoder, load_encoder
from encoder.monolingual.options import MAX_WORDS
from encoder.monolingual.vec import WordVectors, read_vec
from encoder.training.data import hold_out, join_targets, sentences_by_language
from encoder.training.options import Recipe, training_options
from encoder.training.reading import ParallelText, find_parallel_text, read_parallel_text
from encoder.training.recipe import train_encoder
from eval.metrics.bootstrap import interval
from eval.metrics.similarity import translation_ranks
from eval.tasks.suite import mean_figure
from miner.mapping.adversarial import adversarial_start
from miner.mapping.orthogonal import Mapping as WordMapping
from miner.mapping.orthogonal import comparable_rows, identical_words, procrustes, refine
from miner.mapping.similarity import learn_by_itself, similarity_start

ROUNDS = 5
BATCH = 96  # rows of N-way text: Schwenk & Douze 2017, section 4
SEED = 1
KNOWN = 300  # pairs
TESTED = 1500  # words


def adversarial(source: np.ndarray, target: np.ndarray, *, seed: int) -> WordMapping:
    judge = partial(learn_by_itself, source, target, seed=seed)
    return adversarial_start(source, target, seed=seed, judge=judge)


def adversarial_alone(source: np.ndarray, target: np.ndarray, *, seed: int) -> WordMapping:
    judge = partial(refine, source, target, rounds=0)
    return adversarial_start(source, target, seed=seed, judge=judge)


STARTS = {
    "similarity": similarity_start,
    "adversarial": adversarial,
    "adversarial-alone": adversarial_alone,
}


def read_pairs(path: Path) -> list[tuple[str, str]]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [(line.split()[0], line.split()[1]) for line in lines]


def precision(
    matrix: np.ndarray, source: WordVectors, target: WordVectors, pairs: list[tuple[str, str]]
) -> str:
    """Return P@1 by both methods, and the number of covered words."""
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
        replace(side, vectors=comparable_rows(side.vectors))
        for side in (read_vec(path, most=args.most) for path in (args.source, args.target))
    )
    dim = source.vectors.shape[1]
    print(f"{len(source)} and {len(target)} words of {dim} dimensions")
    turned, _ = np.linalg.qr(np.random.default_rng(SEED).standard_normal((dim, dim)))
    source = replace(source, vectors=(source.vectors @ turned).astype(np.float32))
    if args.test is None:
        both = [(word, word) for word in sorted({*source.words} & {*target.words})]
        random.Random(SEED).shuffle(both)
        test, train = both[:TESTED], both[TESTED:]
    else:
        test, train = read_pairs(args.test), read_pairs(args.train)
    asked = {word for word, _ in test}
    places = [{word: row for row, word in enumerate(side.words)} for side in (source, target)]
    known = [
        (places[0][first], places[1][second])
        for first, second in train
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
                matrix = STARTS[name](source.vectors, target.vectors, seed=seed).matrix
                title = f"{name}, seed {seed}, {time.process_time() - begun:.0f} s of a core"
            print(f"{title}: {precision(matrix, source, target, test)}", flush=True)
            found = refine(source.vectors, target.vectors, matrix, rounds=ROUNDS)
            print(
                f"  refined: {precision(found.matrix, source, target, test)}, criterion "
                f"{found.criterion:.4f}",
                flush=True,
            )


def halves(args: argparse.Namespace) -> None:
    lines = args.file.read_text(encoding="utf-8").splitlines()
    random.Random(SEED).shuffle(lines)
    args.output.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate("ab"):
        some = lines[number * args.sentences :][: args.sentences]
        (args.output / f"{name}.txt").write_text("\n".join(some) + "\n", encoding="utf-8")


def monolingual(args: argparse.Namespace) -> None:
    """Write text in two languages without any translations."""
    text = read_parallel_text([args.file], exclude=frozenset())
    aligned = set(text.target)
    others = read_parallel_text(args.others, exclude=frozenset()).target
    sides = text.source, (sentence for sentence in others if sentence not in aligned)
    args.output.mkdir(parents=True, exist_ok=True)
    for language, side in zip(
        args.file.name.removesuffix(".tsv.xz").split("-"), sides, strict=True
    ):
        lines = "".join(f"{sentence}\n" for sentence in dict.fromkeys(side))
        (args.output / f"{language}.txt").write_text(lines, encoding="utf-8")


def few(args: argparse.Namespace) -> None:
    """Write a random part of the pairs."""
    text = read_parallel_text([args.file], exclude=frozenset(filter(None, args.exclude.split(","))))
    rows = np.random.default_rng(SEED).permutation(len(text))[: args.pairs]
    args.output.mkdir(parents=True, exist_ok=True)
    write_pairs(args.output / args.file.name, text.take(np.sort(rows)))


def comparable(args: argparse.Namespace) -> None:
    """Write two corpora that half translate each other, and some gold pairs."""
    text = read_parallel_text([args.file], exclude=frozenset(filter(None, args.exclude.split(","))))
    generator = np.random.default_rng(SEED)
    chosen = generator.permutation(len(text))
    half = args.sentences // 2
    both, one, other, known = np.split(chosen[: 3 * half + KNOWN], [half, 2 * half, 3 * half])
    args.output.mkdir(parents=True, exist_ok=True)
    languages = args.file.name.removesuffix(".tsv.xz").split("-")
    for language, side, rest in zip(
        languages, (text.source, text.target), (one, other), strict=True
    ):
        rows = generator.permutation(np.concatenate([both, rest]))
        lines = "".join(f"{side[row]}\n" for row in rows)
        (args.output / f"{language}.txt").write_text(lines, encoding="utf-8")
    write_pairs(args.output / f"known.{args.file.name}", text.take(known))


def rounds(args: argparse.Namespace) -> None:
    text = read_parallel_text([args.file], exclude=frozenset())
    name = args.file.name.removesuffix(".tsv.xz")
    there = [
        set((args.corpora / f"{language}.txt").read_text(encoding="utf-8").splitlines())
        for language in name.split("-")
    ]
    gold = {
        (source, target)
        for source, target in zip(text.source, text.target, strict=True)
        if source in there[0] and target in there[1]
    }
    for place in sorted(args.output.glob("rounds/*/pairs")):
        right = right_pairs(place / f"mined.{name}.parquet", gold)
        f1 = 2 * right.cumsum() / (np.arange(1, len(right) + 1) + len(gold))
        kept = right_pairs(place / f"kept.{name}.parquet", gold)
        print(
            f"round {place.parent.name}: F1 {100 * f1.max():.1f} %, {len(kept)} pairs kept, "
            f"{100 * kept.mean():.1f} % right"
        )


def right_pairs(path: Path, gold: set[tuple[str, str]]) -> np.ndarray:
    """Return which pairs of a file, best first, are gold."""
    table = parquet.read_table(path, columns=["source_text", "target_text"])
    pairs = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return np.array([pair in gold for pair in pairs])


def write_pairs(path: Path, text: ParallelText) -> None:
    rows = zip(text.source, text.target, text.corpus, strict=True)
    lines = "".join("\t".join(row) + "\n" for row in rows)
    path.write_bytes(lzma.compress(lines.encode(), preset=1))


def paths(args: argparse.Namespace) -> None:
    names = args.pairs.split(",")
    folder = args.output / "text"
    if not folder.exists():
        folder.mkdir(parents=True)
        for name in names:
            text = read_parallel_text([args.data / f"{name}.tsv.xz"], exclude=frozenset())
            short = [
                row
                for row, sentence in enumerate(text.target)
                if len(sentence.split()) <= args.longest
            ]
            write_pairs(folder / f"{name}.tsv.xz", text.take(np.array(short)))
    files = find_parallel_text(folder)
    texts = join_targets([read_parallel_text(each, exclude=frozenset()) for each in files.values()])
    held_out = sentences_by_language(
        [hold_out(text, args.held_out, seed=SEED)[1] for text in texts]
    )
    *sources, target = held_out
    print(f"{len(texts[0])} rows of {', '.join(held_out)}, {args.held_out} of them held out")
    ntrex = {
        language: (args.ntrex / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        for language in held_out
    }
    before: list[np.ndarray] = []
    one, every = (target,), tuple(held_out)
    for count, targets in ((1, one), (1, every), *((more, one) for more in range(2, len(every)))):
        encoders = len(held_out) if len(targets) > 1 else len(sources)
        title = f"{count}:{'N' if len(targets) > 1 else 1}"
        folder = args.output / title.replace(":", "-")
        steps = round(args.sentences / BATCH * encoders / count)
        begun = time.process_time()
        train_encoder(path_recipe(args, files, count, targets, steps), folder)
        spent = time.process_time() - begun
        encoder = load_encoder(str(folder))
        print(f"\n{title}: {steps} steps, {spent:.0f} s of a core", flush=True)
        wrong = [np.array([]), np.array([])]
        for place, (name, text) in enumerate((("held out", held_out), ("NTREX", ntrex))):
            wrong[place] = mean_errors(encoder, text, sources)
            line = f"  {name}, {', '.join(sources)}: {figure(wrong[place])}"
            if before:
                line += f"; less that of 1:1 {figure(wrong[place] - before[place])}"
            print(line)
            if len(targets) > 1:
                print(f"  {name}, with {target}: {figure(mean_errors(encoder, text, [*held_out]))}")
        print_matrix(encoder, held_out, list(held_out) if len(targets) > 1 else sources)
        before = before or wrong


def path_recipe(
    args: argparse.Namespace,
    files: Mapping[str, Sequence[Path]],
    count: int,
    targets: tuple[str, ...],
    steps: int,
) -> Recipe:
    """Return a recipe from ``count`` sources to other targets."""
    options = training_options(
        "bilstm",
        "paths",
        dim=args.dim,
        decoder_dim=args.dim,
        batch_size=BATCH,
        targets=targets,
        sources=(str(count),),
        learning_rate=args.learning_rate,
        warmup_steps=max(1, steps // 10),
        steps=steps,
        seed=SEED,
    )
    return Recipe(
        files=files,
        vocabulary_size=args.vocabulary_size,
        held_out=args.held_out,
        evaluate_every=-(-steps // 8),
        options=options,
    )


def errors(
    encoder: Encoder, text: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> dict[tuple[str, str], np.ndarray]:
    """Return which rows' nearest neighbour is wrong, by pair of languages."""
    vectors = {name: encoder.for_language(name).encode(text[name]) for name in languages}
    return {
        (one, other): (vectors[one] @ vectors[other].T).argmax(axis=1)
        != np.arange(len(vectors[one]))
        for one in languages
        for other in languages
        if one != other
    }


def mean_errors(
    encoder: Encoder, text: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> np.ndarray:
    """Return the mean errors of rows over all directions."""
    return np.mean(list(errors(encoder, text, languages).values()), axis=0)


def figure(values: np.ndarray) -> str:
    low, high = interval(mean_figure("", values).samples)
    return f"{100 * values.mean():.1f} % (95 %: {100 * low:.1f} to {100 * high:.1f})"


def print_matrix(
    encoder: Encoder, text: Mapping[str, Sequence[str]], languages: Sequence[str]
) -> None:
    found = errors(encoder, text, languages)
    print("  held out " + "".join(f"{name:>7}" for name in languages))
    for one in languages:
        cells = [
            f"{100 * found[one, other].mean():7.1f}" if one != other else f"{'':7}"
            for other in languages
        ]
        print(f"  {one:9}{''.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tasks = parser.add_subparsers(required=True)
    task = tasks.add_parser("words")
    task.add_argument("source", type=Path)
    task.add_argument("target", type=Path)
    task.add_argument("--test", type=Path)
    task.add_argument("--train", type=Path)
    task.add_argument("--most", type=int, default=MAX_WORDS)
    task.add_argument("--starts", default="supervised,identical,similarity")
    task.add_argument("--seeds", type=int, default=5)
    task.set_defaults(run=words)
    task = tasks.add_parser("halves")
    task.add_argument("file", type=Path)
    task.add_argument("output", type=Path)
    task.add_argument("--sentences", type=int, default=80_000)
    task.set_defaults(run=halves)
    task = tasks.add_parser("monolingual")
    task.add_argument("file", type=Path)
    task.add_argument("output", type=Path)
    task.add_argument("--others", type=Path, nargs="+", required=True)
    task.set_defaults(run=monolingual)
    task = tasks.add_parser("few")
    task.add_argument("file", type=Path)
    task.add_argument("output", type=Path)
    task.add_argument("--pairs", type=int, required=True)
    task.add_argument("--exclude", default="")
    task.set_defaults(run=few)
    task = tasks.add_parser("comparable")
    task.add_argument("file", type=Path)
    task.add_argument("output", type=Path)
    task.add_argument("--sentences", type=int, default=20_000)
    task.add_argument("--exclude", default="")
    task.set_defaults(run=comparable)
    task = tasks.add_parser("rounds")
    task.add_argument("file", type=Path)
    task.add_argument("corpora", type=Path)
    task.add_argument("output", type=Path)
    task.set_defaults(run=rounds)
    task = tasks.add_parser("paths")
    task.add_argument("data", type=Path)
    task.add_argument("output", type=Path)
    task.add_argument("--pairs", default="de-en,es-en,fr-en")
    task.add_argument("--ntrex", type=Path, required=True)
    task.add_argument("--longest", type=int, default=10, help="words of an English sentence")
    task.add_argument("--sentences", type=int, default=38_400, help="that each encoder sees")
    task.add_argument("--held-out", type=int, default=1000)
    task.add_argument("--dim", type=int, default=256)
    task.add_argument("--vocabulary-size", type=int, default=4000)
    task.add_argument("--learning-rate", type=float, default=3e-3)
    task.set_defaults(run=paths)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    raise SystemExit(main())
