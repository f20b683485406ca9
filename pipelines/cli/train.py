"""The command line train-encoder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.commandline import add_common_options, run_command
from pipelines.cli.mine import set_up_logging

if TYPE_CHECKING:
    from encoder.training.measures import Measure
    from encoder.training.options import TrainingOptions


# Dimensions, layers and learning rate of each architecture, unless they are given.
ARCHITECTURES = {
    "bag": (384, 1, 2e-3),
    "bilstm": (1024, 1, 1e-3),
    "transformer": (512, 3, 5e-4),
}
MEASURES = ("held_out_error", "tatoeba_error", "bucc_f1")


def train_encoder(argv: Sequence[str] | None = None, prog: str = "train-encoder") -> int:
    """Run ``adit train``; return the exit status."""
    parser = train_parser(prog)
    args = parser.parse_args(argv)
    return run_command(lambda: _run(args), parser.prog)


def train_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit train``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Train a multilingual sentence encoder on parallel text.",
        fromfile_prefix_chars="@",
        epilog="Parallel text is XX-YY.tsv.xz (source, TAB, target, TAB, corpus), XX-YY.parquet "
        "(columns source, target and, if there is one, corpus; or what mine-corpus wrote) or "
        "CORPUS.XX-YY.XX beside CORPUS.XX-YY.YY, line by line. OUT becomes the encoder with the "
        "best figure (--best-by), for --encoder OUT; OUT/training has a log, curves, and the state "
        "from which the same command goes on. In N processes, or on N GPUs: torchrun --standalone "
        "--no-python --nproc-per-node N train-encoder ...; the batch is shared among them, so the "
        "result is that of one. @FILE reads arguments from a file, one a line.",
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
    _add_evaluation_options(parser)
    add_common_options(parser)
    return parser


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model and objective")
    group.add_argument(
        "--architecture",
        choices=tuple(ARCHITECTURES),
        default="bag",
        help="bag: sum of subword vectors; bilstm: LASER's, with max pooling; transformer: with "
        "mean pooling (default: bag)",
    )
    group.add_argument(
        "--objective",
        choices=("ranking", "translation", "distillation"),
        default="ranking",
        help="ranking: translations are nearer than the rest of the batch; translation: LASER's, "
        "a decoder translates from the vector; distillation: match a teacher (default: ranking)",
    )
    group.add_argument(
        "--teacher", metavar="ENCODER", help="what distillation matches; named as in --encoder"
    )
    group.add_argument(
        "--targets",
        default="en,es",
        metavar="XX,...",
        help="languages that the objective translation translates to (default: en,es)",
    )
    _add_numbers(
        group,
        ("vocabulary-size", int, 48_000, "subwords"),
        ("ngram-rows", int, 0, "vectors that a bag's n-grams of letters share; 0 for no n-grams"),
        ("dim", int, None, "dimensions (default: 384, bilstm 1024, transformer 512)"),
        ("layers", int, None, "of a network (default: bilstm 1, transformer 3)"),
        ("decoder-dim", int, 2048, "of the decoder of the objective translation"),
        ("hard-negatives", int, 0, "wrong translations for each pair, mined as training goes on"),
        ("margin", float, 0.2, "subtracted from the cosine of true pairs"),
        ("scale", float, 20.0, "inverse temperature of the softmax"),
        (
            "whitening",
            float,
            None,
            "how far directions of a bag's large variance are scaled down, "
            "0 to 1 (default: ranking 0.1, else 0)",
        ),
    )
    group = parser.add_argument_group("training")
    _add_numbers(
        group,
        ("steps", int, 40_000, "updates of the weights"),
        (
            "batch-size",
            int,
            None,
            "pairs, each ranked against all others in the batch; or, for "
            "the objective translation, tokens (default: 1024, translation 8000)",
        ),
        (
            "temperature",
            float,
            0.5,
            "power of its size with which a language pair is drawn: 1 as often as it has pairs, "
            "0 all alike",
        ),
        ("accumulate", int, 1, "batches in a step, each ranked by itself"),
        (
            "at-once",
            int,
            2048,
            "sentences; of a larger batch, a network's activations are computed twice, not kept: "
            "slower, in bounded memory, with the same loss",
        ),
        (
            "learning-rate",
            float,
            None,
            "Adam's, at its highest (default: 2e-3, bilstm 1e-3, transformer 5e-4)",
        ),
        (
            "token-dropout",
            float,
            None,
            "share of subwords left out at random (default: bag 0.1, networks 0)",
        ),
        ("dropout", float, 0.1, "share of a network's activations left out at random"),
        ("seed", int, 1, "of all that is random"),
    )
    group.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        default="float32",
        help="of products; bfloat16 is faster where the processor has it (default: float32)",
    )


def _add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("evaluation on the way")
    _add_numbers(
        group,
        ("evaluate-every", int, 5_000, "steps between evaluations, at which OUT is written"),
        ("held-out", int, 500, "pairs of each language pair kept for evaluation"),
    )
    group.add_argument(
        "--tatoeba",
        type=Path,
        metavar="DIR",
        help="measure the error rate of eval-encoder tatoeba, in the languages that are trained",
    )
    group.add_argument(
        "--bucc",
        type=Path,
        metavar="DIR",
        help="measure the F1 of eval-encoder bucc, on the split that thresholds are chosen on",
    )
    group.add_argument(
        "--best-by",
        choices=MEASURES,
        default=MEASURES[0],
        help="OUT is the encoder with the least error or the highest F1 of this kind, mean over "
        f"the languages (default: {MEASURES[0]})",
    )


def _add_numbers(
    group: argparse._ArgumentGroup, *options: tuple[str, type, float | None, str]
) -> None:
    """Add options by name, type, default and meaning, which tells a default that depends."""
    for name, kind, default, meaning in options:
        told = meaning if default is None else f"{meaning} (default: {default})"
        group.add_argument(f"--{name}", type=kind, default=default, help=told)


def _corpus_weight(text: str) -> tuple[str, float]:
    name, equals, weight = text.partition("=")
    try:
        value = float(weight)
    except ValueError:
        value = -1.0
    if not (name and equals and 0 <= value <= 1):
        raise argparse.ArgumentTypeError(f"expected NAME=W with W from 0 to 1, not {text!r}")
    return name, value


def _run(args: argparse.Namespace) -> int:
    from encoder.training import parallel

    with parallel.process_group():
        args.quiet |= parallel.rank() > 0
        return _train(args)


def _train(args: argparse.Namespace) -> int:
    from encoder import load_encoder
    from encoder.training.recipe import Recipe
    from encoder.training.recipe import train_encoder as train

    monitor = set_up_logging(args)
    if (args.teacher is None) == (args.objective == "distillation"):
        raise ValueError("--objective distillation and --teacher ENCODER need one another")
    options = _options(args)  # first, for these errors are told at once
    files = _files(args.data, args.pairs)
    recipe = Recipe(
        files=files,
        exclude=frozenset(filter(None, args.exclude.split(","))),
        corpus_weights=dict(args.corpus_weight),
        vocabulary_size=args.vocabulary_size,
        whitening=_given(args.whitening, 0.1 if args.objective == "ranking" else 0.0),
        held_out=args.held_out,
        evaluate_every=args.evaluate_every,
        best_by=args.best_by,
        options=options,
    )
    measures = _measures(args, files)
    teacher = load_encoder(args.teacher, precision="auto") if args.teacher else None
    with monitor.stage("train", args.steps, "steps") as meter:
        best = train(
            recipe,
            args.output,
            teacher=teacher,
            measures=measures,
            on_begin=meter.begin,
            on_step=lambda: meter.advance(1),
        )
    for name, parts in best.items():
        for part, value in sorted(parts.items()):
            sys.stdout.write(f"{part}\t{name}\t{100 * value:.2f} %\n")
    return 0


def _measures(args: argparse.Namespace, pairs: Collection[str]) -> list[Measure]:
    """What is measured beside the held-out error.

    Raises:
        ValueError: there is no data in a folder for any of the language pairs, or it is malformed.
    """
    from eval.tasks.while_training import bucc_f1, tatoeba_error

    places = {"tatoeba": (args.tatoeba, tatoeba_error), "bucc": (args.bucc, bucc_f1)}
    for name, (place, _) in places.items():
        if place is None and args.best_by.startswith(name):
            raise ValueError(f"--best-by {args.best_by} needs --{name} DIR")
    return [measure(place, pairs) for place, measure in places.values() if place is not None]


def _options(args: argparse.Namespace) -> TrainingOptions:
    from encoder.training.options import TrainingOptions

    dim, layers, learning_rate = ARCHITECTURES[args.architecture]
    return TrainingOptions(
        architecture=args.architecture,
        objective=args.objective,
        dim=_given(args.dim, dim),
        ngram_rows=args.ngram_rows,
        layers=_given(args.layers, layers),
        steps=args.steps,
        batch_size=_given(args.batch_size, 8000 if args.objective == "translation" else 1024),
        temperature=args.temperature,
        accumulate=args.accumulate,
        at_once=args.at_once,
        learning_rate=_given(args.learning_rate, learning_rate),
        scale=args.scale,
        margin=args.margin,
        hard_negatives=args.hard_negatives,
        targets=tuple(args.targets.split(",")),
        decoder_dim=args.decoder_dim,
        token_dropout=_given(args.token_dropout, 0.1 if args.architecture == "bag" else 0.0),
        dropout=args.dropout,
        precision=args.precision,
        seed=args.seed,
    )


def _given(value: Any, default: Any) -> Any:  # noqa: ANN401
    return default if value is None else value


def _files(data: Path, pairs: str | None) -> dict[str, tuple[Path, ...]]:
    """The files of the language pairs asked for, by language pair.

    Raises:
        ValueError: one of them, or any at all, is missing.
    """
    from encoder.training.reading import find_parallel_text

    there = find_parallel_text(data)
    wanted = there if pairs is None else dict.fromkeys(pairs.split(","))
    for name in wanted:
        if name not in there:
            raise ValueError(f"{data}: no parallel text of {name!r}; there are {', '.join(there)}")
    return {name: there[name] for name in wanted}
