"""The command ``adit score``, with late imports, which prints its errors."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from miner.commandline import command, parse_threshold

if TYPE_CHECKING:
    from eval.scoring import SideFiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit score``, and set the help's epilog."""
    parser.epilog = (
        "A pair is extracted if its score is above the threshold. Pairs with equal scores are "
        "extracted together. A duplicate sentence counts for all its ids."
    )
    add = parser.add_argument
    text = "mined pairs: .tsv, .jsonl, .parquet, .dataset or .tmx; text can be compressed"
    add("pairs", type=Path, metavar="PAIRS", help=text)
    text = "known translations: SOURCE_ID TAB TARGET_ID; optional with --threshold and --output"
    add("--gold", type=Path, metavar="FILE", help=text)
    for name, side in (("src", "source"), ("tgt", "target")):
        group = parser.add_argument_group(f"{side} sentences (required if PAIRS has no ids)")
        add = group.add_argument
        text = f"{side} sentences: ID TAB sentence lines, or .jsonl or .parquet with id and text"
        add(f"--{name}", type=Path, metavar="FILE", help=text)
        text = f"instead of --{name}, sentences only, one per line; requires --{name}-ids"
        add(f"--{name}-texts", type=Path, metavar="FILE", help=text)
        text = f"ids of the lines of --{name}-texts, one per line"
        add(f"--{name}-ids", type=Path, metavar="FILE", help=text)
    add = parser.add_mutually_exclusive_group().add_argument
    text = "extract pairs that score above T, on the scale of the scores in PAIRS (default: all)"
    add("--threshold", type=parse_threshold, metavar="T", help=text)
    text = "choose the threshold with the best F1 on --gold"
    add("--optimize", action="store_const", const="optimized", dest="threshold", help=text)
    add = parser.add_argument
    text = "also write the ids of extracted pairs, SOURCE_ID TAB TARGET_ID lines, to FILE"
    add("--output", type=Path, metavar="FILE", help=text)
    text = "print JSON, with fractions from 0 to 1 (default: text, with percentages)"
    add("--json", action="store_true", help=text)
    text = (
        "score like LASER's bucc.py: --optimize is the default, a score equal to the threshold is "
        "extracted, and duplicate sentences are skipped; the signature goes to stderr; needs PAIRS "
        "in .tsv, and source and target sentences"
    )
    add("--compat", choices=["laser"], help=text)


def _sides(args: argparse.Namespace) -> "tuple[SideFiles, SideFiles] | None":
    source, target = _side_files(args, "src"), _side_files(args, "tgt")
    if (source is None) != (target is None):
        side = "tgt" if source else "src"
        raise ValueError(f"missing --{side}; pass the sentences of both sides, or of neither")
    return (source, target) if source and target else None


def _side_files(args: argparse.Namespace, name: str) -> "SideFiles | None":
    joined, texts, ids = (getattr(args, name + suffix) for suffix in ("", "_texts", "_ids"))
    if joined and (texts or ids):
        other = "texts" if texts else "ids"
        raise ValueError(f"--{name} conflicts with --{name}-{other}; omit one of them")
    if (texts is None) != (ids is None):
        lacking, given = ("texts", "ids") if texts is None else ("ids", "texts")
        raise ValueError(f"--{name}-{given} requires --{name}-{lacking}; pass both files")
    return (joined,) if joined else (texts, ids) if texts else None


@command(add_arguments, "bucc-score")
def bucc_score(args: argparse.Namespace) -> int:
    """Score mined pairs against gold pairs by precision, recall and F1."""
    from eval.output import print_json, print_note
    from eval.scoring import OPTIMIZED, ScoringOptions, score_pairs, score_pairs_like_laser

    laser = args.compat == "laser"
    default = OPTIMIZED if laser else -math.inf
    threshold = default if args.threshold is None else args.threshold
    sides = _sides(args)
    options = ScoringOptions(
        pairs=args.pairs, gold=args.gold, sides=sides, threshold=threshold, output=args.output
    )
    report = score_pairs_like_laser(options) if laser else score_pairs(options)
    if report.remark is not None:
        print_note("bucc-score", report.remark)
    if args.json:
        print_json(report.record)
        return 0
    sys.stdout.write(f"{report.line}\n")
    # Programs that read bucc.py's stdout must not find a signature in it.
    (sys.stderr if laser else sys.stdout).write(f"{report.record['signature']}\n")
    return 0
