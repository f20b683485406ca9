"""The work of the command lines of ``eval.cli.runs`` once they are parsed."""

import argparse

from eval.data.sentences import read_gold
from eval.data.textfiles import write_text
from eval.output import Table, print_line
from eval.report.page import render
from eval.runs.calibration import by_judge, thresholds, write_calibrated
from eval.runs.explain import describe, explain
from eval.runs.gold import Gold
from eval.runs.marks import by_marks, read_judged
from eval.runs.pairs import check_jsonl
from eval.runs.store import open_run


def report(args: argparse.Namespace) -> int:
    """Write a page about a run."""
    run = open_run(args.directory)
    page = render(run, gold=Gold.of(run, read_gold(args.gold)) if args.gold else None)
    write_text(args.output, page)
    return 0


def why(args: argparse.Namespace) -> int:
    """Print why a pair was mined or not."""
    run = open_run(args.directory)
    rows = []
    for side, given in ((run.source, args.source_id), (run.target, args.target_id)):
        (row,) = side.rows_of([given])
        if row is None:
            raise ValueError(
                f"{args.directory}: no {side.name} sentence {given!r}; its ids are such as "
                f"{side.first_id!r}"
            )
        rows.append(row)
    print_line(describe(run, explain(run, *rows)))
    return 0


def calibrate(args: argparse.Namespace) -> int:
    """Print thresholds by what is known, and write the pairs with their probabilities."""
    check_jsonl(args.output)
    run = open_run(args.directory)
    estimates = by_marks(run, read_judged(args.known, run)) if args.known else by_judge(run)
    table = Table("wrong", [f"{run.score_name} above", "pairs", "right", "95% interval"])
    print_line(table.header)
    for wanted, threshold, kept, right, interval in thresholds(estimates):
        print_line(table.row(f"{wanted:.0%}", f"{threshold:.4f}", kept, f"{right:.0f}", interval))
    kept = write_calibrated(run, estimates, args.output, fdr=args.fdr)
    print_line(f"{kept} of {len(run.pairs)} pairs written")
    return 0
