"""Train small encoders by architecture and task, and compare them.

    python benchmarks/tasks.py {alignment,architectures,mixture,probing} DATA OUT

``architectures``: sentence encoders trained on inference, and the same untrained, by classifiers on
their vectors. ``mixture``: a bag that learns translations alone, and with three tasks beside.
``probing``: what a bag, a BiLSTM and a transformer know of the order of words. ``alignment``:
inference learned in English, and languages added by the alignment loss.

DATA has the folders train (parallel text), tasks and eval. What was trained in OUT is not again.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import shutil
import sys
from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path

from probing_sets import bigram_shift, odd_man_out

from encoder import BUNDLED, folder_of
from encoder.checkpoint import read_config
from pipelines.cli.main import adit

# Conneau et al. 2017, table 1: their seven, and a bag.
ARCHITECTURES = (
    *("lstm-last", "gru-last", "bigru-last", "bilstm-mean", "attention", "hierarchical", "bilstm"),
    "bag",
)
SMALL = ("--dim", "256", "--vocabulary-size", "8000", "--held-out", "200")
GERMAN = ("--pairs", "de-en")
PROBED = {
    "bag": ("--steps", "600", "--learning-rate", "0.004"),
    "bilstm": ("--steps", "1200", "--dim", "512", "--learning-rate", "0.004"),
    "transformer": ("--steps", "800", "--layers", "2", "--learning-rate", "0.0015"),
}
# English is translated into German, as by networks of Conneau et al. 2018.
TRANSLATION = (
    *("--objective", "translation", "--targets", "de", "--best-by", "perplexity"),
    *("--decoder-dim", "128", "--vocabulary-size", "4000", "--batch-size", "1500"),
    *("--precision", "bfloat16", "--exclude", "msdocs,gnome-docs"),
)
SPLIT = (*7 * ["tr"], "va", "te", "te")
# Corpora of XNLI's kind rather than of software, and the pairs of each language.
SPOKEN, MANY = {"tatoeba", "multi30k", "tico19", "quran"}, 50_000
ALIGNMENTS = {"de": ("0", "0.1", "0.25", "0.5"), "fr": ("0", "0.25"), "es": ("0", "0.25")}
BILSTM = ("--architecture", "bilstm", "--dropout", "0")
# English words first, as they have vectors in the paper; then inference.
FIRST = (
    *("--objective", "distillation", "--teacher", BUNDLED, "--batch-size", "256"),
    *("--steps", "1500", "--learning-rate", "0.004", *BILSTM),
)
INFERSENT = (
    *("--objective", "nli", "--steps", "600", "--learning-rate", "0.001", *BILSTM),
    *("--evaluate-every", "100"),
)
ALIGNED = {
    "bilstm": (
        *("--objective", "alignment", "--batch-size", "256", "--steps", "600"),
        *("--learning-rate", "0.004", *BILSTM),
    ),
    "bag": (
        *("--objective", "alignment", "--batch-size", "512", "--steps", "500"),
        *("--ngram-rows", "131072"),
    ),
}
UNTRAINED = ("--steps", "1", "--learning-rate", "0")


def command(*arguments: str | Path) -> None:
    """Run ``adit`` in this process, which loads libraries once."""
    words = [str(word) for word in arguments]
    print("$ adit", *words, flush=True)
    if adit(words):
        raise SystemExit(f"adit {words[0]} failed")


def train(text: Path, out: Path, *options: str, pairs: Sequence[str] = GERMAN) -> Path:
    if not (out / "config.json").exists():
        small = (*SMALL, *pairs, "--evaluate-every", "100000", "-q")
        command("train", text, "-o", out, *small, *options)
    return out


def parallel_text(data: Path, folder: Path, pairs: int) -> Path:
    """Write the first pairs of the shuffled German text."""
    folder.mkdir(exist_ok=True)
    with lzma.open(data / "train/de-en.tsv.xz") as file:
        text = b"".join(islice(file, pairs))
    (folder / "de-en.tsv.xz").write_bytes(lzma.compress(text, preset=1))
    return folder


def tested(data: Path, folder: Path, names: Sequence[str]) -> Path:
    """Link some files of ``eval`` into a folder of suites."""
    for name in names:
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to((data / "eval" / name).resolve())
    return folder


def sick(data: Path) -> list[dict[str, str]]:
    path = data / "eval/sick/sick.en-nl-pt-ja.tsv.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def english_sick(data: Path, folder: Path) -> None:
    columns = ("split", "label", "relatedness", "en_A", "en_B")
    rows = [columns, *([row[name] for name in columns] for row in sick(data))]
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join("\t".join(row) + "\n" for row in rows)
    (folder / "sick.en-nl-pt-ja.tsv").write_text(text, encoding="utf-8")


def inference(data: Path, folder: Path) -> Path:
    """Write the training parts of SICK and nli-cad as labelled pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        (row["label"].lower(), row["en_A"], row["en_B"])
        for row in sick(data)
        if row["split"] == "tr"
    ]
    path = data / "tasks/nli-cad/all_combined.train.tsv.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows.append((row["gold_label"], row["sentence1"], row["sentence2"]))
    lines = ["\t".join(row) + "\n" for row in rows]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def paragraphs(data: Path, out: Path, language: str) -> Path:
    """Link the Wikipedia paragraphs of one language into a folder."""
    name = f"wiki-paragraphs.{language}.txt.xz"
    link = out / "paragraphs" / language / name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to((data / "tasks/monolingual" / name).resolve())
    return link.parent


