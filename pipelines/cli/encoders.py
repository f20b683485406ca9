"""Run ``adit encoders``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import encoder
from encoder.coverage import read_coverage
from encoder.laser.languages import LASER2, LASER3
from miner.commandline import add_version, run_command

BATCH, TRIAL_SECONDS = 100, 0.5
QUALITIES = {
    "good": "search error up to 5%",
    "fair": "up to 15%",
    "weak": "above 15%",
}


def encoders(argv: Sequence[str] | None = None, prog: str = "adit encoders") -> int:
    """Run ``adit encoders``; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="List encoders with their languages and how well they cover these.",
        epilog="A search error is the share of sentences whose English translation is not found: "
        "on NTREX-128 by ratio margin, else on Tatoeba or held-out training text by cosine.",
    )
    parser.add_argument(
        "spec",
        nargs="?",
        default=encoder.BUNDLED,
        metavar="SPEC",
        help=f"{encoder.BUNDLED} (default), or a folder that adit train made",
    )
    add_version(parser)
    args = parser.parse_args(argv)
    return run_command(lambda: _list(args.spec), parser.prog)


def _list(spec: str) -> int:
    coverage = read_coverage(spec)
    lines = [f"{spec}: {_size(spec)}"]
    for quality, meaning in QUALITIES.items():
        names = sorted(
            (known.error, name) for name, known in coverage.items() if known.quality == quality
        )
        if names:
            listed = " ".join(f"{name} {100 * error:.1f}" for error, name in names)
            lines.append(f"  {quality} ({meaning}), {len(names)} languages: {listed}")
    if not coverage:
        lines.append("  its languages were not measured")
    if spec == encoder.BUNDLED:
        lines.append("encoders/wide, a folder of the repository: 98 languages")
    lines.append(
        f"laser:, laser3: one encoder for {len(LASER2)} languages, and one each for {len(LASER3)} "
        "more: adit fetch XX -o DIR"
    )
    lines.append("st:NAME: models of sentence-transformers (pip install 'bitext-adit[st]')")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _size(spec: str) -> str:
    from encoder.checkpoint import WEIGHTS, read_config

    folder = encoder.folder_of(spec)
    if not folder.is_dir():
        raise ValueError(f"encoder {spec!r} is no folder; there are {encoder.ENCODERS}")
    parts = (folder / WEIGHTS, folder / encoder.MORE / WEIGHTS)
    size = sum(part.stat().st_size for part in parts if part.is_file()) / 1e6
    return f"{read_config(folder)['dim']} dimensions, {size:.1f} MB, {_speed(spec)}"


def _speed(spec: str) -> str:
    """Time the encoder on the bundled English sentences for about half a second."""
    loaded = encoder.load_encoder(spec)
    path = Path(str(files("eval"))) / "assets" / "sample" / "de-en" / "de-en.training.en"
    texts = [line.partition("\t")[2] for line in path.read_text(encoding="utf-8").splitlines()]
    loaded.encode(texts[:BATCH])
    encoded, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < TRIAL_SECONDS:
        place = encoded % (len(texts) - BATCH)
        encoded += len(loaded.encode(texts[place : place + BATCH]))
    return f"about {encoded / passed:,.0f} sentences of news a second here"
