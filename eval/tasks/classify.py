"""Train a classifier of topics in one language and test its accuracy in others.

The tested part is te or, if it is missing, va. Hyperparameters are chosen on va of the training
language, or by 10-fold cross-validation if va is tested.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.labelled import (
    DEV,
    PARTS,
    TEST,
    TRAIN,
    Examples,
    join_parts,
    read_columns,
    read_parts,
)
from eval.data.languages import name_of
from eval.data.textfiles import files_matching
from eval.metrics import frozen
from eval.metrics.frozen import Part
from eval.output import Record, Show, Table
from eval.tasks.arguments import add_directory, add_list
from eval.tasks.frozen import learner
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure, published, run_suite
from miner.extras import require

_NAMES = "english:en german:de spanish:es french:fr italian:it japanese:ja russian:ru chinese:zh"
MLDOC = dict(each.split(":") for each in _NAMES.split())  # codes by what its files are called
MLDOC_TRAIN = ("train.1000", "train.10000", "train.5000", "train.2000")
_FLAT = re.compile(r"(\w{3}_\w{4})\.tsv(?:\.xz)?")
_STARS = re.compile(r"([a-z]{2,3})\.(train|test)\.tsv(?:\.xz)?")
FAIR, FIRST_WORDS = 3, 64  # stars that say neither; what is read of a review
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
    """Load each language's sentences with topics and parts, by the names that the files have.

    Read are ``xxx_Yyyy.tsv`` (``tr|va|te TAB id TAB category TAB text``); SIB-200's own
    ``xxx_Yyyy/train.tsv``, ``dev.tsv`` and ``test.tsv`` with the header ``index_id category text``;
    MLDoc's ``english.train.1000``, ``english.dev`` and ``english.test`` (``LABEL TAB text``); and
    reviews, ``xx.train.tsv`` and ``xx.test.tsv`` (``STARS TAB text``). A ValueError says that there
    is none, or that a file is malformed.
    """
    found: dict[str, Examples] = {}
    reviews: dict[str, dict[str, Examples]] = {}
    for path in files_matching(directory, ".*"):
        if match := _FLAT.fullmatch(path.name):
            found[match[1]] = read_columns(path, part=0, label=2, sides=(3,))
        elif path.is_dir() and (path / "train.tsv").is_file():
            files = (path / f"{name}.tsv" for name in ("train", "dev", "test"))
            there = dict(zip(PARTS, files, strict=True))
            found[path.name] = read_parts(there, label=1, sides=(2,), skip=1)
        elif match := _STARS.fullmatch(path.name):
            reviews.setdefault(match[1], {})[match[2][:2]] = _opinions(path)
    found |= {language: join_parts(parts) for language, parts in reviews.items()}
    for name, code in MLDOC.items():
        if train := [p for p in MLDOC_TRAIN if (directory / f"{name}.{p}").is_file()]:
            files = (directory / f"{name}.{file}" for file in (train[0], "dev", "test"))
            there = dict(zip(PARTS, files, strict=True))
            found[code] = read_parts(there, label=0, sides=(1,))
    if not found:
        raise ValueError(
            f"{directory}: no topics; expected xxx_Yyyy.tsv, xxx_Yyyy/train.tsv, "
            "english.train.1000 and the like, or xx.train.tsv"
        )
    return found


def _opinions(path: Path) -> Examples:
    """Read reviews: more than three stars are positive, fewer negative, and three left out.

    Of each the first 64 words (Chidambaram et al. 2019, section 4.2).
    """
    rows = read_columns(path, label=0, sides=(1,))
    reviews = zip(rows.scores(), rows.sides[0], strict=True)
    kept = [(stars, text.split()[:FIRST_WORDS]) for stars, text in reviews if stars != FAIR]
    labels = ["positive" if stars > FAIR else "negative" for stars, _ in kept]
    return Examples(labels=labels, sides=([" ".join(words) for _, words in kept],), files=[path])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    reviews = "xx.train.tsv and xx.test.tsv of reviews, STARS TAB text, positive above 3 stars"
    add_directory(parser, holds=f"xxx_Yyyy.tsv, SIB-200's folders, MLDoc's files, or {reviews}")
    add = parser.add_argument
    add("--train-lang", metavar="XX", help="training language (default: English)")
    add_list(parser, "--lang", "XX", "languages to test (default: all)")
    text = "logistic; mlp with a hidden layer of 10; mlp-512 with two of 512 (default: logistic)"
    add("--classifier", choices=CLASSIFIERS, default="logistic", help=text)
    text = "also train on shares of each language's own data, with and without the first language"
    add("--few-shot", action="store_true", help=text)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Learn from one language, test in all."""
    if not args.few_shot:
        return run_suite(prepare(args), args.encoder, show)
    curves: dict[str, Record] = {}
    record = run_suite(prepare(args, curves), args.encoder, show)
    shares = [f"{share:.0%}" for share in SHARES]
    for kind, title in (("with", "and own"), ("alone", "own alone")):
        table = Table(title, shares)
        show(table.header)
        for name, curve in curves.items():
            show(table.row(name, *map(curve[kind].get, shares)))
    return {**record, "few_shot": curves}


