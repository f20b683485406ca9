"""The command ``adit``, and its subcommands, which are loaded when called.

Functions return the status of ``run_command``. Wrong arguments raise SystemExit.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from miner.commandline import add_version

# By name, a summary, and the function that is called as ``function(arguments, prog)``.
COMMANDS: dict[str, tuple[str, str]] = {
    "mine": ("mine two corpora for translation pairs", "pipelines.cli.mine:mine_corpus"),
    "rate": ("score the pairs of a parallel corpus", "pipelines.cli.mine:rate_corpus"),
    "convert": ("convert a file of sentence pairs", "pipelines.cli.pairs:convert_pairs"),
    "align": (
        "align a document with its translation",
        "pipelines.cli.align_documents:align_documents",
    ),
    "embed": ("encode the lines of a corpus as vectors", "pipelines.cli.mine:embed_corpus"),
    "score": ("score mined pairs against gold pairs", "eval.cli.bucc_score:bucc_score"),
    "evaluate": ("measure an encoder on data with known answers", "eval.cli.encoder:eval_encoder"),
    "train": ("train an encoder on parallel text", "pipelines.cli.train:train_encoder"),
    "map": ("make an encoder from text without translations", "pipelines.cli.train:map_command"),
    "bootstrap": ("improve an encoder on mined pairs", "pipelines.cli.train:rounds"),
    "encoders": ("list encoders and the languages they cover", "pipelines.cli.encoders:encoders"),
    "fetch": ("fetch LASER's encoder for a language", "pipelines.cli.encoders:fetch_command"),
    "pair": ("pair the documents of two corpora", "pipelines.cli.documents:pair_command"),
    "split": ("split raw documents into sentences", "pipelines.cli.documents:split_command"),
    "status": ("show the progress of the run in a work folder", "pipelines.cli.workdir:status"),
    "clean": ("empty the work folder of a finished run", "pipelines.cli.workdir:clean"),
    "report": ("write a web page about a finished run", "eval.cli.runs:report"),
    "why": ("show why a pair was or was not mined", "eval.cli.runs:why"),
    "calibrate": (
        "estimate error rates per threshold, without gold pairs",
        "eval.cli.runs:calibrate",
    ),
}

# Commands for the work folder of a run. They and ``encoders`` are also commands of mine-corpus.
WORK_FOLDER_COMMANDS = ("status", "clean", "report", "why", "calibrate")
MINING_COMMANDS = ("encoders", *WORK_FOLDER_COMMANDS)


def adit(argv: Sequence[str] | None = None) -> int:
    """Run ``adit`` with ``argv``, by default the process's arguments."""
    argv = sys.argv[1:] if argv is None else argv
    name = _parser().parse_args(argv[:1]).command
    return run(name, argv[1:], f"adit {name}")


def run(name: str, arguments: Sequence[str], prog: str) -> int:
    """Run the command ``name`` of ``COMMANDS``, called ``prog`` in messages."""
    module, _, function = COMMANDS[name][1].partition(":")
    return getattr(import_module(module), function)(arguments, prog)


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {text}" for name, (text, _) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="adit",
        usage="adit [-h] [--version] COMMAND ...",
        description="Find sentence pairs in two corpora that are translations of each other.",
        epilog=f"commands:\n{commands}\n\n"
        "To list the options of a command, run 'adit COMMAND --help'.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    parser.add_argument(
        "command", choices=COMMANDS, metavar="COMMAND", help="command to run; see the list below"
    )
    return parser
