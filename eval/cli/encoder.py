"""The command line eval-encoder.

What is heavy (numpy, torch) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from eval.cli.bucc_score import print_json, print_note
from miner.commandline import add_version, run_command

# Those of the bundled encoder, English apart.
LANGUAGES = ("de", "fr", "es", "ru", "zh", "cs", "it", "pt", "nl", "tr", "ja")
# The names in miner.margin, which would load NumPy for --help.
MARGINS = ("ratio", "distance", "absolute", "csls")

Tell = Callable[[str], None]


def eval_encoder(argv: Sequence[str] | None = None, prog: str = "eval-encoder") -> int:
    """Run ``adit evaluate``; return the exit status."""
    parser = encoder_parser(prog)
    args = parser.parse_args(argv)
    return run_command(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    record = args.run(args, _quiet if args.json else _say)
    if args.json:
        print_json(record)
    return 0


def encoder_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit evaluate``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Measure a sentence encoder on data with known answers. Figures come with a "
        "95% interval, from resampling the sentences, and with a signature.",
    )
    add_version(parser)
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    _add_bucc(tasks)
    _add_tatoeba(tasks)
    _add_xsim(tasks)
    _add_xsim_pp(tasks)
    _add_retrieval(tasks)
    _add_sts(tasks)
    _add_fdr(tasks)
    _add_filters(tasks)
    for task in tasks.choices.values():
        task.add_argument("--encoder", default="mini", metavar="SPEC", help="default: mini")
        task.add_argument("--json", action="store_true", help="print JSON; fractions from 0 to 1")
    return parser


def _add_bucc(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = tasks.add_parser(
        "bucc",
        help="mine comparable corpora with gold pairs: F1",
        description="Mine two splits of each language pair; the threshold with the best F1 on the "
        "first is applied to the second. 'oracle F1' is the best any threshold could reach.",
    )
    add = task.add_argument
    add("directory", type=Path, metavar="DIR", help="holds xx-en/xx-en.SPLIT.xx, .en and .gold")
    add("--pair", action="append", metavar="xx-en", help="may be repeated; all (the default): each")
    add("--tune", metavar="SPLIT", help="choose the threshold on it (default: training)")
    add("--test", metavar="SPLIT", help="apply the threshold to it (default: sample)")
    add("-k", type=_count, default=4, metavar="K", help="neighbourhood size (default: 4)")
    add("--margin", default="ratio", help="ratio, distance, absolute or csls (default: ratio)")
    add("--retrieval", default="max", help="max, intersect, forward or backward (default: max)")
    add("--align", action="store_true", help="score pairs by their words, too, as mine-corpus does")
    add(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="write here the mined pairs, those above the threshold as ids, and report.json",
    )
    task.set_defaults(run=_bucc)


def _add_tatoeba(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = tasks.add_parser(
        "tatoeba",
        help="find translations by similarity search: error rate",
        description="Error rate of nearest-neighbour search by cosine, both ways, beside LASER's.",
    )
    task.add_argument(
        "directory", type=Path, metavar="DIR", help="holds tatoeba.xxx-eng.xxx and .eng"
    )
    _add_languages(task, "ISO 639-3 or 639-1 codes")
    task.set_defaults(run=_tatoeba)


def _add_xsim(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = _add_aligned(
        tasks,
        "xsim",
        help="the same by margin, among aligned texts: error rate",
        description="Error rate of margin-best search from each language into English.",
    )
    task.add_argument(
        "--matrix",
        choices=MARGINS,
        metavar="MARGIN",
        help="search between every two languages instead, by ratio, distance, absolute or csls",
    )
    task.set_defaults(run=_xsim)


def _add_xsim_pp(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = _add_aligned(
        tasks,
        "xsim++",
        help="the same among English sentences and falsified copies of them",
        description="Error rate of ratio-margin search among English sentences and copies of them "
        "with another number, another name or the opposite meaning; and what was found instead.",
    )
    task.set_defaults(run=_xsim_pp)


def _add_retrieval(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = _add_aligned(
        tasks,
        "retrieval",
        help="is the translation among the 1, 5, 10 nearest?",
        description="P@1, P@5 and P@10 of each translation among it and other sentences.",
    )
    task.add_argument(
        "--others",
        type=_count_or_all,
        default=999,
        metavar="K",
        help="how many others, drawn for each sentence, or all (default: 999)",
    )
    task.set_defaults(run=_retrieval)


def _add_sts(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = tasks.add_parser(
        "sts",
        help="do people and vectors agree on how alike sentences are? Pearson's r",
        description="Pearson's r between people's scores and angular similarity.",
    )
    task.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="SCORE TAB sentence TAB sentence lines",
    )
    task.set_defaults(run=_sts)


def _add_fdr(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = tasks.add_parser(
        "fdr",
        help="are thresholds chosen without gold what they claim to be?",
        description="Choose thresholds for 1, 5, 10 and 20%% wrong pairs by decoys, without gold, "
        "and tell what gold says of them, beside the threshold with the best F1.",
    )
    add = task.add_argument
    add("directory", type=Path, metavar="DIR", help="holds xx-en/xx-en.SPLIT.xx, .en and .gold")
    add("--pair", action="append", metavar="xx-en", help="may be repeated (default: each)")
    add("--split", default="training", help="the split that is mined (default: training)")
    add(
        "--decoys",
        default="sample",
        metavar="SPLIT",
        help="its sentences are the decoys, its gold pairs are planted (default: sample)",
    )
    task.set_defaults(run=_fdr)


def _add_filters(tasks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    task = tasks.add_parser(
        "filters",
        help="what do rules about texts and a second score do to F1?",
        description="F1 with thresholds chosen on one split and applied to another: of the margin, "
        "of it without what each filter rejects, and of a logistic model trained on the first.",
    )
    add = task.add_argument
    add("directory", type=Path, metavar="DIR", help="holds xx-en/xx-en.SPLIT.xx, .en and .gold")
    add("--pair", action="append", metavar="xx-en", help="may be repeated (default: each)")
    add("--tune", default="sample", metavar="SPLIT", help="default: sample")
    add("--test", default="training", metavar="SPLIT", help="default: training")
    task.set_defaults(run=_filters)


def _add_aligned(
    tasks: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    *,
    help: str,  # noqa: A002 - argparse's own name
    description: str,
) -> argparse.ArgumentParser:
    task = tasks.add_parser(name, help=help, description=description)
    task.add_argument(
        "directory",
        type=Path,
        metavar="DIR",
        help="holds xx.txt, newstest2019-ref.xxx.txt or xxx_Yyyy.devtest for each language",
    )
    _add_languages(task, "as the files name them, besides English")
    return task


def _add_languages(task: argparse.ArgumentParser, what: str) -> None:
    task.add_argument(
        "--lang",
        nargs="+",
        metavar="XX",
        default=LANGUAGES,
        help=f"{what} (default: {' '.join(LANGUAGES)}); all: each",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return int(text)


def _count_or_all(text: str) -> int | None:
    return None if text == "all" else _count(text)


def _languages(args: argparse.Namespace) -> Sequence[str] | None:
    return None if list(args.lang) == ["all"] else tuple(args.lang)


def _bucc(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.bucc import BuccOptions, run_bucc

    options = BuccOptions(
        directory=args.directory,
        pairs=None if args.pair in (None, ["all"]) else tuple(args.pair),
        tune=args.tune,
        test=args.test,
        encoder=args.encoder,
        k=args.k,
        margin=args.margin,
        retrieval=args.retrieval,
        align=args.align,
        output_dir=args.output_dir,
    )
    return run_bucc(options, tell=tell, note=lambda remark: print_note("eval-encoder", remark))


def _tatoeba(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.tatoeba import run_tatoeba

    return run_tatoeba(
        args.directory, languages=_languages(args), encoder_spec=args.encoder, tell=tell
    )


def _xsim(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.aligned import load
    from eval.tasks.xsim import run_xsim, run_xsim_matrix

    loaded = load(args.directory, _languages(args), args.encoder)
    if args.matrix is not None:
        return run_xsim_matrix(loaded, margin=args.matrix, tell=tell)
    return run_xsim(loaded, tell=tell)


def _xsim_pp(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.aligned import load
    from eval.tasks.xsim import run_xsim_pp

    return run_xsim_pp(load(args.directory, _languages(args), args.encoder), tell=tell)


def _retrieval(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.aligned import load
    from eval.tasks.retrieval import run_retrieval

    loaded = load(args.directory, _languages(args), args.encoder)
    return run_retrieval(loaded, others=args.others, tell=tell)


def _sts(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.sts import run_sts

    return run_sts(args.files, encoder_spec=args.encoder, tell=tell)


def _fdr(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.fdr import run_fdr

    return run_fdr(
        args.directory,
        pairs=args.pair,
        split=args.split,
        decoys=args.decoys,
        encoder_spec=args.encoder,
        tell=tell,
    )


def _filters(args: argparse.Namespace, tell: Tell) -> dict[str, object]:
    from eval.tasks.filters import run_filters

    return run_filters(
        args.directory,
        pairs=args.pair,
        tune=args.tune,
        test=args.test,
        encoder_spec=args.encoder,
        tell=tell,
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # a row is worth seeing while the next one is computed


def _quiet(line: str) -> None:
    pass
