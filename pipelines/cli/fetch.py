"""The command line fetch-laser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from encoder.laser.download import PUBLISHER, fetch_laser
from miner.commandline import product_version, run_command


def fetch_laser_command(argv: list[str] | None = None) -> int:
    """Run ``fetch-laser``; the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    return run_command(lambda: _fetch(args), parser.prog)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fetch-laser",
        description="Fetch the encoder that LASER has for a language, LASER3's or else LASER2, and "
        "print what --encoder takes.",
        epilog="What is there already is checked and kept; a download that broke off goes on.",
    )
    add = parser.add_argument
    add("language", metavar="XX", help="ISO 639 (de, wol) or FLORES code (kas_Deva)")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the files")
    add("--url", default=PUBLISHER, metavar="URL", help=f"a mirror (default: {PUBLISHER})")
    add("--offline", action="store_true", help="fetch nothing; check what is there")
    add("--version", action="version", version=f"%(prog)s {product_version()}")
    return parser


def _fetch(args: argparse.Namespace) -> int:
    path = fetch_laser(args.language, args.output, publisher=args.url, offline=args.offline)
    kind = "laser3" if path.name.startswith("laser3") else "laser"
    sys.stdout.write(f"{kind}:{path}\n")
    return 0