def architectures(data: Path, out: Path) -> None:
    task = ("--task", f"nli={inference(data, out / 'nli')}:99", "--batch-size", "32")
    text = parallel_text(data, out / "text", 6_000)
    english_sick(data, out / "sick")
    for name in ARCHITECTURES:
        common = (*task, "--architecture", name)
        for encoder in (
            train(text, out / f"{name}-untrained", *common, *UNTRAINED),
            train(text, out / name, *common, "--steps", "400", "--learning-rate", "0.002"),
        ):
            command("evaluate", "senteval", out / "sick", "--encoder", encoder)


def mixture(data: Path, out: Path) -> None:
    text = parallel_text(data, out / "text", 60_000)
    tasks = [
        f"nli={inference(data, out / 'nli')}:0.5",
        f"quick-thought={paragraphs(data, out, 'en')}",
        f"quick-thought={paragraphs(data, out, 'de')}",
        f"response={data / 'tasks/dialogues'}",
    ]
    alone = train(text, out / "ranking", "--batch-size", "512", "--steps", "1000")
    options = ["--batch-size", "512", "--steps", "4500"]  # 2 of 9 are of translations
    options += [part for task in tasks for part in ("--task", task)]
    both = train(text, out / "ranking-and-tasks", *options)
    names = [f"tatoeba/tatoeba.deu-eng.{language}" for language in ("deu", "eng")]
    names += ["bucc-style/de-en", "ntrex/de.txt", "ntrex/en.txt"]
    names += [f"senteval/{name}.tsv.xz" for name in ("CR", "MRPC", "SST2", "TREC")]
    sets = tested(data, out / "eval", names)
    english_sick(data, sets / "sick")
    command("evaluate", "compare", alone, both, "--data", sets, "--lang", "de")


