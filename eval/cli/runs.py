"""What mine-corpus does with a finished run: report, why, calibrate and rescore.

What is heavy (numpy, pyarrow, torch) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import sys

from miner.commandline import run_command
from miner.storage.places import place

COMMANDS = ("report", "why", "calibrate", "rescore")


def run_subcommand(argv: list[str]) -> int:
    """Run ``mine-corpus report|why|calibrate|rescore ...``; the exit status."""
    parser = runs_parser()
    args = parser.parse_args(argv)
    return run_command(lambda: int(args.run(args)), f"{parser.prog} {args.command}")


def runs_parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = argparse.ArgumentParser(prog="mine-corpus")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser(
        "report", description="Write a page about a finished run, to be read in a browser."
    )
    why = commands.add_parser(
        "why", description="Tell why a pair was mined or not: neighbours, margin, rivals."
    )
    calibrate = commands.add_parser(
        "calibrate",
        description="Estimate without gold how likely each pair is right, from sentences that are "
        "known to have no translation on the other side.",
    )
    rescore = commands.add_parser(
        "rescore",
        description="Learn a second score, from margin, cosine, ranks, lengths and numbers, of "
        "pairs that are known, such as translations that were put into both corpora.",
    )
    for command in (report, why, calibrate, rescore):
        command.add_argument(
            "directory", type=place, metavar="DIR", help="what a run was given as --work-dir"
        )
    report.add_argument(
        *("-o", "--output"), type=place, required=True, metavar="FILE", help="such as report.html"
    )
    report.add_argument("--gold", type=place, metavar="FILE", help="SOURCE_ID TAB TARGET_ID lines")
    rescore.add_argument(
        "--known", type=place, required=True, metavar="FILE", help="SOURCE_ID TAB TARGET_ID lines"
    )
    why.add_argument("source_id", metavar="SRC_ID", help="id of a source sentence")
    why.add_argument("target_id", metavar="TGT_ID", help="id of a target sentence")
    for command in (calibrate, rescore):
        command.add_argument(
            *("-o", "--output"), type=place, required=True, metavar="FILE", help="pairs as .jsonl"
        )
    calibrate.add_argument(
        "--fdr",
        type=_rate,
        metavar="R",
        help="keep as many pairs as can be with a share of at most R wrong, such as 0.05",
    )
    for command in (report, calibrate):
        for side, other in (("src", "TGT"), ("tgt", "SRC")):
            command.add_argument(
                f"--decoys-{side}",
                type=place,
                metavar="FILE",
                help=f"lines like those of the run that {other} has no translation of",
            )
    runs = _report, _why, _calibrate, _rescore
    for command, run in zip((report, why, calibrate, rescore), runs, strict=True):
        command.set_defaults(run=run)
    return parser


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
