"""Mine two text files and keep what decoys say is right: no known translation is needed.

    python examples/mine_with_threshold.py news.de news.en other.en

other.en has sentences of the same kind that are certainly no translations of news.de.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.cli.main import adit

WRONG = "0.05"


def main(source: str, target: str, decoys: str) -> None:
    """Write good.jsonl: as many pairs as possible with an estimated 5 % of them wrong."""
    with TemporaryDirectory() as run:
        status = adit(["mine", source, target, "-o", str(Path(run, "all.tsv")), "--work-dir", run])
        if status == 0:
            choose = ["calibrate", run, "--decoys-tgt", decoys, "--fdr", WRONG]
            status = adit([*choose, "-o", "good.jsonl"])
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
