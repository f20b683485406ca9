"""Write docs/results.md and docs/log/results.md.

    python benchmarks/results.py {compare,full} DIR

DIR contains the folders of the suites (``adit evaluate compare --help``) and bleualign. The first
page compares the bundled encoder with the joined one. The second has the means of further tasks.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
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

This page compares the bundled encoder, `{first}`, with `{second}`, which adds a pretrained network
([how](encoders.md#joined-encoders)), on public sets. To compare your own encoders, run:

    {command}

For data and protocols, see [judging an encoder](evaluation.md). For filters, alignment, and other
tasks, see the [means of further tasks](log/results.md). For other uses of vectors, see the card of
[`{first}`]({own}). `python benchmarks/results.py compare DIR` writes this page.

![Means of the suites with their 95% intervals](results.svg)

Figures are percentages with 95% intervals. Intervals of differences come from resampling the same
sentences for both encoders. A difference is **bold** if its interval excludes 0.
"""

SUITES = {
    "mining": "F1 on comparable corpora made from news, with a threshold from other sentences. The "
    "corpora of BUCC are larger, so published F1 values are not comparable.",
    "tatoeba": "Error rate of finding a sentence's translation among 1,000 short sentences.",
    "xsim": "Error rate of finding it among 1,997 sentences of news (NTREX-128), by ratio margin.",
    "classify": "Accuracy of topics (SIB-200), learned in English and tested in each language.",
    "words": "P@1 of translating words by CSLS, and correlation with word similarity (hm, the "
    "harmonic mean of Pearson's and Spearman's). The mean includes further measures.",
}
# Labels of the suite ``words`` that the page omits.
OMITTED = re.compile(r" (NN P@\d+|CSLS P@(5|10)|CSLS P@1, no names|r|rho)$|^..-\S+ hm$")

FULL = """# Means of further tasks

Results of the bundled encoder in mining and search, as means over languages. The
[results](../results.md) have more languages and intervals. To write this page, run:

    python benchmarks/results.py full DIR

It runs the commands below in DIR. Rates are percentages. The 95% intervals come from 1,000
resamples of the sentences.
"""

SECTIONS = (
    (
        "Filters",
        "F1 on `training` with thresholds of `sample`: by margin after each filter, and by the "
        "judge (`words`), which learned from both splits. The last columns count the rejected "
        "pairs, and the correct ones among them.",
        "filters bucc-style",
    ),
    (
        "Filters against noise",
        "The share of clean pairs (NTREX-128) that each filter rejects, and of pairs with "
        "typical noise of the web. Without a search, `hub` does not apply.",
        "noise ntrex --lang de fr ru zh",
    ),
    (
        "Alignment of documents",
        "Monotone alignment ([documents](../documents.md)) on the development part of Bleualign's "
        "data, from which its constants were chosen.",
        "align bleualign",
    ),
    (
        "Alignment with the joined encoder",
        "The same with `mini+use`.",
        "align bleualign --encoder mini+use",
    ),
    (
        "Similarity search, Tatoeba",
        "Error rates by cosine in the 112 languages of LASER's test set. The encoder learned from "
        "80 of these. The last column is LASER's error on the same files.",
        "tatoeba tatoeba --lang all",
    ),
    (
        "Similarity search, NTREX-128",
        "Error rates of finding the English translation among 1,997 sentences of news, by cosine "
        "(absolute) and by margins. The interval belongs to `ratio`.",
        "xsim ntrex --lang all",
    ),
    (
        "Between any two languages",
        "Mean error rates by ratio margin for each language that is searched in.",
        "xsim ntrex --matrix ratio",
    ),
    (
        "Falsified translations",
        "The same search with copies of the English sentences that have another number, another "
        "name, or the opposite meaning. The last four columns divide the errors by the copy that "
        "was found.",
        "xsim++ ntrex",
    ),
    (
        "Retrieval",
        "The share of sentences whose translation is among the 1, 5, and 10 nearest of 1,000.",
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
        write("log/results.md", in_full())


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
        rows = [
            row(label, figure)
            for label, figure in suite["figures"].items()
            if not OMITTED.search(label)
        ]
        head = f"| | {first} | {second} | difference |\n| --- | ---: | ---: | ---: |\n"
        parts.append(f"\n## {name}\n\n{SUITES[name]}\n\n{head}{''.join(rows)}")
    return "".join(parts)


def row(label: str, figure: Mapping[str, Any]) -> str:
    """Format a figure of both encoders and their difference."""
    (difference,) = figure["differences"]
    cells = [shown(one) for one in figure["figures"].values()] + [shown(difference, sign="+")]
    if difference["beyond_chance"]:
        cells[-1] = f"**{cells[-1]}**"
    return f"| {label} | {' | '.join(cells)} |\n"


def shown(figure: Mapping[str, Any], *, sign: str = "") -> str:
    value, low, high = (100 * one for one in (figure["value"], *figure["interval"]))
    return f"{value:{sign}.1f} ({low:.1f}{', ' if sign else '-'}{high:.1f})"


def in_full() -> str:
    """Return the page of means, as the commands print them."""
    parts = [FULL]
    for title, text, command in SECTIONS:
        words = ["evaluate", *shlex.split(command)]
        lines = [f"adit {shlex.join(words)}", "", *means(printed(words).splitlines())]
        kept = (line for line in lines if "|sha256:" not in line)
        block = "".join(f"    {line}".rstrip() + "\n" for line in kept)
        parts.append(f"\n## {title}\n\n{text}\n\n{block}")
    return "".join(parts)


def means(lines: list[str]) -> list[str]:
    """Return the header of a table and the lines from its means on, or all without means."""
    first = next((number for number, line in enumerate(lines) if line.startswith("mean")), 0)
    has_header = lines[first].split()[1:] == lines[0].split()[1:]
    return [*([] if has_header else lines[:1]), *lines[first:]]


if __name__ == "__main__":
    main()