def prepare(args: argparse.Namespace, curves: dict[str, Record] | None = None) -> Suite:
    """Load the sets; few-shot curves go to ``curves``."""
    require("sklearn")
    sets = _load(args)
    first = next(iter(sets))
    classes = sorted({label for one in sets.values() for label in one.labels})
    classifier = CLASSIFIERS[args.classifier]

    def measure(encoder: Encoder) -> Iterator[Figure]:
        def learn(own: Encoder) -> tuple[frozen.Predictor, Part, np.float32]:
            source = _part(own, sets[first], TRAIN, classes)
            scale = frozen.root_mean_square(source.rows)
            source = replace(source, rows=source.rows / scale)
            dev = None
            if _tested(sets[first]) == TEST and sets[first].part(DEV).any():
                dev = _part(own, sets[first], DEV, classes, scale)
            return classifier.fit(source, dev), source, scale

        learned = learner(encoder, first, learn)
        for name, examples in sets.items():
            (predict, source, scale), (own,) = learned(name)
            test = _part(own, examples, _tested(examples), classes, scale)
            right = predict(test.rows).argmax(axis=1) == test.targets.argmax(axis=1)
            others = published("classify", name, size=int(examples.part(TRAIN).sum()))
            yield replace(mean_figure(name, right), beside=others)
            if curves is not None and name != first:
                theirs = _part(own, examples, TRAIN, classes, scale)
                curves[name] = _curve(classifier, source, theirs, test)

    files = [path for one in sets.values() for path in dict.fromkeys(one.files)]
    known = {"languages": ",".join(sets), "part": _tested(sets[first]), "train_lang": first}
    fields = fields_of(files, **known, classifier=classifier.name)
    return Suite("classify", fields, measure, remark=REMARK, unit="tested")


def _tested(examples: Examples) -> str:
    return TEST if examples.part(TEST).any() else DEV


def _load(args: argparse.Namespace) -> dict[str, Examples]:
    """Load the languages asked for, after the one that is trained on."""
    sets = load_topics(args.directory)
    first = args.train_lang or next(n for n in ("en", "eng_Latn", *sets) if n in sets)
    names = [name_of(name, sets) or name for name in (first, *(args.lang or ()))]
    for name in names:
        if name not in sets:
            raise ValueError(f"{args.directory}: no {name!r}; there are {', '.join(sets)}")
    found = {name: sets[name] for name in (names if args.lang else (names[0], *sets))}
    for name, examples in found.items():
        for part in (TRAIN, _tested(examples)):
            if not examples.part(part).any():
                raise ValueError(f"{args.directory}: {name} has no sentence of the part {part}")
    return found


def _part(
    own: Encoder, examples: Examples, part: str, classes: list[str], scale: float | np.float32 = 1
) -> Part:
    chosen = np.flatnonzero(examples.part(part)).tolist()
    rows = own.encode([examples.sides[0][row] for row in chosen])
    labels = np.array([classes.index(examples.labels[row]) for row in chosen])
    return Part(rows / np.float32(scale), frozen.one_hot(labels, len(classes)))


def _curve(classifier: frozen.Classifier, source: Part, own: Part, test: Part) -> Record:
    """Return accuracies by share of a language's own training part, with the first's and alone."""
    order = np.random.default_rng(classifier.seed).permutation(len(own.rows))
    curve: Record = {"with": {}, "alone": {}}
    for share in SHARES:
        some = order[: round(share * len(order))]
        part = Part(own.rows[some], own.targets[some])
        sides = (source.rows, part.rows), (source.targets, part.targets)
        both = Part(*map(np.concatenate, sides))
        for kind, train in (("with", both), ("alone", part)):
            if len(train.rows) > 1:
                found = classifier.fit(train)(test.rows)
                curve[kind][f"{share:.0%}"] = frozen.accuracy(found, test.targets)
    return curve
