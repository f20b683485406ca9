"""Train classifiers on frozen vectors of sentences, as SentEval does.

Sets without given parts use nested 10-fold cross-validation. Features of pairs are |u - v| and
u * v, for inference also u and v. STS12 to STS16 use the cosine. Data are SentEval's folders or, if
not of SICK or STS, NAME.tsv, [tr|va|te TAB] LABEL TAB sentence [TAB sentence]; for SICK also
sick.en-nl-pt-ja.tsv.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from encoder import Encoder
from eval.data import labelled
from eval.data.labelled import DEV, PARTS, TEST, TRAIN, Examples, read_parts
from eval.data.languages import encoders_of_languages
from eval.metrics import frozen
from eval.metrics.bootstrap import moments, pearson
from eval.metrics.bucc import f1_of
from eval.tasks import suite
from eval.tasks.arguments import add_list
from eval.tasks.frozen import CLASSIFIERS, add_classifier, classify, make_learner, scaled_features
from eval.tasks.suite import Figure, Suite, mean_figure, published
from miner.arrays import FloatArray, Matrix
from miner.extras import require
from miner.storage.streams import read_lines

Folders = Sequence[Path]
Sets = Mapping[str, Examples]  # by language
Targets = Mapping[str, Matrix]  # by language
Paths = Mapping[str, Path]  # by class or part

SICK_FILE = "sick.en-nl-pt-ja.tsv"
SINGLE = ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC")
STS_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
NAMES = (*SINGLE, "MRPC", "SICK", "STSB", *STS_YEARS)
REMARK = (
    "InferSent (BiLSTM-max, AllNLI) and GloVe (mean of words): Conneau 2018, where the set has as "
    "many examples; correlations in percent"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    text = "folders with SentEval's folders or NAME.tsv; of equal names, the first is read"
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help=text)
    text = (
        "sets to run: MR, CR, SST2, SST5 (sentiment), SUBJ (subjectivity), MPQA (opinions), TREC "
        "(questions), MRPC (paraphrases), SICK (inference, similarity), STSB, STS12 to STS16 "
        "(similarity) (default: all in DIR)"
    )
    add_list(parser, "--set", "NAME", text, choices=NAMES)
    add_classifier(parser, default="logistic")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the sets that options ask for, by default all, as a suite.

    Raises:
        ValueError: A requested set is missing, a file is malformed, or the folders have no set.
        ModuleNotFoundError: scikit-learn is not installed.
    """
    require("sklearn")
    names = args.set or NAMES
    loaded = {name: _load(args.directories, name) for name in NAMES if name in names}
    sets = {name: parts for name, parts in loaded.items() if parts}
    folders = ", ".join(map(str, args.directories))
    if missing := [name for name in args.set or () if name not in sets]:
        raise ValueError(
            f"{folders}: lacks {', '.join(missing)}; omit it from --set, or pass its folder"
        )
    if not sets:
        raise ValueError(
            f"{folders}: contains no set of SentEval; pass a folder with some of {', '.join(NAMES)}"
        )
    classifier = CLASSIFIERS[args.classifier]()

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for name, parts in sets.items():
            if name == "SICK":
                yield from _sick(encoder, parts, classifier)
            elif name == "STSB":
                yield from _graded(encoder, name, parts, classifier, lowest=0)
            elif name in STS_YEARS:
                yield from _by_cosine(encoder, name, parts)
            else:
                yield from _classified(encoder, name, parts[""], classifier)

    all_parts = [part for parts in sets.values() for part in parts.values()]
    examples = [part if isinstance(part, Examples) else part[0] for part in all_parts]
    files = dict.fromkeys(path for part in examples for path in part.files)
    fields = suite.fields_of(list(files), sets=",".join(sets), classifier=classifier.name)
    return Suite("senteval", fields, measure, label="set", remark=REMARK, unit="tested")


