"""Run ``adit fetch``."""

import argparse
import sys
from pathlib import Path

from encoder.laser.download import PUBLISHER, fetch_laser
from miner.commandline import add_version, command


def fetch_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit fetch``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Fetch LASER's encoder for a language, LASER3's or else LASER2, and print "
        "what --encoder takes.",
        epilog="Files that are there are checked and kept; a partial download resumes.",
    )
    add = parser.add_argument
    add("language", metavar="XX", help="ISO 639 (de, wol) or FLORES code (kas_Deva)")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the files")
    add("--url", default=PUBLISHER, metavar="URL", help=f"a mirror (default: {PUBLISHER})")
    add("--offline", action="store_true", help="fetch nothing; check the files that are there")
    add_version(parser)
    return parser


@command(fetch_parser, "fetch-laser")
def fetch_laser_command(args: argparse.Namespace) -> int:
    """Run ``adit fetch``; return the exit status."""
    path = fetch_laser(args.language, args.output, publisher=args.url, offline=args.offline)
    kind = "laser3" if path.name.startswith("laser3") else "laser"
    sys.stdout.write(f"{kind}:{path}\n")
    return 0