def english(data: Path) -> dict[str, set[str]]:
    """Return the distinct English sentences with their language pairs."""
    found: dict[str, set[str]] = {}
    for path in sorted((data / "train").glob("*-en.tsv.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                _, sentence, corpus = line.rstrip("\n").split("\t")
                found.setdefault(sentence, set()).update((path.name, corpus))
    return found


def probes(data: Path, folder: Path) -> None:
    """Make probing sets of Tatoeba sentences that encoders have not seen."""
    folder.mkdir(parents=True, exist_ok=True)
    text = english(data)
    sentences = [
        sentence
        for sentence, where in text.items()
        if "tatoeba" in where and "de-en.tsv.xz" not in where and 6 <= len(sentence.split()) <= 20
    ]
    for name, made in (
        ("bigram_shift", bigram_shift(sentences)),
        ("odd_man_out", odd_man_out(sentences, list(text))),
    ):
        # Four by four, in which both labels are as frequent and what was exchanged is together.
        lines = [
            f"{SPLIT[number // 4 % len(SPLIT)]}\t{label}\t{sentence}\n"
            for number, (label, sentence) in enumerate(made[:40_000])
        ]
        (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def probing(data: Path, out: Path) -> None:
    sets = tested(data, out / "eval", ["probing/en/coordination_inversion.txt.xz"])
    probes(data, sets / "probing/en")
    found = [
        train(data / "train", out / name, "--architecture", name, *TRANSLATION, *options)
        for name, options in PROBED.items()
    ]
    command("evaluate", "compare", *found, "--data", sets)


def spoken(data: Path, folder: Path, language: str) -> Path:
    """Write a language's pairs except software documentation."""
    folder.mkdir(parents=True, exist_ok=True)
    with lzma.open(data / f"train/{language}-en.tsv.xz", "rt", encoding="utf-8") as file:
        kept = (line for line in file if line.rstrip("\n").rpartition("\t")[2] in SPOKEN)
        text = "".join(islice(kept, MANY))
    (folder / f"{language}-en.tsv.xz").write_bytes(lzma.compress(text.encode(), preset=1))
    return folder


def of_english(folders: Sequence[Path], folder: Path) -> Path:
    """Write the English sentence of each pair as a pair with itself."""
    folder.mkdir(exist_ok=True)
    found: dict[str, None] = {}
    for path in (path for each in folders for path in each.iterdir()):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            found.update((line.split("\t")[1], None) for line in file)
    text = "".join(f"{one}\t{one}\tenglish\n" for one in found)
    (folder / "en-en.tsv.xz").write_bytes(lzma.compress(text.encode(), preset=1))
    return folder


def alone(out: Path) -> Path:
    """Copy the bundled encoder without its list of languages."""
    for name in ("weights.safetensors", "tokenizer.model"):
        out.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder_of(BUNDLED) / name, out / name)
    config = read_config(folder_of(BUNDLED))
    config.pop("languages")
    (out / "config.json").write_text(json.dumps(config))
    return out


def alignment(data: Path, out: Path) -> None:
    """Add languages to an English encoder by the alignment loss."""
    pairs = inference(data, out / "pairs")
    texts = {language: spoken(data, out / language, language) for language in ALIGNMENTS}
    first = train(of_english([*texts.values()], out / "en"), out / "first", *FIRST, pairs=())
    bilstm = train(pairs, out / "bilstm", *INFERSENT, "--start", str(first), pairs=())
    bag = alone(out / "bag")
    classifiers = {"bilstm": ("--head", bilstm), "bag": ("--train", pairs / "pairs.tsv")}
    for language, weights in ALIGNMENTS.items():
        for weight, (name, classifier) in product(weights, classifiers.items()):
            both = out / f"{name}-{weight}"
            shutil.copytree(bilstm if name == "bilstm" else bag, both, dirs_exist_ok=True)
            options = ("--teacher", str(both), "--negatives", weight, *ALIGNED[name])
            train(texts[language], both / f"more-{language}", *options, pairs=())
            languages = ("--lang", "en", language)
            command(
                "evaluate", "nli", data / "eval/xnli", *classifier, *languages, "--encoder", both
            )
    command(*("evaluate", "nli", data / "eval/xnli", "--train", pairs / "pairs.tsv"))


TASKS = {
    **{"alignment": alignment, "architectures": architectures},
    **{"mixture": mixture, "probing": probing},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=tuple(TASKS))
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    out = args.out / args.what
    out.mkdir(parents=True, exist_ok=True)
    TASKS[args.what](args.data, out)


if __name__ == "__main__":
    sys.exit(main())
