"""SentEval's transfer tasks, from its own folders or from one file each, with their parts named.

SentEval (facebookresearch/SentEval, ``data/downstream``) has a folder for each set; the other
layout is ``MR.tsv`` and the like: ``[tr|va|te TAB] LABEL TAB sentence [TAB sentence]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from eval.data.labelled import (
    PARTS,
    TEST,
    TRAIN,
    Examples,
    by_part,
    first_file,
    joined,
    lines_of_any_encoding,
    read_columns,
    read_examples,
)
from eval.data.textfiles import read_lines

Directories = Sequence[Path]

_TWO_FILES = {
    "MR": {"1": "MR/rt-polarity.pos", "0": "MR/rt-polarity.neg"},
    "CR": {"1": "CR/custrev.pos", "0": "CR/custrev.neg"},
    "SUBJ": {"1": "SUBJ/subj.objective", "0": "SUBJ/subj.subjective"},
    "MPQA": {"1": "MPQA/mpqa.pos", "0": "MPQA/mpqa.neg"},
}
_SST = {
    name: {part: f"SST/{kind}/sentiment-{file}" for part, file in zip(PARTS, files, strict=True)}
    for name, kind in (("SST2", "binary"), ("SST5", "fine"))
    for files in [("train", "dev", "test")]
}
_TREC = {TRAIN: "TREC/train_5500.label", TEST: "TREC/TREC_10.label"}
_MRPC = {
    part: f"MRPC/msr_paraphrase_{name}.txt" for part, name in ((TRAIN, "train"), (TEST, "test"))
}
_SICK = {
    part: f"SICK/SICK_{name}.txt"
    for part, name in zip(PARTS, ("train", "trial", "test_annotated"), strict=True)
}
_STSB = {
    part: f"STS/STSBenchmark/sts-{name}.csv"
    for part, name in zip(PARTS, ("train", "dev", "test"), strict=True)
}
SINGLE = ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC")
SICK_FILE = "sick.en-nl-pt-ja.tsv"
STS_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")


def load_transfer(directories: Directories, name: str) -> Examples | None:
    """Load a set of single sentences or MRPC; None where there is none.

    Raises:
        ValueError: a file is malformed.
    """
    sides = 1 if name in SINGLE else 2
    path = first_file(directories, f"{name}.tsv")
    found = read_examples(path, sides=sides) if path else _original(directories, name)
    if found is None or name != "TREC":
        return found
    coarse = [label.partition(":")[0] for label in found.labels]
    return Examples(labels=coarse, sides=found.sides, parts=found.parts, files=found.files)


def _original(directories: Directories, name: str) -> Examples | None:
    if name in _TWO_FILES:
        return _of_classes(directories, _TWO_FILES[name])
    if name == "TREC":
        return _of_parts(directories, _TREC, _read_trec)
    if name == "MRPC":
        return _of_parts(
            directories, _MRPC, lambda path: read_columns(path, label=0, sides=(3, 4), skip=1)
        )
    return _of_parts(directories, _SST[name], lambda path: read_columns(path, label=1, sides=(0,)))


def _of_classes(directories: Directories, files: Mapping[str, str]) -> Examples | None:
    """Read a file of sentences for each class."""
    places = {label: first_file(directories, file) for label, file in files.items()}
    found = {label: path for label, path in places.items() if path is not None}
    if len(found) < len(places):
        return None
    parts = {}
    for label, path in found.items():
        lines = lines_of_any_encoding(path)
        parts[label] = Examples(labels=[label] * len(lines), sides=(lines,), files=[path])
    together = joined(parts)
    return Examples(labels=together.labels, sides=together.sides, files=together.files)


def _of_parts(
    directories: Directories, files: Mapping[str, str], read: Callable[[Path], Examples]
) -> Examples | None:
    """Read a file for each part."""
    places = {part: first_file(directories, file) for part, file in files.items()}
    if None in places.values():
        return None
    return by_part(lambda part: read(path) if (path := places.get(part)) else None)


def _read_trec(path: Path) -> Examples:
    """Read ``COARSE:fine question`` lines."""
    rows = [line.partition(" ") for line in lines_of_any_encoding(path)]
    for number, (label, _, _) in enumerate(rows, start=1):
        if ":" not in label:
            raise ValueError(f"{path} line {number}: expected COARSE:fine, not {label[:60]!r}")
    labels, _, questions = zip(*rows, strict=True)
    return Examples(labels=labels, sides=(questions,), files=[path])


def load_sick(directories: Directories) -> dict[str, tuple[Examples, Examples]]:
    """Load SICK in each language that is there: labels of inference, and relatedness from 1 to 5.

    Read are SentEval's folder (English) or ``sick.en-nl-pt-ja.tsv``, whose header names columns
    ``split``, ``label``, ``relatedness`` and, for each language, ``xx_A`` and ``xx_B``, with
    ``xx_label`` and ``xx_relatedness`` where it has its own.

    Raises:
        ValueError: a file is malformed.
    """
    path = first_file(directories, SICK_FILE)
    if path is None:
        inference = _of_parts(directories, _SICK, partial(_read_sick, label=4))
        graded = _of_parts(directories, _SICK, partial(_read_sick, label=3))
        return {} if inference is None or graded is None else {"en": (inference, graded)}
    header = read_lines(path)[0].split("\t")
    languages = [name.removesuffix("_A") for name in header if name.endswith("_A")]
    if not {"split", "label", "relatedness"} <= set(header) or not languages:
        raise ValueError(f"{path}: expected a header with split, label, relatedness, xx_A and xx_B")
    found = {}
    for language in languages:
        sides = [header.index(f"{language}_{side}") for side in "AB"]
        labels = [
            header.index(name if f"{language}_{name}" not in header else f"{language}_{name}")
            for name in ("label", "relatedness")
        ]
        split = read_columns(path, label=header.index("split"), sides=sides, skip=1)
        first, second = (read_columns(path, label=one, sides=sides, skip=1) for one in labels)
        found[language] = (
            Examples(labels=first.labels, sides=first.sides, parts=split.labels, files=[path]),
            Examples(labels=second.labels, sides=second.sides, parts=split.labels, files=[path]),
        )
    return found


def _read_sick(path: Path, *, label: int) -> Examples:
    """Read a part of SentEval's SICK: id, both sentences, relatedness and the class, a header."""
    return read_columns(path, label=label, sides=(1, 2), skip=1)


