"""The command lines bucc-score and eval-encoder.

What is heavy (numpy, pyarrow, torch) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from miner.commandline import run_command

# Those of the bundled encoder, English apart.
TATOEBA_LANGUAGES = ("de", "fr", "es", "ru", "zh", "cs", "it", "pt", "nl", "tr", "ja")


def bucc_score(argv: list[str] | None = None) -> int:
    """Run ``bucc-score``; the exit status."""
    parser = _bucc_score_parser()
    args = parser.parse_args(argv)
    args.source, args.target = _side(parser, args, "src"), _side(parser, args, "tgt")
    if (args.source is None) != (args.target is None):
        parser.error("give the sentences of both sides or of neither")
    return run_command(lambda: _bucc_score(args), parser.prog)


def eval_encoder(argv: list[str] | None = None) -> int:
    """Run ``eval-encoder``; the exit status."""
    parser = _eval_encoder_parser()
    args = parser.parse_args(argv)
    run = _eval_bucc if args.task == "bucc" else _eval_tatoeba
    return run_command(lambda: run(args), parser.prog)


def _bucc_score_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bucc-score",
        description="Precision, recall and F1 of mined pairs against gold pairs.",
        epilog="A pair is extracted if its score is strictly above the threshold. Pairs with equal "
        "scores stand or fall together; a repeated sentence stands for all its ids.",
    )
    add = parser.add_argument
    add("pairs", type=Path, metavar="PAIRS", help="output of mine-corpus: .tsv, .jsonl or .parquet")
    add("--gold", type=Path, metavar="FILE", help="SOURCE_ID TAB TARGET_ID lines")
    for name, side in (("src", "source"), ("tgt", "target")):
        group = parser.add_argument_group(f"{side} sentences (needed where PAIRS is .tsv)")
        add = group.add_argument
        add(f"--{name}", type=Path, metavar="FILE", help="ID TAB sentence lines")
        add(f"--{name}-texts", type=Path, metavar="FILE", help="sentences, one a line ...")
        add(f"--{name}-ids", type=Path, metavar="FILE", help="... and their ids, line by line")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--threshold", type=_threshold, metavar="T", help="extract pairs above T (default: all)"
    )
    choice.add_argument(
        "--optimize", action="store_true", help="use the threshold with the best F1 on this gold"
    )
    add = parser.add_argument
    add("--output", type=Path, metavar="FILE", help="write the extracted id pairs")
    add("--json", action="store_true", help="print JSON; figures are fractions from 0 to 1")
    add(
        "--compat",
        choices=["laser"],
        help="score as LASER's bucc.py does: --optimize is the default, a score equal to the "
        "threshold is extracted, repeated sentences are left out; the signature goes to stderr",
    )
    return parser


def _threshold(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}")
    return value


def _side(
    parser: argparse.ArgumentParser, args: argparse.Namespace, name: str
) -> tuple[Path, Path | None] | None:
    """Where one side's sentences are: (lines with ids, None), (texts, ids), or None."""
    joined, texts, ids = (getattr(args, name + part) for part in ("", "_texts", "_ids"))
    if joined is not None and texts is None and ids is None:
        return joined, None
    if joined is None and texts is not None and ids is not None:
        return texts, ids
    if joined is None and texts is None and ids is None:
        return None
    parser.error(f"give either --{name}, or both --{name}-texts and --{name}-ids")


