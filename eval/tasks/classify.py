"""Train a topic classifier in one language, and test it in others.

The test part is tested or, if it is missing, the development part. Hyperparameters are chosen on
that of the training language or, if it is missing or tested, on held-out training sentences.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.labelled import DEV, TEST, TRAIN, Examples, concat, read_columns, read_parts
from eval.data.languages import name_of
from eval.data.textfiles import choose, files_matching
from eval.metrics import frozen
from eval.metrics.frozen import Part
from eval.output import Record, Show, Table
from eval.tasks.arguments import add_directory, add_list
from eval.tasks.frozen import make_learner
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure, published
from miner.extras import require

_NAMES = "english:en german:de spanish:es french:fr italian:it japanese:ja russian:ru chinese:zh"
MLDOC = dict(name.split(":") for name in _NAMES.split())  # language codes by names in MLDoc's files
MLDOC_TRAIN = ("train.1000", "train.10000", "train.5000", "train.2000")
FILES = {TRAIN: "train", DEV: "dev", TEST: "test"}  # names of SIB-200's and MLDoc's files
_FLAT = re.compile(r"(\w{3}_\w{4})\.tsv(?:\.xz)?")
_STARS = re.compile(r"([a-z]{2,3})\.(train|test)\.tsv(?:\.xz)?")
FAIR = 3  # stars of a review that is neither positive nor negative
FIRST_WORDS = 64  # words of a review that are read
SHARES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.0)  # Chidambaram et al. 2019, table 6
REMARK = "LASER: Artetxe & Schwenk 2019, where the set is MLDoc with 1,000 training documents"
CLASSIFIERS: dict[str, frozen.Classifier] = {
    "logistic": frozen.Logistic(),
    "mlp": frozen.Mlp(
        shapes=[frozen.Shape(hidden=[10], activation="tanh", dropout=p) for p in (0.0, 0.1, 0.2)]
    ),
    "mlp-512": frozen.Mlp(shapes=[frozen.Shape(hidden=[512, 512], activation="tanh")]),
}


def load_topics(directory: Path) -> dict[str, Examples]:
    """Load the labelled sentences of each language in a folder.

    These files are read: ``xxx_Yyyy.tsv`` (``tr|va|te TAB id TAB category TAB text``);
    ``xxx_Yyyy/train.tsv``, ``dev.tsv`` and ``test.tsv`` of SIB-200 with the header ``index_id
    category text``; ``english.train.1000``, ``english.dev`` and ``english.test`` of MLDoc (``LABEL
    TAB text``); and reviews, ``xx.train.tsv`` and ``xx.test.tsv`` (``STARS TAB text``). The first
    and the last may end in ``.tsv.xz``. If MLDoc lacks 1000, it is 10000, 5000 or 2000.

    Keys are ``xxx_Yyyy``, MLDoc's codes such as ``en``, and ``xx`` for reviews. Reviews are
    positive above 3 stars, negative below, skipped if of 3, and cut after 64 words.

    Raises:
        ValueError: ``directory`` is not a folder, has no such files, or one is malformed.
    """
    sets: dict[str, Examples] = {}
    reviews: dict[str, dict[str, Examples]] = {}
    for path in files_matching(directory, ".*"):
        if match := _FLAT.fullmatch(path.name):
            sets[match[1]] = read_columns(path, part=0, label=2, sides=(3,))
        elif path.is_dir() and (path / "train.tsv").is_file():
            files = {part: path / f"{name}.tsv" for part, name in FILES.items()}
            sets[path.name] = read_parts(files, label=1, sides=(2,), skip=1)
        elif match := _STARS.fullmatch(path.name):
            reviews.setdefault(match[1], {})[match[2][:2]] = _read_reviews(path)
    sets |= {language: concat(parts) for language, parts in reviews.items()}
    for name, code in MLDOC.items():
        if train := [p for p in MLDOC_TRAIN if (directory / f"{name}.{p}").is_file()]:
            names = FILES | {TRAIN: train[0]}
            files = {part: directory / f"{name}.{file}" for part, file in names.items()}
            sets[code] = read_parts(files, label=0, sides=(1,))
    if not sets:
        raise ValueError(
            f"{directory}: contains no topics; expected files such as eng_Latn.tsv, "
            "eng_Latn/train.tsv, english.train.1000 or en.train.tsv"
        )
    return sets


def _read_reviews(path: Path) -> Examples:
    rows = read_columns(path, label=0, sides=(1,))
    reviews = zip(rows.scores(), rows.sides[0], strict=True)
    kept = [(stars, text.split()[:FIRST_WORDS]) for stars, text in reviews if stars != FAIR]
    labels = ["positive" if stars > FAIR else "negative" for stars, _ in kept]
    return Examples(labels=labels, sides=([" ".join(words) for _, words in kept],), files=[path])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    topics = "xxx_Yyyy.tsv of topics (PART TAB ID TAB TOPIC TAB text, with PART tr, va or te)"
    reviews = "xx.train.tsv and xx.test.tsv of reviews (STARS TAB text, good above 3, bad below)"
    add_directory(parser, holds=f"{topics}, SIB-200's folders, MLDoc's files, or {reviews}")
    add = parser.add_argument
    text = "language of DIR to train in (default: English, or the first)"
    add("--train-lang", metavar="XX", help=text)
    add_list(
        parser, "--lang", "XX", "languages of DIR to test, next to --train-lang (default: all)"
    )
    text = (
        "logistic: logistic regression; mlp: a hidden layer of 10 units; mlp-512: two layers of "
        "512 units (default: logistic)"
    )
    add("--classifier", choices=CLASSIFIERS, default="logistic", help=text)
    text = (
        "also measure classifiers trained on 0 to 100%% of each other language's data, alone and "
        "with the data of --train-lang"
    )
    add("--few-shot", action="store_true", help=text)


def prepare(args: argparse.Namespace) -> Suite:
    """Load the topics of the languages, as a suite.

    Raises:
        ValueError: Data are missing or malformed, or have a single label.
        ModuleNotFoundError: scikit-learn is not installed.
    """
    require("sklearn")
    sets = _load(args)
    curves: dict[str, Record] = {}
    first = next(iter(sets))
    classes = sorted({label for examples in sets.values() for label in examples.labels})
    if len(classes) < 2:
        raise ValueError(
            f"{args.directory}: all sentences have the label {classes[0]!r}; pass 2 or more labels"
        )
    classifier = CLASSIFIERS[args.classifier]

    def measure(encoder: Encoder) -> Iterator[Figure]:
        def learn(model: Encoder) -> tuple[frozen.Predictor, Part, np.float32]:
            source = _part(model, sets[first], TRAIN, classes)
            scale = frozen.root_mean_square(source.rows)
            source = replace(source, rows=source.rows / scale)
            has_dev = _tested_part(sets[first]) == TEST and sets[first].part(DEV).any()
            dev = _part(model, sets[first], DEV, classes, scale) if has_dev else None
            return classifier.fit(source, dev), source, scale

        learned = make_learner(encoder, first, learn)
        for name, examples in sets.items():
            (predict, source, scale), (model,) = learned(name)
            test = _part(model, examples, _tested_part(examples), classes, scale)
            right = predict(test.rows).argmax(axis=1) == test.targets.argmax(axis=1)
            beside = published("classify", name, size=int(examples.part(TRAIN).sum()))
            yield replace(mean_figure(name, right), beside=beside)
            if args.few_shot and name != first:
                own_train = _part(model, examples, TRAIN, classes, scale)
                curves[name] = _curve(classifier, source, own_train, test)

    def show_curves(show: Show) -> Record:
        shares = [f"{share:.0%}" for share in SHARES]
        for kind, title in (("with", "and own"), ("alone", "own alone")):
            table = Table(title, shares)
            show(table.header)
            for name, curve in curves.items():
                show(table.row(name, *map(curve[kind].get, shares)))
        return {"few_shot": curves}

    files = [path for examples in sets.values() for path in dict.fromkeys(examples.files)]
    known = {"languages": ",".join(sets), "part": _tested_part(sets[first]), "train_lang": first}
    fields = fields_of(files, **known, classifier=classifier.name)
    suite = Suite("classify", fields, measure, remark=REMARK, unit="tested")
    return replace(suite, more=show_curves) if args.few_shot else suite


def _tested_part(examples: Examples) -> str:
    return TEST if examples.part(TEST).any() else DEV


def _load(args: argparse.Namespace) -> dict[str, Examples]:
    sets = load_topics(args.directory)
    first = args.train_lang or next(n for n in ("en", "eng_Latn", *sets) if n in sets)
    names = [name_of(name, sets) for name in (first, *(args.lang or sets))]
    problem = f"{args.directory}: no language"
    chosen = {name: choose(sets, name, problem, "--lang") for name in names}
    for name, examples in chosen.items():
        for part in (TRAIN, _tested_part(examples)):
            if not examples.part(part).any():
                raise ValueError(
                    f"{args.directory}: the language {name} has no sentence in its part {part}; "
                    f"choose another with {'--train-lang' if name == names[0] else '--lang'}"
                )
    return chosen


def _part(
    model: Encoder, examples: Examples, part: str, classes: list[str], scale: float | np.float32 = 1
) -> Part:
    chosen = np.flatnonzero(examples.part(part)).tolist()
    rows = model.encode([examples.sides[0][row] for row in chosen])
    labels = np.array([classes.index(examples.labels[row]) for row in chosen])
    return Part(rows / np.float32(scale), frozen.one_hot(labels, len(classes)))


def _curve(classifier: frozen.Classifier, source: Part, language_part: Part, test: Part) -> Record:
    order = np.random.default_rng(classifier.seed).permutation(len(language_part.rows))
    curve: Record = {"with": {}, "alone": {}}
    for share in SHARES:
        rows = order[: round(share * len(order))]
        part = Part(language_part.rows[rows], language_part.targets[rows])
        sides = (source.rows, part.rows), (source.targets, part.targets)
        joint = Part(*map(np.concatenate, sides))
        for kind, train in (("with", joint), ("alone", part)):
            if len(train.rows) > 1:
                predicted = classifier.fit(train)(test.rows)
                curve[kind][f"{share:.0%}"] = frozen.accuracy(predicted, test.targets)
    return curve