def _load(folders: Folders, name: str) -> Mapping[str, Any]:
    if name == "SICK":
        return _load_sick(folders)
    if name in STS_YEARS:
        return _load_year(folders, name)
    if name == "STSB":
        benchmark = _original(folders, name)
        return {"en": benchmark} if benchmark else {}
    path = labelled.first_file(folders, f"{name}.tsv")
    sides = 1 if name in SINGLE else 2
    examples = labelled.read_examples(path, sides=sides) if path else _original(folders, name)
    if examples is not None and name == "TREC":
        examples = replace(examples, labels=[label.partition(":")[0] for label in examples.labels])
    return {"": examples} if examples else {}


def _original(folders: Folders, name: str) -> Examples | None:
    files, read = _ORIGINALS[name]
    paths = {key: labelled.first_file(folders, file) for key, file in files.items()}
    present = {key: path for key, path in paths.items() if path is not None}
    return read(present) if len(present) == len(files) else None


def _lines(path: Path) -> list[str]:
    """Read UTF-8 lines or, if that fails, all bytes of the file as Latin-1."""
    try:
        return read_lines(path)
    except ValueError:
        return path.read_bytes().decode("latin-1").rstrip("\n").split("\n")


def _read_classes(paths: Paths) -> Examples:
    lines = {label: _lines(path) for label, path in paths.items()}
    return Examples(
        labels=[label for label, rows in lines.items() for _ in rows],
        sides=([line for rows in lines.values() for line in rows],),
        files=list(paths.values()),
    )


def _read_trec(paths: Paths) -> Examples:
    parts = {}
    for part, path in paths.items():
        rows = [line.partition(" ") for line in _lines(path) or [""]]
        for number, (label, _, _) in enumerate(rows, start=1):
            if ":" not in label:
                raise ValueError(
                    f"{path} line {number}: expected a label such as NUM:count, not {label[:60]!r}"
                )
        labels, _, questions = zip(*rows, strict=True)
        parts[part] = Examples(labels=labels, sides=(questions,), files=[path])
    return labelled.concat(parts)


def _parts(name: str, *parts: str) -> dict[str, str]:
    return {part: name.format(kind) for part, kind in zip(PARTS, parts, strict=True) if kind}


_SST = ("train", "dev", "test")
_MRPC = _parts("MRPC/msr_paraphrase_{}.txt", "train", "", "test")
_SICK = _parts("SICK/SICK_{}.txt", "train", "trial", "test_annotated")
_STSB = _parts("STS/STSBenchmark/sts-{}.csv", *_SST)
# The files of each class or part in SentEval's folders, and their reader.
_ORIGINALS: dict[str, tuple[Mapping[str, str], Callable[[Paths], Examples]]] = {
    "MR": ({"1": "MR/rt-polarity.pos", "0": "MR/rt-polarity.neg"}, _read_classes),
    "CR": ({"1": "CR/custrev.pos", "0": "CR/custrev.neg"}, _read_classes),
    "SUBJ": ({"1": "SUBJ/subj.objective", "0": "SUBJ/subj.subjective"}, _read_classes),
    "MPQA": ({"1": "MPQA/mpqa.pos", "0": "MPQA/mpqa.neg"}, _read_classes),
    "SST2": (_parts("SST/binary/sentiment-{}", *_SST), partial(read_parts, label=1, sides=[0])),
    "SST5": (_parts("SST/fine/sentiment-{}", *_SST), partial(read_parts, label=1, sides=[0])),
    "TREC": (_parts("TREC/{}.label", "train_5500", "", "TREC_10"), _read_trec),
    "MRPC": (_MRPC, partial(read_parts, label=0, sides=[3, 4], skip=1)),
    "SICK-E": (_SICK, partial(read_parts, label=4, sides=[1, 2], skip=1)),
    "SICK-R": (_SICK, partial(read_parts, label=3, sides=[1, 2], skip=1)),
    "STSB": (_STSB, partial(read_parts, label=4, sides=[5, 6])),
}


