"""Run ``adit report``, ``why``, ``calibrate`` and ``rescore``, which read a finished run.

What is heavy (numpy, pyarrow, torch) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from miner.commandline import add_version, run_command
from miner.storage.places import place


def report(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit report``; return the exit status."""
    parser = _parser(prog, "Write a web page about a finished run.")
    add = parser.add_argument
    _add_output(parser, "the page, such as report.html")
    add("--gold", type=place, metavar="FILE", help="SOURCE_ID TAB TARGET_ID lines, to score pairs")
    _add_decoys(parser)
    return _run(_report, parser, argv)


def why(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit why``; return the exit status."""
    parser = _parser(prog, "Show why a pair was mined or not: neighbours, margin, rivals.")
    parser.add_argument("source_id", metavar="SRC_ID", help="id of a source sentence")
    parser.add_argument("target_id", metavar="TGT_ID", help="id of a target sentence")
    return _run(_why, parser, argv)


def calibrate(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit calibrate``; return the exit status."""
    parser = _parser(
        prog,
        "Estimate without gold how likely each pair is right, from sentences that are known to "
        "have no translation on the other side.",
    )
    _add_output(parser, "pairs with probabilities, .jsonl")
    parser.add_argument(
        "--fdr",
        type=_rate,
        metavar="R",
        help="keep as many pairs as possible with an estimated share of at most R wrong, such as "
        "0.05 (default: all pairs)",
    )
    _add_decoys(parser)
    return _run(_calibrate, parser, argv)


def rescore(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit rescore``; return the exit status."""
    parser = _parser(
        prog,
        "Learn a second score, from margin, cosine, ranks, lengths and numbers, of pairs that are "
        "known, such as translations that were put into both corpora.",
    )
    _add_output(parser, "pairs by the second score, .jsonl")
    parser.add_argument(
        "--known", type=place, required=True, metavar="FILE", help="SOURCE_ID TAB TARGET_ID lines"
    )
    return _run(_rescore, parser, argv)


def _parser(prog: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("directory", type=place, metavar="DIR", help="the --work-dir of the run")
    add_version(parser)
    return parser


def _add_output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(*("-o", "--output"), type=place, required=True, metavar="FILE", help=what)


def _add_decoys(parser: argparse.ArgumentParser) -> None:
    for side, other in (("src", "TGT"), ("tgt", "SRC")):
        parser.add_argument(
            f"--decoys-{side}",
            type=place,
            metavar="FILE",
            help=f"sentences like the run's that have no translation in {other}, to estimate how "
            "many pairs are wrong",
        )


def _run(
    command: Callable[[argparse.Namespace], int],
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
) -> int:
    args = parser.parse_args(argv)
    return run_command(lambda: command(args), parser.prog)


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, not {text!r}")
    return value


def _report(args: argparse.Namespace) -> int:
    from eval.data.sentences import read_gold
    from eval.data.textfiles import write_text
    from eval.report.page import render
    from eval.runs.calibration import fit_null
    from eval.runs.gold import Gold
    from eval.runs.store import open_run

    run = open_run(args.directory)
    decoys = args.decoys_src, args.decoys_tgt
    page = render(
        run,
        gold=Gold.of(run, read_gold(args.gold)) if args.gold else None,
        null=fit_null(run, *decoys) if any(decoys) else None,
    )
    write_text(args.output, page)
    return 0


def _why(args: argparse.Namespace) -> int:
    from eval.runs.explain import describe, explain
    from eval.runs.store import open_run

    run = open_run(args.directory)
    rows = []
    for name, side, given in (
        ("source", run.source, args.source_id),
        ("target", run.target, args.target_id),
    ):
        row = side.row_by_id.get(given)
        if row is None:
            raise ValueError(
                f"{args.directory}: no {name} sentence {given!r}; the first is {side.ids[0]!r}"
            )
        rows.append(row)
    sys.stdout.write(describe(run, explain(run, *rows)) + "\n")
    return 0


def _calibrate(args: argparse.Namespace) -> int:
    from eval.output import Table
    from eval.runs.calibration import describe, fit_null, write_calibrated
    from eval.runs.pairs import check_jsonl
    from eval.runs.store import open_run

    check_jsonl(args.output)
    if args.decoys_src is None and args.decoys_tgt is None:
        raise ValueError("give decoys for at least one side: --decoys-src or --decoys-tgt")
    run = open_run(args.directory)
    null = fit_null(run, args.decoys_src, args.decoys_tgt)
    table = Table("wrong", ["threshold", "pairs", "right"])
    sys.stdout.write(table.header + "\n")
    for wanted, threshold, kept, right in describe(run.pairs.score, null):
        sys.stdout.write(
            table.row(f"{wanted:.0%}", f"{threshold:.4f}", kept, f"{right:.0f}") + "\n"
        )
    kept = write_calibrated(run, null, args.output, fdr=args.fdr)
    sys.stdout.write(f"{kept} of {len(run.pairs)} pairs written\n")
    return 0


def _rescore(args: argparse.Namespace) -> int:
    from eval.data.sentences import read_gold
    from eval.output import Table
    from eval.runs.gold import Gold
    from eval.runs.pairs import check_jsonl
    from eval.runs.rescoring import compare, rescore, write_rescored
    from eval.runs.store import open_run

    check_jsonl(args.output)
    run = open_run(args.directory)
    gold = Gold.of(run, read_gold(args.known))
    rescored = rescore(run, gold)
    table = Table("kept", ["pairs", "known by margin", "by second score"])
    sys.stdout.write(table.header + "\n")
    for share, *counts in compare(run, gold, rescored):
        sys.stdout.write(table.row(f"{share:.0%}", *counts) + "\n")
    write_rescored(run, rescored, args.output)
    return 0