def _bucc_score(args: argparse.Namespace) -> int:
    from eval.scoring import (
        OPTIMIZED,
        ScoringOptions,
        SideFiles,
        score_pairs,
        score_pairs_like_laser,
    )

    laser = args.compat == "laser"
    optimize = args.optimize or (laser and args.threshold is None)
    given = -math.inf if args.threshold is None else args.threshold
    options = ScoringOptions(
        pairs=args.pairs,
        gold=args.gold,
        source=args.source and SideFiles(texts=args.source[0], ids=args.source[1]),
        target=args.target and SideFiles(texts=args.target[0], ids=args.target[1]),
        threshold=OPTIMIZED if optimize else given,
        output=args.output,
    )
    report = score_pairs_like_laser(options) if laser else score_pairs(options)
    if report.remark is not None:
        _note("bucc-score", report.remark)
    if args.json:
        _print_json(report.record)
        return 0
    sys.stdout.write(f"{report.line}\n")
    # Programs that read bucc.py's stdout find nothing else in it.
    (sys.stderr if laser else sys.stdout).write(f"{report.signature}\n")
    return 0


def _eval_encoder_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="eval-encoder", description="Measure a sentence encoder on data with known answers."
    )
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    bucc = tasks.add_parser(
        "bucc",
        help="mine comparable corpora with gold pairs: F1",
        description="Mine two splits of each language pair; the threshold with the best F1 on the "
        "first is applied to the second. 'oracle F1' is the best any threshold could reach.",
    )
    add = bucc.add_argument
    add("directory", type=Path, metavar="DIR", help="holds xx-en/xx-en.SPLIT.xx, .en and .gold")
    add("--pair", action="append", metavar="xx-en", help="may be repeated; all (the default): each")
    add("--tune", metavar="SPLIT", help="choose the threshold on it (default: training)")
    add("--test", metavar="SPLIT", help="apply the threshold to it (default: sample)")
    add("-k", type=_count, default=4, metavar="K", help="neighbourhood size (default: 4)")
    add("--margin", default="ratio", help="ratio, distance, absolute or csls (default: ratio)")
    add("--retrieval", default="max", help="max, intersect, forward or backward (default: max)")
    add("--output-dir", type=Path, metavar="DIR", help="write the mined pairs and report.json here")
    tatoeba = tasks.add_parser(
        "tatoeba",
        help="find translations by similarity search: error rate",
        description="Error rate of nearest-neighbour search by cosine, both ways.",
    )
    add = tatoeba.add_argument
    add("directory", type=Path, metavar="DIR", help="holds tatoeba.xxx-eng.xxx and .eng")
    add(
        "--lang",
        nargs="+",
        metavar="XX",
        help=f"ISO 639-3 or 639-1 codes (default: {' '.join(TATOEBA_LANGUAGES)}); all: each",
    )
    for task in (bucc, tatoeba):
        task.add_argument("--encoder", default="mini", metavar="SPEC", help="default: mini")
        task.add_argument("--json", action="store_true", help="print JSON; fractions from 0 to 1")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return int(text)


def _eval_bucc(args: argparse.Namespace) -> int:
    from eval.bucc_command import BuccOptions, run_bucc

    options = BuccOptions(
        directory=args.directory,
        pairs=None if args.pair in (None, ["all"]) else tuple(args.pair),
        tune=args.tune,
        test=args.test,
        encoder=args.encoder,
        k=args.k,
        margin=args.margin,
        retrieval=args.retrieval,
        output_dir=args.output_dir,
    )
    record = run_bucc(options, tell=_quiet if args.json else _say, note=_eval_note)
    if args.json:
        _print_json(record)
    return 0


def _eval_tatoeba(args: argparse.Namespace) -> int:
    from eval.tatoeba_command import run_tatoeba

    languages = TATOEBA_LANGUAGES if args.lang is None else tuple(args.lang)
    record = run_tatoeba(
        args.directory,
        languages=None if languages == ("all",) else languages,
        encoder_spec=args.encoder,
        tell=_quiet if args.json else _say,
    )
    if args.json:
        _print_json(record)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # a row is worth seeing while the next one is computed


def _quiet(line: str) -> None:
    pass


def _note(program: str, remark: str) -> None:
    sys.stderr.write(f"{program}: note: {remark}\n")


def _eval_note(remark: str) -> None:
    _note("eval-encoder", remark)


def _print_json(record: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