# The file of several languages has columns xx_A and xx_B and, if they differ from English, xx_label
# and xx_relatedness.
def _load_sick(folders: Folders) -> dict[str, tuple[Examples, Examples]]:
    path = labelled.first_file(folders, SICK_FILE)
    if path is None:
        inference, graded = (_original(folders, name) for name in ("SICK-E", "SICK-R"))
        return {} if inference is None or graded is None else {"en": (inference, graded)}
    header = next(iter(read_lines(path)), "").split("\t")
    languages = [name.removesuffix("_A") for name in header if name.endswith("_A")]
    expected = {"split", "label", "relatedness", *(f"{name}_B" for name in languages)}
    if not expected <= set(header) or not languages:
        lacking = sorted(expected - set(header)) or ["en_A"]
        raise ValueError(
            f"{path} line 1: no column {', '.join(lacking)}; expected a header with split, label, "
            "relatedness and, per language, de_A and de_B"
        )
    sets = {}
    for language in languages:
        sides = [header.index(f"{language}_{side}") for side in "AB"]
        read = partial(labelled.read_columns, path, part=header.index("split"), sides=sides, skip=1)
        columns = [(name, f"{language}_{name}") for name in ("label", "relatedness")]
        names = [column if column in header else name for name, column in columns]
        inference, graded = (read(label=header.index(name)) for name in names)
        sets[language] = inference, graded
    return sets


def _load_year(folders: Folders, year: str) -> dict[str, Examples]:
    sets = {}
    parts = [folder / "STS" / f"{year}-en-test" for folder in reversed(folders)]  # the first wins
    for path in (path for part in parts for path in sorted(part.glob("STS.input.*.txt"))):
        gold = path.with_name(path.name.replace("input", "gs", 1))
        scores = read_lines(gold)
        pairs = [line.split("\t") for line in read_lines(path)]
        if len(scores) != len(pairs):
            raise ValueError(
                f"{path}: the number of lines is {len(pairs)}, but {len(scores)} in {gold}; pass "
                "files of the same pairs"
            )
        for number, pair in enumerate(pairs, start=1):
            if len(pair) < 2:
                raise ValueError(f"{path} line {number}: no tab; expected SENTENCE TAB SENTENCE")
        kept = [row for row, score in enumerate(scores) if score.strip()]  # others have no score
        if not kept:
            raise ValueError(f"{gold}: no scores; expected one per line, of the pairs in {path}")
        sides = tuple([pairs[row][side] for row in kept] for side in (0, 1))
        labels = [scores[row] for row in kept]
        name = path.name.removeprefix("STS.input.").removesuffix(".txt")  # or surprise.OnWN
        sets[name] = Examples(labels=labels, sides=sides, files=[path, gold])
    return dict(sorted(sets.items()))


def _classified(
    encoder: Encoder, name: str, examples: Examples, classifier: frozen.Classifier
) -> Iterator[Figure]:
    predicted, gold = classify(encoder, examples, classifier)
    stream = NAMES.index(name)
    figure = mean_figure(name, predicted == gold, stream=stream)
    yield replace(figure, beside=published("senteval", name, size=len(examples)))
    if name == "MRPC":
        label = f"{name} F1"
        hits = (predicted == 1) & (gold == 1)
        units = np.stack([predicted == 1, hits, hits, gold == 1], axis=1).astype(np.float64)
        f1 = suite.figure_of(label, units, lambda sums: f1_of(*sums.T), stream=stream)
        yield replace(f1, beside=published("senteval", label, size=len(examples)), in_mean=False)


