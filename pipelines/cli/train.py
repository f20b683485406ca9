"""Run ``adit train``, ``map`` and ``bootstrap``, and print user errors."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encoder.monolingual.options import WordOptions
from encoder.training import options as training
from encoder.training.options import (
    ARCHITECTURES,
    OBJECTIVES,
    Recipe,
    TrainingOptions,
    limits,
    option_fields,
)
from miner.commandline import add_common_options, command, parse_names, parse_number, reject_repeats
from miner.wording import counted
from pipelines import making_options as making
from pipelines.cli.arguments import add_encoder, add_texts, given_texts, make_add_option
from pipelines.cli.running import set_up_logging

if TYPE_CHECKING:
    from encoder.training.evaluation import Measure

Given = dict[str, Any]


def _kinds(known: Mapping[str, Any]) -> str:
    summaries = "; ".join(f"{kind}: {options.summary}" for kind, options in known.items())
    return f"{summaries} (default: {next(iter(known))})"


HELP = {
    "--pairs": "language pairs, or languages of .txt, to train on, as de-en,fr-en (default: all)",
    "--exclude": "corpora to skip: as in the column corpus, CORPUS in files' names, or else XX-YY",
    "--corpus-weight": "use each pair of corpus NAME (see --exclude) with probability W (0 to 1) "
    "in a pass over the text; repeatable (default: 1 for each corpus)",
    "--pair-weight": "draw language pairs W (above 0) times as often; not for paths; repeatable "
    "(default: 1)",
    "--task": "also train an auxiliary task on the .txt files in DIR (.tsv for nli), with W times "
    "as many batches as for the objective, W above 0 (default: 1); repeatable, with one folder per "
    "language, whose sentences are ranked only among each other; not for addition, alignment or "
    f"paths; {'; '.join(map(': '.join, training.AUXILIARY_TASKS.items()))}",
    "--architecture": _kinds(ARCHITECTURES),
    "--objective": _kinds(OBJECTIVES),
    "--teacher": "encoder of the same --dim whose vectors are matched, named as for adit mine "
    "--encoder; required by --objective distillation, addition (a bag, such as mini) and alignment "
    "(mini, or of adit train), and refused by others",
    "--start": "folder of a base encoder by this version's adit train, whose weights and subwords "
    "(--vocabulary-size has no effect) training starts from (default: random weights, new "
    "subwords); also pass its --architecture and --dim; of a bag its --ngram-rows; of a network "
    "its --layers, without --ngram-rows; of a bilstm also its --word-dim",
    "--tatoeba": "folder with tatoeba.xxx-eng.xxx and .eng, to measure the error rate of adit "
    "evaluate tatoeba in the trained languages during training",
    "--bucc": "folder with xx-en/xx-en.SPLIT.xx, .en and .gold, to measure the F1 of mining by the "
    "best threshold during training, on the split that adit evaluate bucc tunes on",
    "--best-by": "measure that selects the encoder written to OUT; "
    f"{training.HELD_OUT_ERROR}: mean share of a language pair's held-out sentences whose nearest "
    f"sentence is wrong; {training.PERPLEXITY}: of translation, paths, mlm, tlm and clm; "
    f"{training.ACCURACY}: of nli; tatoeba_error, bucc_f1: means by --tatoeba, --bucc "
    f"(default: {training.HELD_OUT_ERROR}, not measured for paths from one language; for mlm, tlm "
    f"and clm {training.PERPLEXITY}, for nli {training.ACCURACY})",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit train``."""
    parser.fromfile_prefix_chars = "@"
    parser.epilog = (
        "Parallel text is XX-YY.tsv (source, TAB, target, maybe TAB, corpus), XX-YY.parquet "
        "(columns source, target and maybe corpus, or the output of 'adit mine', also as .jsonl or "
        ".tmx), or CORPUS.XX-YY.XX with CORPUS.XX-YY.YY, line by line; text may be compressed. mlm "
        "and clm also read NAME.XX.txt, one sentence per line, if DATA has none of the former but "
        "the last, and nli reads .tsv of label, premise and hypothesis. OUT becomes the encoder "
        "with the best figure (--best-by), for --encoder OUT. OUT/training contains a log, a "
        "checkpoint and, with matplotlib, curves; rerun the same command to resume. For N "
        "processes or GPUs, run: torchrun --standalone --no-python --nproc-per-node N "
        "train-encoder ...; they share the batch, so the result equals that of one process, except "
        "for rounding and dropout. @FILE reads arguments from a file, one per line."
    )
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="folder of text in the formats below"
    )
    text = "output folder for the encoder; a folder of the same command is resumed"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help=text)
    add = make_add_option(parser, HELP)
    add("--pairs", type=parse_names, action="extend", metavar="XX-YY,...")
    add("--exclude", type=parse_names, action="extend", default=[], metavar="NAME,...")
    add("--corpus-weight", type=_corpus_weight, action="append", default=[], metavar="NAME=W")
    add("--pair-weight", type=_pair_weight, action="extend", default=[], metavar="XX-YY,...=W")
    add("--task", type=_task, action="append", default=[], metavar="NAME=DIR[:W]")
    group = parser.add_argument_group("architecture")
    add = make_add_option(group, HELP)
    add("--architecture", choices=ARCHITECTURES, default=next(iter(ARCHITECTURES)))
    add_fields(group, ARCHITECTURES)
    group = parser.add_argument_group("objective")
    add = make_add_option(group, HELP)
    add("--objective", choices=OBJECTIVES, default=next(iter(OBJECTIVES)))
    add("--teacher", metavar="ENCODER")
    add_fields(group, OBJECTIVES)
    group = parser.add_argument_group("training")
    make_add_option(group, HELP)("--start", metavar="ENCODER")
    add_fields(group, {"": TrainingOptions})
    group = parser.add_argument_group("vocabulary, and evaluation during training")
    add_fields(group, {"": Recipe})
    add = make_add_option(group, HELP)
    add("--tatoeba", type=Path, metavar="DIR")
    add("--bucc", type=Path, metavar="DIR")
    add("--best-by", choices=training.MEASURES)
    add_common_options(parser)


