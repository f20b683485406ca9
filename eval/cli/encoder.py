"""The command ``adit evaluate``, whose tasks are in ``eval.tasks``."""

import argparse
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from eval.tasks import TASKS, load_task
from miner.commandline import add_version, run_command

if TYPE_CHECKING:
    from eval.output import Show


def eval_encoder(argv: Sequence[str] | None = None, prog: str = "eval-encoder") -> int:
    """Run ``adit evaluate`` under the name ``prog``, and return the status.

    SystemExit ends ``--help`` and a wrong ``argv``, by default sys.argv[1:]. See ``run_command``.
    """
    argv = sys.argv[1:] if argv is None else argv
    args = encoder_parser(prog, argv[:1]).parse_args(argv)
    return run_command(lambda: _run(args), prog)


def encoder_parser(prog: str, tasks: Collection[str] = TASKS) -> argparse.ArgumentParser:
    """Build the parser of ``adit evaluate``.

    Of all ``TASKS``, only ``tasks`` have options, for which their modules are imported.
    """
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Measure a sentence encoder on data with known answers. Most figures have a "
        "95% interval, from resampling the sentences. A signature names what they depend on.",
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
                text = "encoder to measure, such as mini or use; see adit mine (default: mini)"
                add("--encoder", default="mini", metavar="SPEC", help=text)
            text = "print JSON, with fractions instead of percentages (default: a table)"
            add("--json", action="store_true", help=text)
    return parser


def _run(args: argparse.Namespace) -> int:
    from eval.output import print_json, print_line
    from eval.tasks.suite import run_suite

    module = load_task(args.task)
    show: Show = (lambda line: None) if args.json else print_line
    if hasattr(module, "run"):
        record = module.run(args, show)
    else:
        record = run_suite(module.prepare(args), args.encoder, show)
    if args.json:
        print_json(record)
    return 0
