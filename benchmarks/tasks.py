"""Train small encoders by architecture and by task, and compare them on the same sets.

    python benchmarks/tasks.py {architectures,mixture,probing} DATA OUT

``architectures``: sentence encoders trained on inference, and the same untrained, by classifiers on
their vectors. ``mixture``: a bag that learns translations alone, and with three tasks beside.
``probing``: what a bag, a BiLSTM and a transformer trained on translations know of a sentence's
form.

DATA has the folders train (parallel text), tasks and eval. What was trained in OUT is not again.
"""

from __future__ import annotations

import argparse
import csv
import lzma
import subprocess
import sys
from itertools import islice
from pathlib import Path

# Conneau et al. 2017, table 1, their last encoder first, and what the thesis of 2019 adds.
ARCHITECTURES = (
    *("bilstm", "lstm-last", "gru-last", "bigru-last", "bilstm-mean", "attention"),
    *("hierarchical", "bilstm-last", "gated", "bag"),
)
SMALL = ("--pairs", "de-en", "--vocabulary-size", "16000", "--evaluate-every", "100000")
SOME = 20_000
UNTRAINED = ("--steps", "1", "--learning-rate", "0")
NETWORKS = {
    "bag": ("--steps", "3000"),
    "bilstm": ("--steps", "3000", "--batch-size", "128"),
    "transformer": ("--steps", "3000", "--batch-size", "128"),
}


def adit(*arguments: str | Path) -> None:
    command = [str(Path(sys.executable).with_name("adit")), *map(str, arguments)]
    subprocess.run(command, check=True)


def train(text: Path, out: Path, *options: str) -> Path:
    if not (out / "config.json").exists():
        adit("train", text, "-o", out, *SMALL, "-q", *options)
    return out


def some(data: Path, folder: Path) -> Path:
    """Write the first pairs of the parallel text, which little of the training is on."""
    folder.mkdir(exist_ok=True)
    with lzma.open(data / "train/de-en.tsv.xz") as file:
        (folder / "de-en.tsv.xz").write_bytes(lzma.compress(b"".join(islice(file, SOME))))
    return folder


def inference(data: Path, folder: Path) -> Path:
    """Write the training parts of SICK and nli-cad as labelled pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with lzma.open(data / "eval/sick/sick.en-nl-pt-ja.tsv.xz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["split"] == "tr":
                rows.append((row["label"].lower(), row["en_A"], row["en_B"]))
    path = data / "tasks/nli-cad/all_combined.train.tsv.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows.append((row["gold_label"], row["sentence1"], row["sentence2"]))
    lines = ["\t".join(row) + "\n" for row in rows]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def architectures(data: Path, out: Path) -> None:
    task = ("--task", f"nli={inference(data, out / 'nli')}:99", "--batch-size", "64")
    text, encoders = some(data, out / "text"), []
    for name in ARCHITECTURES:
        common = (*task, "--architecture", name, "--dim", "512")
        encoders.append(train(text, out / name, *common, "--steps", "800"))
        encoders.append(train(text, out / f"{name}-untrained", *common, *UNTRAINED))
    for encoder in encoders:
        print(f"## {encoder.name}", flush=True)
        sets = ("--set", "SICK", "TREC", "SST2", "CR", "MRPC")
        adit(
            "evaluate",
            "senteval",
            data / "eval/senteval",
            data / "eval/sick",
            *sets,
            "--encoder",
            encoder,
        )


def mixture(data: Path, out: Path) -> None:
    tasks = [
        f"nli={inference(data, out / 'nli')}:0.5",
        f"quick-thought={data / 'tasks/monolingual'}",
        f"response={data / 'tasks/dialogues'}",
    ]
    alone = train(data / "train", out / "ranking", "--steps", "2000")
    options = [part for task in tasks for part in ("--task", task)]
    both = train(data / "train", out / "ranking-and-tasks", *options, "--steps", "7000")
    suites = ("mining", "tatoeba", "xsim", "senteval", "eigen")
    adit(
        "evaluate",
        "compare",
        alone,
        both,
        "--data",
        data / "eval",
        "--lang",
        "de",
        "--suite",
        *suites,
    )


def probing(data: Path, out: Path) -> None:
    found = [
        train(
            data / "train",
            out / f"{name}-ranking",
            "--architecture",
            name,
            "--dim",
            "512",
            *options,
        )
        for name, options in NETWORKS.items()
    ]
    adit("evaluate", "compare", *found, "--data", data / "eval", "--suite", "probe")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("architectures", "mixture", "probing"))
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    {"architectures": architectures, "mixture": mixture, "probing": probing}[args.what](
        args.data, args.out
    )


if __name__ == "__main__":
    main()