def add_fields(group: argparse._ArgumentGroup, kinds: Mapping[str, type]) -> None:
    """Add an option for each ``option`` with a help in classes of options.

    ``kinds`` are the classes by name. The help names the classes with the option, if not all,
    and its defaults. An omitted option sets no argument. One with a tuple as default sets a list.
    """
    fields: dict[str, dict[str, Field]] = {}
    for kind, options in kinds.items():
        for name, option in option_fields(options).items():
            if option.metadata["help"]:
                fields.setdefault(name, {})[kind] = option
    for name, by_kind in fields.items():
        first = next(iter(by_kind.values()))
        defaults: list[Any] = [option.default for option in by_kind.values()]
        is_list = isinstance(first.default, tuple)
        texts = [",".join(value) if is_list else str(value) for value in defaults]
        [(common, _)] = Counter(texts).most_common(1)
        named = zip(by_kind, texts, strict=True)
        default = ", ".join([common, *(f"{kind} {text}" for kind, text in named if text != common)])
        only = "" if len(by_kind) == len(kinds) else f"for {', '.join(by_kind)}; "
        if isinstance(first.default, int | float):
            only = f"{limits(first)}; {only}"
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=parse_names if is_list else type(first.default),
            action="extend" if is_list else "store",
            default=argparse.SUPPRESS,
            choices=first.metadata["choices"] or None,
            help=f"{first.metadata['help']} ({only}default: {default})",
        )


def given_fields(args: argparse.Namespace, *kinds: type, more: Collection[str] = ()) -> Given:
    """Return the arguments that are options of ``kinds``, or in ``more``.

    Lists become tuples. Options of ``add_fields`` that the user omitted are missing.
    """
    names = {*more, *itertools.chain.from_iterable(map(option_fields, kinds))}
    values = {name: value for name, value in vars(args).items() if name in names}
    return {name: tuple(item) if isinstance(item, list) else item for name, item in values.items()}


