"""Compare the speed of ``adit rate`` with cleaners of parallel corpora.

    python -m venv of && of/bin/pip install opusfilter
    python -m benchmarks.cleaners DATA --pairs 1000000 --cores 1 2 --opusfilter of/bin/opusfilter

rates that many German-English pairs of DATA/de-en.tsv.xz, made as in ``benchmarks.formats``.
OpusFilter scores them by ten filters, with lingua for languages.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.formats import LANGUAGES, make, measured, pairs_of

FILTERS = [
    {"LengthFilter": {"unit": "word"}},
    {"LengthRatioFilter": {"unit": "word", "name": "word"}},
    {"LengthRatioFilter": {"unit": "char", "name": "char"}},
    {"LongWordFilter": {}},
    {"HtmlTagFilter": {}},
    {"CharacterScoreFilter": {"scripts": ["Latin", "Latin"]}},
    {"LanguageIDFilter": {"id_method": "lingua", "languages": LANGUAGES}},
    {"NonZeroNumeralsFilter": {}},
    {"TerminalPunctuationFilter": {}},
    {"RepetitionFilter": {}},
]


def opusfilter_config(folder: Path) -> Path:
    """Write the configuration that scores ``text.de`` and ``text.en`` of a folder."""
    parameters = {"inputs": [f"text.{language}" for language in LANGUAGES]}
    step = {"type": "score", "parameters": {**parameters, "output": "s.jsonl", "filters": FILTERS}}
    path = folder / "config.yaml"  # JSON is YAML
    path.write_text(json.dumps({"common": {"output_directory": str(folder)}, "steps": [step]}))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--encoder", default="best")
    parser.add_argument("--opusfilter", type=Path)
    args = parser.parse_args()
    adit = str(Path(sys.executable).with_name("adit"))
    print(f"{args.pairs:,} pairs; load {os.getloadavg()[0]:.1f} before the start")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table, output = str(folder / "text.tsv"), str(folder / "out.tsv")
        make(args.data, args.pairs, folder / "text.tsv")
        for side, language in enumerate(LANGUAGES):
            lines = (f"{pair[side]}\n" for pair in pairs_of(args.data, args.pairs))
            with (folder / f"text.{language}").open("w", encoding="utf-8") as file:
                file.writelines(lines)
        languages = ["--src-lang", "de", "--tgt-lang", "en"]
        for cores in args.cores:
            rate = [adit, "rate", "-q", table, "-o", output, *languages]
            commands = {
                f"adit rate with {args.encoder}": [*rate, "--encoder", args.encoder],
                "adit rate --score texts": [*rate, "--score", "texts"],
            }
            if args.opusfilter:
                own = [str(args.opusfilter), "--overwrite", "--n-jobs", str(cores)]
                commands["OpusFilter"] = [*own, str(opusfilter_config(folder))]
            for name, command in commands.items():
                seconds, peak = measured(command, cores)
                speed = args.pairs / seconds
                print(
                    f"{name}, {cores} cores: {seconds:.0f} s, {speed:,.0f} pairs per second, "
                    f"{peak:.0f} MiB",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
