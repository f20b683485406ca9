"""Train an inference classifier in one language, and test it on XNLI.

Features are (u, v, |u - v|, u * v) of both vectors. Hyperparameters are chosen on the development
part of the language or, if it is missing or tested, on held-out training pairs.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from encoder import Encoder
from encoder.checkpoint import HEAD, load_head
from encoder.training.options import INFERENCE_LABELS as LABELS
from encoder.training.reading import parse_labelled, read_inference
from eval.data.labelled import Examples, concat, first_file
from eval.data.languages import name_of
from eval.data.textfiles import choose, files_matching, fingerprint
from eval.metrics import frozen
from eval.output import Record, Show, Table
from eval.tasks.arguments import add_directory, add_list
from eval.tasks.frozen import make_learner, scaled_features
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure, published
from miner.arrays import Mask, Matrix
from miner.extras import require
from miner.storage.streams import read_lines

Learned = tuple[frozen.Predictor, np.float32]  # and the divisor of vectors

MULTINLI = 392_702  # its training pairs
REMARK = (
    "LASER: Artetxe & Schwenk 2019; X-BiLSTM: Conneau 2018; shown where the test part is XNLI's "
    "and the training pairs are MultiNLI's"
)
CLASSIFIERS: dict[str, frozen.Classifier] = {
    "mlp": frozen.Mlp(shapes=[frozen.Shape(hidden=(512, 384), activation="tanh", dropout=0.1)]),
    "logistic": frozen.Logistic(),
}


def _load_xnli(directory: Path) -> tuple[str, dict[str, Examples]]:
    for part in ("test", "dev"):
        if sets := _part(directory, part):
            first = next(iter(sets))
            for language, examples in sets.items():
                if list(examples.labels) != list(sets[first].labels):
                    raise ValueError(
                        f"{directory}: {part} pairs of {language} and {first} differ in number or "
                        "labels; pass files whose rows i are translations"
                    )
            return part, sets
    raise ValueError(
        f"{directory}: contains no XNLI; expected a file per language, such as test.de.tsv or "
        "dev.de.tsv, or xnli.test.tsv"
    )


def _part(directory: Path, part: str) -> dict[str, Examples]:
    if path := first_file([directory], f"xnli.{part}.tsv"):
        return _all_languages(path)
    paths = files_matching(directory, rf"{part}\.([\w-]+)\.tsv(?:\.xz)?")
    return {match[1]: _examples(path, read_inference(path)) for path, match in paths.items()}


def _all_languages(path: Path) -> dict[str, Examples]:
    header, *rows = [line.split("\t") for line in read_lines(path)] or [[]]
    names = "language", "gold_label", "sentence1", "sentence2"
    if lacking := [name for name in names if name not in header]:
        raise ValueError(
            f"{path} line 1: no column {', '.join(lacking)}; expected a header with "
            f"{', '.join(names)}"
        )
    language, *columns = map(header.index, names)
    rows_of: dict[str, list[tuple[int, Sequence[str]]]] = {}
    for number, row in enumerate(rows, start=2):
        if len(row) < len(header):
            counts = f"number of columns {len(row)}, but {len(header)} in line 1"
            raise ValueError(f"{path} line {number}: {counts}; correct it")
        rows_of.setdefault(row[language], []).append((number, row))
    pairs = ((key, parse_labelled(path, columns, own)) for key, own in rows_of.items())
    return {key: _examples(path, own) for key, own in pairs}


def _examples(path: Path, rows: Sequence[tuple[str, str, str]]) -> Examples:
    if not rows:
        raise ValueError(f"{path}: no pairs; expected LABEL TAB premise TAB hypothesis lines")
    labels, *sides = zip(*rows, strict=True)
    return Examples(labels=labels, sides=tuple(sides), files=[path])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="test.xx.tsv, else dev.xx.tsv, as for --train, or xnli.test.tsv")
    add = parser.add_argument
    text = (
        "training pairs (else --head): LABEL TAB premise TAB hypothesis, or .txt of SNLI, MultiNLI"
    )
    add_list(parser, "--train", "FILE", text, type=Path, default=[])
    text = (
        "instead of --train: use the classifier in this folder, of adit train --objective nli; "
        "also pass the folder with --encoder"
    )
    add("--head", type=Path, metavar="ENCODER", help=text)
    add("--train-lang", default="en", metavar="XX", help="language of --train (default: en)")
    add_list(parser, "--lang", "XX", "languages of DIR to test (default: all)")
    text = (
        "classifier to train on --train; logistic: logistic regression; mlp: hidden layers of 512 "
        "and 384 units (default: mlp)"
    )
    add("--classifier", choices=CLASSIFIERS, default="mlp", help=text)
    text = "also test premises in one language with hypotheses in another, for every two languages"
    add("--matrix", action="store_true", help=text)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the labelled sentence pairs of the options' languages, as a suite.

    ValueError says that not exactly one of ``--train`` and ``--head`` is passed, ``--head`` is
    not ``--encoder``, or data are wrong. ModuleNotFoundError says that scikit-learn is missing.
    """
    require("sklearn")
    part, tested = _load_xnli(args.directory)
    names = [name_of(name, tested) for name in args.lang or tested]
    problem = f"{args.directory}: no language"
    tested = {name: choose(tested, name, problem, "--lang") for name in names}
    _check_classifier(args)
    train = concat({str(path): _examples(path, read_inference(path)) for path in args.train})
    dev = _part(args.directory, "dev").get(args.train_lang) if part == "test" else None
    head = args.head and load_head(args.head)
    is_published = len(train) == MULTINLI and part == "test"
    matrix: dict[str, dict[str, float]] = {}  # accuracies by language of premise, of hypothesis

    def measure(encoder: Encoder) -> Iterator[Figure]:
        def learn(model: Encoder) -> Learned:
            if head:
                return head, np.float32(model.dim**-0.5)
            return _learn(model, train, dev, CLASSIFIERS[args.classifier])

        correct = _judge(make_learner(encoder, args.train_lang, learn), tested)
        for name in tested:
            others = published("nli", name, size=len(tested[name]) if is_published else 0)
            yield replace(mean_figure(name, correct(name, name)), beside=others)
        for premise in tested if args.matrix else ():
            matrix[premise] = {name: float(correct(premise, name).mean()) for name in tested}

    def show_matrix(show: Show) -> Record:
        table = Table("premise", list(matrix))
        show(table.header)
        for premise, rates in matrix.items():
            show(table.row(premise, *rates.values()))
        return {"matrix": matrix}

    files = [*args.train, *dict.fromkeys(p for part in tested.values() for p in part.files)]
    learned = {"train": len(train), "train_lang": args.train_lang}
    classifier = fingerprint(args.head / HEAD) if head else args.classifier
    options = {"languages": ",".join(tested), "part": part, **learned, "classifier": classifier}
    fields = fields_of(files, **options)
    suite = Suite("nli", fields, measure, remark=REMARK, unit="pairs")
    return replace(suite, more=show_matrix) if args.matrix else suite