def _corpus_weight(text: str) -> tuple[str, float]:
    name, _, weight = text.partition("=")
    if not (name and 0 <= parse_number(weight) <= 1):
        raise argparse.ArgumentTypeError(f"expected NAME=W with W from 0 to 1, not {text!r}")
    return name, float(weight)


def _task(text: str) -> training.TaskBeside:
    name, equals, place = text.partition("=")
    folder, _, weight = place.rpartition(":")
    if not (name and equals and place):
        raise argparse.ArgumentTypeError(f"expected NAME=DIR or NAME=DIR:W, not {text!r}")
    if not folder or math.isnan(parse_number(weight)):
        return training.TaskBeside(name=name, folder=Path(place))
    return training.TaskBeside(name=name, folder=Path(folder), weight=float(weight))


def _pair_weight(text: str) -> list[tuple[str, float]]:
    pairs, _, weight = text.partition("=")
    if not (pairs and 0 < parse_number(weight) < math.inf):
        raise argparse.ArgumentTypeError(f"expected XX-YY,...=W with W above 0, not {text!r}")
    return [(name, float(weight)) for name in parse_names(pairs)]


@command(add_arguments, "train-encoder")
def train_encoder(args: argparse.Namespace) -> int:
    """Train a multilingual sentence encoder on parallel text."""
    from encoder.training import parallel

    with parallel.process_group():
        args.quiet |= parallel.rank() > 0
        return _train(args)


def _train(args: argparse.Namespace) -> int:
    from encoder import load_encoder
    from encoder.training.recipe import train_encoder as train

    monitor = set_up_logging(args)
    if (args.teacher is None) == (has_teacher := OBJECTIVES[args.objective].teacher):
        advice = "requires --teacher ENCODER" if has_teacher else "has no teacher; omit --teacher"
        raise ValueError(f"--objective {args.objective} {advice}")
    recipe = _recipe(args)
    measures = _measures(args, recipe.files)
    teacher = load_encoder(args.teacher, precision="auto") if args.teacher else None
    start = load_encoder(args.start) if args.start else None
    with monitor.stage("train", recipe.options.steps, "steps") as meter:
        best = train(
            recipe,
            args.output,
            teacher=teacher,
            start=start,
            measures=measures,
            on_begin=meter.begin,
            on_step=lambda: meter.advance(1),
        )
    for name, parts in best.items():
        for part, value in sorted(parts.items()):
            sys.stdout.write(f"{part}\t{name}\t{100 * value:.2f}%\n")
    return 0


def _recipe(args: argparse.Namespace) -> Recipe:
    from encoder.training.reading import find_text

    kinds = (*ARCHITECTURES.values(), *OBJECTIVES.values(), TrainingOptions)
    more = ("architecture", "objective")
    options = training.training_options(**given_fields(args, *kinds, more=more))
    texts = find_text(args.data, OBJECTIVES[args.objective])
    names = texts if args.pairs is None else dict.fromkeys(args.pairs)
    if unknown := [name for name in names if name not in texts]:
        raise ValueError(f"--pairs {unknown[0]}: not in {args.data}; use {', '.join(texts)}")
    return Recipe(
        files={name: texts[name] for name in names},
        exclude=frozenset(filter(None, args.exclude)),
        corpus_weights=reject_repeats("--corpus-weight", args.corpus_weight),
        pair_weights=reject_repeats("--pair-weight", args.pair_weight),
        tasks=training.named_tasks(args.task),
        best_by=args.best_by or options.objective.best_by,
        options=options,
        **given_fields(args, Recipe),
    )


def _measures(args: argparse.Namespace, pairs: Collection[str]) -> list[Measure]:
    from eval.tasks.while_training import bucc_f1, tatoeba_error

    places = {"tatoeba": (args.tatoeba, tatoeba_error), "bucc": (args.bucc, bucc_f1)}
    for name, (place, _) in places.items():
        if place is None and (args.best_by or "").startswith(name):
            raise ValueError(f"--best-by {args.best_by} requires --{name} DIR")
    return [measure(place, pairs) for place, measure in places.values() if place is not None]