def _sick(
    encoder: Encoder, sick: Mapping[str, tuple[Examples, Examples]], classifier: frozen.Classifier
) -> Iterator[Figure]:
    first = next(iter(sick))
    inference, graded = ({name: sets[kind] for name, sets in sick.items()} for kind in (0, 1))
    count = len(inference[first].classes()[0])
    targets = {key: frozen.one_hot(sets.classes()[1], count) for key, sets in inference.items()}
    for language, test in _predict(encoder, inference, targets, classifier, both=True):
        correct = test.rows.argmax(axis=1) == test.targets.argmax(axis=1)
        figure = mean_figure("SICK-E", correct, stream=NAMES.index("SICK"))
        yield _of_language(figure, language, first, inference[language])
    yield from _graded(encoder, "SICK-R", graded, classifier, lowest=1)


def _graded(
    encoder: Encoder, name: str, sets: Sets, classifier: frozen.Classifier, *, lowest: int
) -> Iterator[Figure]:
    first = next(iter(sets))
    regression = replace(classifier, score=frozen.grade_correlation)
    stream = NAMES.index(name.partition("-")[0])
    scores = {key: examples.scores(lowest, 5) - lowest + 1 for key, examples in sets.items()}
    targets = {key: frozen.grade_targets(grades, 6 - lowest) for key, grades in scores.items()}
    for language, test in _predict(encoder, sets, targets, regression, both=False):
        examples = sets[language]
        predicted, gold = frozen.expected_grade(test.rows), scores[language][examples.part(TEST)]
        correlated = suite.correlation_figure(name, predicted, gold, stream=stream)
        yield replace(_of_language(correlated, language, first, examples), in_mean=False)
        if language == first:
            ranked = suite.ranks(predicted), suite.ranks(gold)
            rho = suite.correlation_figure(f"{name} rho", *ranked, stream=stream)
            yield replace(rho, in_mean=False)


def _of_language(figure: Figure, language: str, first: str, examples: Examples) -> Figure:
    if language != first:
        return replace(figure, name=f"{figure.name} {language}", in_mean=False)
    return replace(figure, beside=published("senteval", figure.name, size=len(examples)))


def _by_cosine(encoder: Encoder, year: str, sets: Sets) -> Iterator[Figure]:
    from scipy.linalg import block_diag

    parts = []
    for name, examples in sets.items():
        (model,) = encoders_of_languages(encoder, ["en"])
        first, second = (model.encode(side) for side in examples.sides)
        cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        parts.append(moments(cosines, examples.scores()))
        yield replace(suite.figure_of(f"{year} {name}", parts[-1], pearson), in_mean=False)
    units, sizes = block_diag(*parts), np.array([float(len(part)) for part in parts])
    for label, weights in (("", np.ones(len(parts))), (" weighted", sizes)):
        statistic = partial(_weighted, weights=weights / weights.sum())
        yield replace(suite.figure_of(f"{year}{label}", units, statistic), in_mean=False)


def _weighted(sums: FloatArray, *, weights: FloatArray) -> FloatArray:
    parts = np.split(sums, len(weights), axis=1)
    return np.stack([pearson(part) for part in parts], axis=1) @ weights


def _predict(
    encoder: Encoder, sets: Sets, targets: Targets, classifier: frozen.Classifier, *, both: bool
) -> Iterator[tuple[str, frozen.Part]]:
    first = next(iter(sets))

    def learn(model: Encoder) -> tuple[frozen.Predictor, np.float32]:
        examples = sets[first]
        sides = [model.encode(side) for side in examples.sides]
        train = examples.part(TRAIN)
        scale = frozen.root_mean_square(np.concatenate([side[train] for side in sides]))
        data = frozen.Part(scaled_features(sides, scale, both=both), targets[first])
        parts = [data.take(examples.part(part)) for part in (TRAIN, DEV)]
        return classifier.fit(*parts), scale

    learned = make_learner(encoder, first, learn)
    for language, examples in sets.items():
        (predict, scale), (model,) = learned(language)
        rows = np.flatnonzero(examples.part(TEST))
        sides = [model.encode([side[row] for row in rows.tolist()]) for side in examples.sides]
        predicted = predict(scaled_features(sides, scale, both=both))
        yield language, frozen.Part(predicted, targets[language][rows])
