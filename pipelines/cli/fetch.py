"""Run ``adit fetch``."""

import argparse
import sys
from pathlib import Path

from encoder.laser.languages import PUBLISHER, fetch_laser
from miner.commandline import command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit fetch``."""
    parser.epilog = "Files that are there are checked and kept; a partial download resumes."
    add = parser.add_argument
    add("language", metavar="XX", help="ISO 639 (de, wol) or FLORES code (kas_Deva)")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the files")
    add("--url", default=PUBLISHER, metavar="URL", help=f"a mirror (default: {PUBLISHER})")
    add("--offline", action="store_true", help="fetch nothing; check the files that are there")


@command(add_arguments, "fetch-laser")
def fetch_laser_command(args: argparse.Namespace) -> int:
    """Fetch LASER's encoder for a language, LASER3's or else LASER2; print what --encoder takes."""
    path = fetch_laser(args.language, args.output, publisher=args.url, offline=args.offline)
    kind = "laser3" if path.name.startswith("laser3") else "laser"
    sys.stdout.write(f"{kind}:{path}\n")
    return 0
