"""The command line train-encoder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from miner.commandline import run_command
from pipelines.arguments import add_common_options
from pipelines.cli import start_telling

SUFFIX = ".tsv.xz"


def train_encoder(argv: list[str] | None = None) -> int:
    """Run ``train-encoder``; the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    return run_command(lambda: _train(args), parser.prog)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="train-encoder",
        description="Train a multilingual sentence encoder (a weighted bag of subwords) by "
        "translation ranking on parallel text.",
        epilog=f"DATA holds one file for each language pair, XX-YY{SUFFIX}: source, TAB, target, "
        "TAB, name of the corpus. The result is used by --encoder OUT.",
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of parallel text")
    parser.add_argument(
        *("-o", "--output"), type=Path, required=True, metavar="OUT", help="folder to write"
    )
    parser.add_argument(
        "--pairs", metavar="XX-YY,...", help="language pairs to train on (default: all in DATA)"
    )
    parser.add_argument("--exclude", default="", metavar="NAME,...", help="corpora to leave out")
    parser.add_argument(
        "--corpus-weight",
        type=_corpus_weight,
        action="append",
        default=[],
        metavar="NAME=W",
        help="use each pair of corpus NAME with probability W (0 to 1) in a pass; repeatable",
    )
    _add_model_options(parser)
    add_common_options(parser)
    return parser


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model and training")
    for name, kind, default, meaning in (
        ("vocabulary-size", int, 48_000, "subwords"),
        ("dim", int, 384, "dimensions"),
        ("steps", int, 40_000, "batches to train on"),
        ("batch-size", int, 1024, "pairs in a batch; each is ranked against all others in it"),
        ("learning-rate", float, 2e-3, "Adam's, at its highest"),
        ("token-dropout", float, 0.1, "share of subwords left out at random"),
        ("margin", float, 0.2, "subtracted from the cosine of true pairs"),
        ("scale", float, 20.0, "inverse temperature of the softmax"),
        ("whitening", float, 0.3, "how far directions of large variance are scaled down, 0 to 1"),
        ("held-out", int, 500, "pairs of each file kept for evaluation"),
        ("evaluate-every", int, 5_000, "steps between evaluations, at which OUT is written"),
        ("seed", int, 1, "of all that is random"),
    ):
        group.add_argument(
            f"--{name}", type=kind, default=default, help=f"{meaning} (default: {default})"
        )
    group.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        default="float32",
        help="of the product of a batch; bfloat16 is faster where the processor has it "
        "(default: float32)",
    )


def _corpus_weight(text: str) -> tuple[str, float]:
    name, equals, weight = text.partition("=")
    try:
        value = float(weight)
    except ValueError:
        value = -1.0
    if not (name and equals and 0 <= value <= 1):
        raise argparse.ArgumentTypeError(f"expected NAME=W with W from 0 to 1, not {text!r}")
    return name, value


def _train(args: argparse.Namespace) -> int:
    from encoder.training.loop import TrainingOptions
    from encoder.training.recipe import Recipe
    from encoder.training.recipe import train_encoder as train
    from pipelines import progress

    start_telling(args)
    recipe = Recipe(
        files=_files(args.data, args.pairs),
        exclude=frozenset(filter(None, args.exclude.split(","))),
        corpus_weights=dict(args.corpus_weight),
        vocabulary_size=args.vocabulary_size,
        whitening=args.whitening,
        held_out=args.held_out,
        evaluate_every=args.evaluate_every,
        options=TrainingOptions(
            dim=args.dim,
            steps=args.steps,
            batch_size=args.batch_size,
            learning_rate=args.learning_rate,
            token_dropout=args.token_dropout,
            margin=args.margin,
            scale=args.scale,
            precision=args.precision,
            seed=args.seed,
        ),
    )
    with progress.stage("train", args.steps * args.batch_size, "pairs") as meter:
        errors = train(recipe, args.output, on_pairs=meter.advance)
    for name, error in sorted(errors.items()):
        sys.stdout.write(f"{name}\t{100 * error:.2f} % of held-out sentences not found\n")
    return 0


def _files(data: Path, pairs: str | None) -> tuple[Path, ...]:
    """The files of the language pairs asked for.

    Raises:
        ValueError: one of them, or any at all, is missing.
    """
    if not data.is_dir():
        raise ValueError(f"{data}: there is no such folder")
    there = {path.name.removesuffix(SUFFIX): path for path in sorted(data.glob(f"*{SUFFIX}"))}
    if not there:
        raise ValueError(f"{data}: no file there ends in {SUFFIX}; give the folder of the data")
    wanted = list(there) if pairs is None else list(dict.fromkeys(pairs.split(",")))
    for name in wanted:
        if name not in there:
            raise ValueError(f"{data}: no {name}{SUFFIX}; there are {', '.join(there)}")
    return tuple(there[name] for name in wanted)
