"""Run ``adit evaluate``: its tasks are those of ``eval.tasks``."""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eval.tasks import TASKS, TaskModule, load_task
from miner.commandline import add_version, run_command

if TYPE_CHECKING:
    from eval.output import Record, Show


def eval_encoder(argv: Sequence[str] | None = None, prog: str = "eval-encoder") -> int:
    """Run ``adit evaluate``; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    parser = encoder_parser(prog, argv[:1])
    args = parser.parse_args(argv)
    return run_command(lambda: _run(args), parser.prog)


def encoder_parser(prog: str, tasks: Collection[str] = TASKS) -> argparse.ArgumentParser:
    """Return the parser, with the options of some tasks, whose modules are imported for that."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Measure a sentence encoder on data with known answers. Figures come with a "
        "95% interval, from resampling the sentences, and with a signature.",
    )
    add_version(parser)
    subparsers = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, text in TASKS.items():
        subparser = subparsers.add_parser(name, help=text)
        if name in tasks:
            module = load_task(name)
            subparser.description = module.__doc__
            module.add_arguments(subparser)
            add = subparser.add_argument
            if subparser.get_default("encoder") is None:
                text = "what to measure (default: mini)"
                add("--encoder", default="mini", metavar="SPEC", help=text)
            add("--json", action="store_true", help="print JSON; figures are fractions from 0 to 1")
            subparser.set_defaults(run=getattr(module, "run", None) or partial(_measure, module))
    return parser


def _measure(module: TaskModule, args: argparse.Namespace, show: "Show") -> "Record":
    from eval.tasks.suite import run_suite

    return run_suite(module.prepare(args), args.encoder, show)


def _run(args: argparse.Namespace) -> int:
    from eval.output import print_json, print_line

    show: Callable[[str], None] = (lambda line: None) if args.json else print_line
    record = args.run(args, show)
    if args.json:
        print_json(record)
    return 0
