"""What the command lines of ``eval.cli.runs`` do once they are parsed."""

from __future__ import annotations

import argparse

from eval.data.sentences import read_gold
from eval.data.textfiles import write_text
from eval.output import Table, print_line
from eval.report.page import render
from eval.runs.calibration import Estimates, by_scores, fit_null, thresholds, write_calibrated
from eval.runs.explain import describe, explain
from eval.runs.gold import Gold
from eval.runs.marks import by_marks, read_judged
from eval.runs.pairs import check_jsonl
from eval.runs.rescoring import compare, write_rescored
from eval.runs.rescoring import rescore as second_scores
from eval.runs.store import open_run


def report(args: argparse.Namespace) -> int:
    """Write a page about a run."""
    run = open_run(args.directory)
    decoys = args.decoys_src, args.decoys_tgt
    page = render(
        run,
        gold=Gold.of(run, read_gold(args.gold)) if args.gold else None,
        null=fit_null(run, *decoys) if any(decoys) else None,
    )
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
    decoys = args.decoys_src, args.decoys_tgt
    if args.known:
        estimates = by_marks(run, read_judged(args.known, run))
    elif any(decoys):
        estimates = Estimates.by(fit_null(run, *decoys), run.pairs.score)
    else:
        estimates = by_scores(run)
    table = Table("wrong", [f"{run.score_name} above", "pairs", "right", "95% interval"])
    print_line(table.header)
    for wanted, threshold, kept, right, interval in thresholds(estimates):
        print_line(table.row(f"{wanted:.0%}", f"{threshold:.4f}", kept, f"{right:.0f}", interval))
    kept = write_calibrated(run, estimates, args.output, fdr=args.fdr)
    print_line(f"{kept} of {len(run.pairs)} pairs written")
    return 0


def rescore(args: argparse.Namespace) -> int:
    """Print how both scores rank the known pairs, and write the pairs by the second."""
    check_jsonl(args.output)
    run = open_run(args.directory)
    judged = read_judged(args.known, run)
    rescored = second_scores(run, judged)
    table = Table("kept", ["pairs", f"known by {run.score_name}", "by second score"])
    print_line(table.header)
    for share, *counts in compare(run, judged, rescored):
        print_line(table.row(f"{share:.0%}", *counts))
    write_rescored(run, rescored, args.output)
    return 0
