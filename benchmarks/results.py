"""Makes docs/results.md: every figure of the bundled encoder on public evaluation sets.

    python benchmarks/results.py DIR -o docs/results.md

DIR holds the folders bleualign, bucc-style, ntrex and tatoeba; the commands are run in it one after
the other.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

from eval.cli.encoder import eval_encoder
from miner.storage.atomic import atomic_file

HEAD = """# Results

What the bundled encoder reaches on public sets, as the commands print it. This page is made by

    python benchmarks/results.py DIR -o docs/results.md

from a folder with the sets `bleualign`, `bucc-style`, `ntrex` and `tatoeba`, in which the commands
below were run. Rates are in percent. The 95 % intervals come from 1,000 resamples of the sentences.
Lines that end the blocks are signatures: figures can be compared if all in them is equal but the
encoder.
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
        "Mining with words",
        "The same with pairs scored by how well their words match, too (`mine-corpus --align`), "
        "and the other way round: thresholds are chosen on the small `sample` splits.",
        "bucc bucc-style --align --tune sample --test training",
    ),
    (
        "Thresholds without gold",
        "Thresholds chosen for a wanted share of wrong pairs with decoys alone, on the `training` "
        "splits; the sentences of the `sample` splits, which share none with them, are the decoys. "
        "`true FDR` and `recall` are what gold says; the interval is that of the estimate. "
        "`by planted` is the recall of the `sample` gold pairs put into the corpora, and `FDR by "
        "planted` what follows from it. The last two columns are those of the best threshold. With "
        "`by words` the same of pairs scored by words, by the same decoys and from the scores "
        "alone, as `--fdr` does, and of margins by the probabilities that the scores give.",
        "fdr bucc-style",
    ),
    (
        "Filters and a second score",
        "F1 on `training` with thresholds chosen on `sample`: by the margin, without what each "
        "filter rejects, by a logistic model trained on all `sample` splits together, by "
        "`length` and the model, and with words (`--align`). `best F1` is the mean of what any "
        "thresholds could reach. The last columns count the rejected pairs, and the right ones "
        "among these.",
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    args = parser.parse_args()
    output = args.output.resolve()
    os.chdir(args.directory)
    parts = [HEAD]
    for title, text, command in SECTIONS:
        sys.stderr.write(f"eval-encoder {command}\n")
        printed = _printed(command)
        if printed is None:
            return 1
        block = "".join(f"    {line}\n" for line in [f"eval-encoder {command}", "", *printed])
        parts.append(f"\n## {title}\n\n{text}\n\n{block}")
    with atomic_file(output) as path:
        path.write_text("".join(parts), encoding="utf-8")
    return 0


def _printed(command: str) -> list[str] | None:
    """What eval-encoder prints; None if it fails (it has printed why)."""
    out = io.StringIO()
    with redirect_stdout(out):
        status = eval_encoder(shlex.split(command))
    return None if status else out.getvalue().splitlines()


if __name__ == "__main__":
    sys.exit(main())
