"""Write docs/results.md and docs/results-full.md.

    python benchmarks/results.py {compare,full} DIR

DIR holds the folders of the suites (``adit evaluate compare --help``) and bleualign. The first page
compares the bundled encoder with the joined one; the second has all figures about mining and
search.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from miner.storage.atomic import atomic_file
from pipelines.cli.main import adit

DOCS = Path(__file__).parents[1] / "docs"
FIGURE = "results.svg"
ENCODERS = ("mini", "mini+use")

INTRODUCTION = """# Results

How good the bundled encoder, `{first}`, is on public sets, beside `{second}`, to which
[the extra `use`](encoders.md#joined-encoders) joins a pretrained network. To compare encoders of
your own:

    {command}

Data and protocols: [judging an encoder](evaluation.md). More of mining and search: [results in
full](results-full.md); of what else vectors know: the card of [`{first}`]({own}).
This page is made by `python benchmarks/results.py compare DIR`.

![Means of the suites with their 95 % intervals](results.svg)

Figures are per cent with their 95 % intervals. That of a difference is from resampling the same
sentences for both encoders; it is **bold** where it leaves out 0.
"""

SUITES = {
    "mining": "Translations found in comparable corpora made from news: F1 with a threshold chosen "
    "on other sentences. BUCC's own data are larger, so published F1 is no measure for these.",
    "tatoeba": "Errors in finding a sentence's translation among 1,000 short ones.",
    "xsim": "Errors in finding it among 1,997 sentences of news (NTREX-128), by ratio margin.",
    "classify": "Topics (SIB-200) learned in English, tested in each language.",
    "words": "Translations of words found by cosine and CSLS; similarity of words, r and rho.",
}

FULL = """# Results in full

What the bundled encoder reaches in mining and search, as the commands print it, without their
signatures. The [first page](results.md) has what matters most. Made by

    python benchmarks/results.py full DIR

which runs the commands below in DIR. Rates are in per cent. The 95 % intervals come from 1,000
resamples of the sentences.
"""

SECTIONS = (
    (
        "Mining",
        "Comparable corpora in the layout of BUCC 2017/2018 made from news, with about 3 % "
        "translations among the sentences. They are not the BUCC data and smaller, so that "
        "published F1 values are no measure for these.",
        "bucc bucc-style",
    ),
    (
        "Mining with the joined encoder",
        "The same with `mini+use`. The judge learned from these sets, so what it is worth is "
        "measured in languages that it was kept from ([scores](scores.md)).",
        "bucc bucc-style --encoder mini+use",
    ),
    (
        "Filters",
        "F1 on `training` with thresholds chosen on `sample`: by the margin, without what each "
        "filter rejects, and by the judge (`words`), which learned from both, so its line is no "
        "measure. `best F1` is the mean of what any thresholds could reach. The last columns count "
        "the rejected pairs, and the right ones among these.",
        "filters bucc-style",
    ),
    (
        "What filters remove of noise",
        "The share of parallel sentences (NTREX-128) that each filter removes, and of noise such "
        "as the web has, made of them: untranslated, of the next line, cut in half, a line of a "
        "site's frame, with other digits, with an address more, or in another language. No "
        "neighbours are searched, so `hub` is not among them.",
        "noise ntrex --lang de fr ru zh",
    ),
    (
        "Alignment of documents",
        "Monotone alignment ([documents](documents.md)) on the development part of Bleualign's "
        "data, on which its constants were chosen.",
        "align bleualign",
    ),
    (
        "Alignment with the joined encoder",
        "The same with `mini+use`.",
        "align bleualign --encoder mini+use",
    ),
    (
        "Similarity search: Tatoeba",
        "Error rates of nearest-neighbour search by cosine, both ways, in all 112 languages of "
        "LASER's test set, of which the encoder was trained on 80; what it finds in others it "
        "owes to shared words. The last column is LASER's on the same files.",
        "tatoeba tatoeba --lang all",
    ),
    (
        "Similarity search: NTREX-128",
        "Error rates of the search for each sentence's English translation among all 1,997 of "
        "news, by cosine (absolute) and by margin (xSIM). The interval is that of ratio.",
        "xsim ntrex --lang all",
    ),
    (
        "Between any two languages",
        "Error rates by ratio margin; rows are searched from, columns searched in.",
        "xsim ntrex --matrix ratio",
    ),
    (
        "Falsified translations",
        "The same search, where English also has copies with another number, another name or the "
        "opposite meaning (xSIM++ by rules of our own). The last four columns say what was found "
        "instead of the translation.",
        "xsim++ ntrex",
    ),
    (
        "Retrieval",
        "How often the translation is among the 1, 5 and 10 nearest of it and 999 other sentences.",
        "retrieval ntrex",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("compare", "full"))
    parser.add_argument("directory", type=Path, metavar="DIR")
    args = parser.parse_args()
    directory = args.directory.resolve()
    if args.what == "compare":
        os.chdir(DOCS.parent)
        write("results.md", compared(directory))
    else:
        os.chdir(directory)
        write("results-full.md", in_full())


def write(name: str, page: str) -> None:
    with atomic_file(DOCS / name) as path:
        path.write_text(page, encoding="utf-8")


def printed(words: list[str]) -> str:
    """Return the output of a command."""
    sys.stderr.write(f"adit {shlex.join(words)}\n")
    out = io.StringIO()
    with redirect_stdout(out):
        status = adit(words)
    if status:
        raise SystemExit(status)
    return out.getvalue()


def compared(directory: Path) -> str:
    """Return the page of the comparison, with a table per suite."""
    words = ["evaluate", "compare", *ENCODERS, "--suite", *SUITES, "--figure", f"docs/{FIGURE}"]
    found = json.loads(printed([*words, "--data", str(directory), "--json"]))
    first, second = ENCODERS
    parts = [
        INTRODUCTION.format(
            first=first,
            second=second,
            own="../encoder/assets/mini/README.md",
            command=f"adit {shlex.join([*words, '--data', 'DIR'])}",
        )
    ]
    for name, suite in found["suites"].items():
        rows = [row(label, figure) for label, figure in suite["figures"].items()]
        head = f"| | {first} | {second} | difference |\n| --- | ---: | ---: | ---: |\n"
        parts.append(f"\n## {name}\n\n{SUITES[name]}\n\n{head}{''.join(rows)}")
    return "".join(parts)


def row(label: str, figure: Mapping[str, Any]) -> str:
    """Format a figure of both encoders and their difference."""
    (difference,) = figure["differences"]
    cells = [shown(one) for one in figure["figures"].values()] + [shown(difference, sign="+")]
    if difference["beyond_chance"]:
        cells[-1] = f"**{cells[-1]}**"
    mark = " (less is better)" if figure["lower_is_better"] else ""
    return f"| {label}{mark} | {' | '.join(cells)} |\n"


def shown(figure: Mapping[str, Any], *, sign: str = "") -> str:
    value, low, high = (100 * one for one in (figure["value"], *figure["interval"]))
    return f"{value:{sign}.1f} ({low:.1f} to {high:.1f})"


def in_full() -> str:
    """Return the page of all figures, as printed by the commands."""
    parts = [FULL]
    for title, text, command in SECTIONS:
        words = ["evaluate", *shlex.split(command)]
        lines = [f"adit {shlex.join(words)}", "", *printed(words).splitlines()]
        kept = (line for line in lines if not line.startswith(f"{words[1]}|"))
        block = "".join(f"    {line}".rstrip() + "\n" for line in kept)
        parts.append(f"\n## {title}\n\n{text}\n\n{block}")
    return "".join(parts)


if __name__ == "__main__":
    main()
