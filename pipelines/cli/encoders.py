"""Run ``adit encoders`` and ``adit fetch``, and print user errors."""

import argparse
import sys
import time
from importlib.resources import files
from pathlib import Path

import encoder
from encoder.coverage import read_coverage
from encoder.laser.languages import LASER2, LASER3, PUBLISHER, fetch_laser
from miner.commandline import command
from miner.language_codes import parse_option

BATCH = 100  # sentences
TRIAL_SECONDS = 0.5
QUALITIES = {"good": "search error up to 5%", "fair": "up to 15%", "weak": "above 15%"}


def _add_encoders(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "The search error is the share of sentences whose English translation is not found: on "
        "NTREX-128 by ratio margin, otherwise on Tatoeba or held-out training text by cosine."
    )
    text = (
        "encoder to describe, as for adit mine --encoder, such as mini or mini+use (default: best)"
    )
    parser.add_argument("spec", nargs="?", default=encoder.BEST, metavar="SPEC", help=text)


@command(_add_encoders, "adit encoders")
def encoders(args: argparse.Namespace) -> int:
    """Describe an encoder, with search errors by language, and list others."""
    from encoder.joined import parse_joined

    spec = args.spec
    joined = encoder.best_encoder() if spec == encoder.BEST else spec
    names = [part.spec for part in parse_joined(joined)] or [joined]
    lines = [f"{spec}: {joined}"] if spec == encoder.BEST else []
    if len(names) > 1:
        lines.append("joined: a run uses the parts that cover both of its languages")
    lines += [line for name in names for line in _describe(name)]
    if encoder.USE not in joined:
        lines.append("use: lower search errors than mini's, in fewer languages")
    lines += [
        "encoders/wide, a folder of the repository: 98 languages",
        f"laser:, laser3: one encoder for {len(LASER2)} languages, and one each for {len(LASER3)} "
        "more: adit fetch XX -o DIR",
        "st:NAME: models of sentence-transformers (pip install 'bitext-adit[st]')",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _describe(spec: str) -> list[str]:
    coverage = read_coverage(spec)
    loaded = encoder.load_encoder(spec, precision="auto")
    lines = [f"{spec}: {loaded.dim} dimensions, {_speed(loaded)}"]
    for quality, meaning in QUALITIES.items():
        errors = ((item.error, name) for name, item in coverage.items() if item.quality == quality)
        if texts := [f"{name} {100 * error:.1f}" for error, name in sorted(errors)]:
            lines.append(f"  {quality} ({meaning}), {len(texts)} languages: {' '.join(texts)}")
    return lines if coverage else [*lines, "  search errors were not measured"]


def _speed(loaded: encoder.Encoder) -> str:
    path = Path(str(files("eval"))) / "assets" / "sample" / "de-en" / "de-en.training.en"
    texts = [line.partition("\t")[2] for line in path.read_text(encoding="utf-8").splitlines()]
    loaded.encode(texts[:BATCH])
    encoded, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < TRIAL_SECONDS:
        first = encoded % (len(texts) - BATCH)
        encoded += len(loaded.encode(texts[first : first + BATCH]))
    return f"about {encoded / seconds:,.0f} news sentences per second on this machine"


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Existing files are kept, and checked if DIR/SHA256SUMS lists them; a partial download "
        "resumes."
    )
    add = parser.add_argument
    add("language", type=parse_option, metavar="XX", help="code such as de, wol or kas_Deva")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the encoder")
    add("--url", default=PUBLISHER, metavar="URL", help=f"URL of a mirror (default: {PUBLISHER})")
    text = "fetch nothing, and fail if a file is missing or differs from DIR/SHA256SUMS"
    add("--offline", action="store_true", help=text)


@command(_add_fetch, "fetch-laser")
def fetch_command(args: argparse.Namespace) -> int:
    """Fetch LASER's encoder for a language, and print its --encoder value."""
    path = fetch_laser(args.language, args.output, publisher=args.url, offline=args.offline)
    kind = "laser3" if path.name.startswith("laser3") else "laser"
    sys.stdout.write(f"{kind}:{path}\n")
    return 0