def load_sts_benchmark(directories: Directories) -> Examples | None:
    """Load the STS benchmark, scores from 0 to 5; None where there is none."""
    return _of_parts(directories, _STSB, lambda path: read_columns(path, label=4, sides=(5, 6)))


def load_sts_year(directories: Directories, year: str) -> dict[str, Examples]:
    """Load the sets of a year of STS: ``STS/STS12-en-test/STS.input.X.txt`` and ``STS.gs.X.txt``.

    Pairs without a score are left out.

    Raises:
        ValueError: numbers of lines differ, or a line is no pair.
    """
    found = {}
    for directory in directories:
        for path in sorted((directory / "STS" / f"{year}-en-test").glob("STS.input.*.txt")):
            scores = read_lines(path.with_name(path.name.replace("input", "gs", 1)))
            pairs = [line.split("\t") for line in read_lines(path)]
            if len(scores) != len(pairs) or any(len(pair) < 2 for pair in pairs):
                raise ValueError(
                    f"{path}: {len(pairs)} lines and {len(scores)} scores; expected a pair between "
                    "tabs for each score"
                )
            kept = [row for row, score in enumerate(scores) if score.strip()]
            found[path.name.split(".")[2]] = Examples(
                labels=[scores[row] for row in kept],
                sides=([pairs[row][0] for row in kept], [pairs[row][1] for row in kept]),
                files=[path],
            )
    return found


def scores_of(examples: Examples) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the labels as numbers: float64 (N,).

    Raises:
        ValueError: one is none.
    """
    try:
        return np.array([float(label) for label in examples.labels])
    except ValueError as error:
        raise ValueError(f"{examples.files[0]}: a score is no number: {error}") from error