def _add_map(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Use OUT with --encoder OUT, --src-lang and --tgt-lang. OUT/training contains a "
        "checkpoint; rerun the same command to resume. To choose between map, bootstrap and train, "
        "see docs/new-language.md."
    )
    sides = (
        "text, as for adit mine, or word vectors in a .vec file of fastText",
        "text in the other language, or a .vec file",
    )
    add_texts(parser, *sides)
    add = parser.add_argument
    text = (
        "source of the first map between the languages' word vectors, which --refinements improve; "
        f"{making.IDENTICAL}: words with the same spelling in both languages; {making.SIMILARITY}: "
        f"word similarities within each language (can fail); {making.ADVERSARIAL}: a network that "
        "learns to recognise mapped words until it cannot, then self-learning (minutes; can fail; "
        f"needs torch); {making.ALONE}: only the network's map, as in Conneau et al. 2018; or a "
        f"file with one word and its translation per line (default: {making.IDENTICAL})"
    )
    add("--start", default=making.IDENTICAL, metavar="HOW", help=text)
    default = making.MapOptions.refinements
    text = f"times to refit the map to mutual nearest words, 0 or more (default: {default})"
    add("--refinements", type=int, default=default, metavar="N", help=text)
    text = "also write each language's mapped word vectors, as text, to DIR/XX.vec"
    add("--vec", type=Path, metavar="DIR", help=text)
    add_fields(parser.add_argument_group("word vectors"), {"": WordOptions})
    add_common_options(parser)


@command(_add_map, "adit map")
def map_command(args: argparse.Namespace) -> int:
    """Make an encoder from text in two languages, without translations.

    Learn word vectors for each language, and map the source's to the target's.
    """
    monitor = set_up_logging(args)
    from pipelines.run.map_words import map_languages

    options = making.MapOptions(
        **given_texts(args),
        start=args.start,
        refinements=args.refinements,
        vec=args.vec,
        words=WordOptions(**given_fields(args, WordOptions)),
    )
    for number, value in enumerate(map_languages(options, monitor)):
        done = counted(number, "refinements")
        sys.stdout.write(f"{args.src_lang}-{args.tgt_lang}\t{done}\tmean cosine {value:.4f}\n")
    return 0


def _add_bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "OUT becomes the best encoder, for --encoder OUT. OUT/rounds contains the pairs, the "
        "encoder and the figures of each round. If it is interrupted, rerun the same command to "
        "resume. Training needs pip install 'bitext-adit[torch]'."
    )
    add_texts(parser, "source corpus, as for adit mine", "target corpus, in the same forms as SRC")
    add_encoder(parser)
    text = (
        "one file of known translations that every round is also trained on, in a format of adit "
        "train, named like known.XX-YY.tsv by the languages of SRC and TGT (default: none)"
    )
    parser.add_argument("--known", type=Path, metavar="FILE", help=text)
    add_fields(parser.add_argument_group("rounds"), {"": making.RoundOptions})
    add_common_options(parser)


@command(_add_bootstrap, "adit bootstrap")
def rounds(args: argparse.Namespace) -> int:
    """Improve an encoder in rounds of mining and training on the best pairs.

    Rounds end after --rounds, or if the number of held-out sentences with a mutual nearest
    neighbour stops growing.
    """
    monitor = set_up_logging(args)
    from pipelines.run.bootstrap import bootstrap

    each = making.RoundOptions(**given_fields(args, making.RoundOptions))
    known = {"encoder": args.encoder, "known": args.known, "each": each}
    figures = bootstrap(making.BootstrapOptions(**given_texts(args), **known), monitor)
    for number, values in enumerate(figures, start=1):
        sys.stdout.write(
            f"round {number}\t{values['pairs']} pairs\t{values['kept by']}\t"
            f"{values['mutual']} held-out sentences with a mutual nearest neighbour\n"
        )
    return 0