def _check_classifier(args: argparse.Namespace) -> None:
    if args.head and args.train:
        raise ValueError("--head conflicts with --train; omit one of them")
    if not (args.head or args.train):
        raise ValueError("missing --train FILE; pass it, or an encoder with --head")
    if args.head and args.head.resolve() != Path(args.encoder).resolve():
        raise ValueError(
            f"--head {args.head}: its classifier reads vectors of this encoder; also pass "
            f"--encoder {args.head}"
        )


def _learn(
    model: Encoder, train: Examples, dev: Examples | None, classifier: frozen.Classifier
) -> Learned:
    vectors = _vectors(model, train)
    scale = frozen.root_mean_square(np.concatenate(vectors))
    parts = [(vectors, train), *([(_vectors(model, dev), dev)] if dev else [])]
    features = ((scaled_features(sides, scale, both=True), _targets(part)) for sides, part in parts)
    return classifier.fit(*(frozen.Part(*rows) for rows in features)), scale


def _judge(
    learned: Callable[..., tuple[Learned, list[Encoder]]], tested: Mapping[str, Examples]
) -> Callable[[str, str], Mask]:
    vectors: dict[tuple[str, str], list[Matrix]] = {}
    gold = _targets(next(iter(tested.values()))).argmax(axis=1)

    def correct(*languages: str) -> Mask:
        (predict, scale), encoders = learned(*languages)
        sides = []
        for side, (name, model) in enumerate(zip(languages, encoders, strict=True)):
            if (name, model.name) not in vectors:
                vectors[name, model.name] = _vectors(model, tested[name])
            sides.append(vectors[name, model.name][side])
        is_correct: Mask = predict(scaled_features(sides, scale, both=True)).argmax(axis=1) == gold
        return is_correct

    return correct


def _targets(examples: Examples) -> Matrix:
    return frozen.one_hot(np.array([LABELS.index(label) for label in examples.labels]), len(LABELS))


def _vectors(model: Encoder, examples: Examples) -> list[Matrix]:
    return [model.encode(side) for side in examples.sides]
