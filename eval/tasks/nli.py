"""Accuracy on XNLI of a classifier of (u, v, |u - v|, u * v) trained on pairs of one language.

What is not learned is chosen on that language's development part, or on a tenth of the training
pairs where that part is what is tested.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from encoder.inference import HEAD, load_head
from encoder.training.options import INFERENCE_LABELS as LABELS
from eval.data.inference import load_development, load_xnli, read_pairs
from eval.data.labelled import Examples, joined
from eval.data.published import published, publishers
from eval.data.textfiles import fingerprint
from eval.encoding import learner
from eval.metrics.frozen import (
    Classifier,
    Logistic,
    Mlp,
    Part,
    Predictor,
    one_hot,
    root_mean_square,
)
from eval.metrics.perceptron import Shape
from eval.output import Record, Show, Table
from eval.tasks.arguments import add_directory, add_list
from eval.tasks.frozen import scaled_features
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure, run_suite
from miner.extras import require

MULTINLI = 392_702
REMARK = (
    "LASER: Artetxe & Schwenk 2019; X-BiLSTM: Conneau 2018; shown where the test part is XNLI's "
    "and the training pairs are MultiNLI's"
)
CLASSIFIERS: dict[str, Classifier] = {
    "mlp": Mlp(shapes=[Shape(hidden=(512, 384), activation="tanh", dropout=0.1)]),
    "logistic": Logistic(),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_directory(parser, holds="test.xx.tsv or dev.xx.tsv, or xnli.test.tsv")
    add = parser.add_argument
    text = "LABEL TAB premise TAB hypothesis, or a header with the columns of SNLI or MultiNLI"
    add_list(parser, "--train", "FILE", text, type=Path, default=[])
    add(
        "--head",
        type=Path,
        metavar="ENCODER",
        help="classify by what this encoder learned (adit train --objective nli); train nothing",
    )
    add("--train-lang", default="en", metavar="XX", help="their language (default: en)")
    add_list(parser, "--lang", "XX", "test in these languages (default: all)")
    add("--classifier", choices=CLASSIFIERS, default="mlp", help="(default: mlp, 512 and 384)")
    add(
        "--matrix",
        action="store_true",
        help="also premises of one language with hypotheses of another, all with all",
    )


def run(args: argparse.Namespace, show: Show) -> Record:
    """Learn from one language, test in all."""
    if not args.matrix:
        return run_suite(prepare(args), args.encoder, show)
    kept: dict[tuple[str, str], float] = {}
    record = run_suite(prepare(args, keep=kept), args.encoder, show)
    _show_matrix(kept, show)
    by_premise: dict[str, dict[str, float]] = {}
    for (premise, hypothesis), value in kept.items():
        by_premise.setdefault(premise, {})[hypothesis] = value
    return {**record, "matrix": by_premise}


def prepare(args: argparse.Namespace, keep: dict[tuple[str, str], float] | None = None) -> Suite:
    """Load the pairs; accuracies by languages of premise and hypothesis go to ``keep``, if given.

    Raises:
        ValueError: data is missing or malformed, or there is no such language.
    """
    require("sklearn")
    part, tested = load_xnli(args.directory)
    if unknown := sorted(set(args.lang or ()) - tested.keys()):
        raise ValueError(f"{args.directory}: no {unknown[0]!r}; there are {', '.join(tested)}")
    tested = {name: tested[name] for name in args.lang or tested}
    if (args.head is None) != bool(args.train):
        raise ValueError("--train FILE or --head ENCODER: give one of them, to classify by")
    train = joined({str(path): read_pairs(path) for path in args.train})
    dev = load_development(args.directory, args.train_lang) if part == "test" else None
    head = args.head and load_head(args.head)
    same = len(train) == MULTINLI and part == "test"

    def measure(encoder: Encoder) -> Iterator[Figure]:
        def learn(own: Encoder) -> tuple[Predictor, np.float32]:
            if head:
                return head, np.float32(own.dim**-0.5)
            return _learn(own, train=train, dev=dev, classifier=CLASSIFIERS[args.classifier])

        correct = _judge(learner(encoder, args.train_lang, learn), tested)
        for name in tested:
            others = published("nli", name, size=len(tested[name]) if same else 0)
            yield replace(mean_figure(name, correct(name, name)), beside=others)
        if keep is not None:
            for one in tested:
                for other in tested:
                    keep[one, other] = float(correct(one, other).mean())

    files = [*args.train, *dict.fromkeys(p for one in tested.values() for p in one.files)]
    return Suite(
        task="nli",
        label="language",
        fields=fields_of(
            files,
            languages=",".join(tested),
            part=part,
            train=len(train),
            train_lang=args.train_lang,
            classifier=fingerprint(args.head / HEAD) if head else args.classifier,
        ),
        measure=measure,
        after=publishers("nli"),
        remark=REMARK,
        unit="pairs",
    )


def _learn(
    own: Encoder, *, train: Examples, dev: Examples | None, classifier: Classifier
) -> tuple[Predictor, np.float32]:
    """Return what was learned, and what vectors are divided by."""
    vectors = _vectors(own, train)
    scale = root_mean_square(np.concatenate(vectors))
    parts = [Part(scaled_features(vectors, scale, both=True), _targets(train))]
    if dev is not None:
        parts.append(Part(scaled_features(_vectors(own, dev), scale, both=True), _targets(dev)))
    return classifier.fit(*parts), scale


def _judge(
    learned: Callable[..., tuple[tuple[Predictor, np.float32], list[Encoder]]],
    tested: Mapping[str, Examples],
) -> Callable[[str, str], NDArray[np.bool_]]:
    """Return what says which pairs are right, by the languages of premise and hypothesis."""
    vectors: dict[tuple[str, str], list[NDArray[np.float32]]] = {}
    gold = _targets(next(iter(tested.values()))).argmax(axis=1)

    def correct(*languages: str) -> NDArray[np.bool_]:
        (predict, scale), encoders = learned(*languages)
        sides = []
        for side, (name, own) in enumerate(zip(languages, encoders, strict=True)):
            if (name, own.name) not in vectors:
                vectors[name, own.name] = _vectors(own, tested[name])
            sides.append(vectors[name, own.name][side])
        found = predict(scaled_features(sides, scale, both=True)).argmax(axis=1)
        right: NDArray[np.bool_] = found == gold
        return right

    return correct


def _targets(examples: Examples) -> NDArray[np.float32]:
    return one_hot(np.array([LABELS.index(label) for label in examples.labels]), len(LABELS))


def _vectors(own: Encoder, examples: Examples) -> list[NDArray[np.float32]]:
    """Return the vectors of both sides."""
    return [own.encode(side) for side in examples.sides]


def _show_matrix(rates: dict[tuple[str, str], float], show: Show) -> None:
    names = list(dict.fromkeys(one for one, _ in rates))
    table = Table("premise", names)
    show(table.header)
    for one in names:
        show(table.row(one, *(rates[one, other] for other in names)))
