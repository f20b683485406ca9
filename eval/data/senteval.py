"""SentEval's transfer tasks, from its own folders or from one file each, with their parts named.

SentEval (facebookresearch/SentEval, ``data/downstream``) has a folder for each set; the other
layout is ``MR.tsv`` and the like: ``[tr|va|te TAB] LABEL TAB sentence [TAB sentence]``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eval.data import labelled
from eval.data.textfiles import read_lines

Directories = Sequence[Path]


class _Layout(NamedTuple):
    """A file for each part, and the columns of its label and its sentences."""

    files: Mapping[str, str]
    label: int = 0
    sides: Sequence[int] = (1,)
    skip: int = 0


def _parts(name: str, *parts: str) -> dict[str, str]:
    return {
        part: name.format(kind) for part, kind in zip(labelled.PARTS, parts, strict=True) if kind
    }


_TWO_FILES = {
    "MR": {"1": "MR/rt-polarity.pos", "0": "MR/rt-polarity.neg"},
    "CR": {"1": "CR/custrev.pos", "0": "CR/custrev.neg"},
    "SUBJ": {"1": "SUBJ/subj.objective", "0": "SUBJ/subj.subjective"},
    "MPQA": {"1": "MPQA/mpqa.pos", "0": "MPQA/mpqa.neg"},
}
_SST = ("train", "dev", "test")
_SICK = _parts("SICK/SICK_{}.txt", "train", "trial", "test_annotated")
_LAYOUTS = {
    "SST2": _Layout(_parts("SST/binary/sentiment-{}", *_SST), label=1, sides=(0,)),
    "SST5": _Layout(_parts("SST/fine/sentiment-{}", *_SST), label=1, sides=(0,)),
    "TREC": _Layout(_parts("TREC/{}.label", "train_5500", "", "TREC_10")),
    "MRPC": _Layout(
        _parts("MRPC/msr_paraphrase_{}.txt", "train", "", "test"), sides=(3, 4), skip=1
    ),
    "SICK-E": _Layout(_SICK, label=4, sides=(1, 2), skip=1),
    "SICK-R": _Layout(_SICK, label=3, sides=(1, 2), skip=1),
    "STSB": _Layout(_parts("STS/STSBenchmark/sts-{}.csv", *_SST), label=4, sides=(5, 6)),
}
SINGLE = ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC")
SICK_FILE = "sick.en-nl-pt-ja.tsv"
STS_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")


def load_transfer(directories: Directories, name: str) -> labelled.Examples | None:
    """Load a set of single sentences or MRPC; None where there is none.

    Raises:
        ValueError: a file is malformed.
    """
    sides = 1 if name in SINGLE else 2
    path = labelled.first_file(directories, f"{name}.tsv")
    found = labelled.read_examples(path, sides=sides) if path else _original(directories, name)
    if found is None or name != "TREC":
        return found
    coarse = [label.partition(":")[0] for label in found.labels]
    return labelled.Examples(labels=coarse, sides=found.sides, parts=found.parts, files=found.files)


def _original(directories: Directories, name: str) -> labelled.Examples | None:
    """Load a set from SentEval's own folder; None where a file is missing."""
    layout = _LAYOUTS.get(name)
    files = _TWO_FILES[name] if layout is None else layout.files
    found = {key: labelled.first_file(directories, file) for key, file in files.items()}
    there = {key: path for key, path in found.items() if path is not None}
    if len(there) < len(files):
        return None
    if name == "TREC":
        return labelled.joined({part: _read_trec(path) for part, path in there.items()})
    if layout is not None:
        _, label, sides, skip = layout
        return labelled.read_parts(there, label=label, sides=sides, skip=skip)
    lines = {label: labelled.lines_of_any_encoding(path) for label, path in there.items()}
    return labelled.Examples(
        labels=[label for label, some in lines.items() for _ in some],
        sides=([line for some in lines.values() for line in some],),
        files=list(there.values()),
    )


def _read_trec(path: Path) -> labelled.Examples:
    """Read ``COARSE:fine question`` lines."""
    rows = [line.partition(" ") for line in labelled.lines_of_any_encoding(path)]
    for number, (label, _, _) in enumerate(rows, start=1):
        if ":" not in label:
            raise ValueError(f"{path} line {number}: expected COARSE:fine, not {label[:60]!r}")
    labels, _, questions = zip(*rows, strict=True)
    return labelled.Examples(labels=labels, sides=(questions,), files=[path])


def load_sick(directories: Directories) -> dict[str, tuple[labelled.Examples, labelled.Examples]]:
    """Load SICK in each language that is there: labels of inference, and relatedness from 1 to 5.

    Read are SentEval's folder (English) or ``sick.en-nl-pt-ja.tsv``, whose header names columns
    ``split``, ``label``, ``relatedness`` and, for each language, ``xx_A`` and ``xx_B``, with
    ``xx_label`` and ``xx_relatedness`` where it has its own.

    Raises:
        ValueError: a file is malformed.
    """
    path = labelled.first_file(directories, SICK_FILE)
    if path is None:
        inference, graded = (_original(directories, name) for name in ("SICK-E", "SICK-R"))
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
        part = header.index("split")
        found[language] = (
            labelled.read_columns(path, part=part, label=labels[0], sides=sides, skip=1),
            labelled.read_columns(path, part=part, label=labels[1], sides=sides, skip=1),
        )
    return found


def load_sts_benchmark(directories: Directories) -> labelled.Examples | None:
    """Load the STS benchmark, scores from 0 to 5; None where there is none."""
    return _original(directories, "STSB")


def load_sts_year(directories: Directories, year: str) -> dict[str, labelled.Examples]:
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
            found[path.name.split(".")[2]] = labelled.Examples(
                labels=[scores[row] for row in kept],
                sides=([pairs[row][0] for row in kept], [pairs[row][1] for row in kept]),
                files=[path],
            )
    return found
