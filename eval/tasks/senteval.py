"""SentEval's transfer tasks: classifiers and regressions on frozen vectors of English sentences."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data.labelled import DEV, TEST, TRAIN, Examples
from eval.data.published import published, publishers
from eval.data.senteval import (
    SINGLE,
    STS_YEARS,
    load_sick,
    load_sts_benchmark,
    load_sts_year,
    load_transfer,
    scores_of,
)
from eval.encoding import learner, own_encoders
from eval.metrics.frozen import (
    Classifier,
    Part,
    Predictor,
    expected_grade,
    grade_correlation,
    grade_targets,
    one_hot,
    root_mean_square,
)
from eval.metrics.sts import pearson
from eval.tasks.frozen import (
    CLASSIFIERS,
    add_classifier,
    judged,
    scaled_features,
    tested,
)
from eval.tasks.suite import (
    Figure,
    Suite,
    correlation_figure,
    f1_figure,
    fields_of,
    mean_figure,
    ranks,
)

NAMES = (*SINGLE, "MRPC", "SICK", "STSB", *STS_YEARS)
REMARK = (
    "InferSent (BiLSTM-max, AllNLI) and GloVe (mean of words): Conneau 2018, where the set has as "
    "many examples; correlations in per cent"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "Classifiers on frozen vectors of English sentences by SentEval's protocols: nested "
        "10-fold cross-validation, "
        "or the parts given. Of pairs |u - v| and u * v are used, for inference u and v, too. STS "
        "by cosine. Read are SentEval's folders or NAME.tsv, [tr|va|te TAB] LABEL TAB sentence."
    )
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help="hold the sets")
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        choices=NAMES,
        metavar="NAME",
        help=f"of {', '.join(NAMES)}",
    )
    add_classifier(parser, default="logistic")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the sets.

    Raises:
        ValueError: there is none, one asked for is missing, or one is malformed.
    """
    wanted = args.set or NAMES
    single = {
        name: found
        for name in (*SINGLE, "MRPC")
        if name in wanted and (found := load_transfer(args.directories, name))
    }
    sick = load_sick(args.directories) if "SICK" in wanted else {}
    benchmark = load_sts_benchmark(args.directories) if "STSB" in wanted else None
    years = {
        year: each
        for year in STS_YEARS
        if year in wanted and (each := load_sts_year(args.directories, year))
    }
    there = {*single, *years, *(["SICK"] if sick else []), *(["STSB"] if benchmark else [])}
    if missing := [name for name in args.set or () if name not in there]:
        raise ValueError(f"{args.directories[0]}: no set {', '.join(missing)}")
    if not there:
        raise ValueError(f"{args.directories[0]}: none of the sets {', '.join(NAMES)}")
    classifier = CLASSIFIERS[args.classifier]()
    examples = [
        *single.values(),
        *(one for both in sick.values() for one in both[:1]),
        *([benchmark] if benchmark else []),
        *(one for each in years.values() for one in each.values()),
    ]

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for name, one in single.items():
            yield from _classified(encoder, name, one, classifier)
        yield from _sick(encoder, sick, classifier)
        if benchmark is not None:
            yield from _graded(encoder, "STSB", {"en": benchmark}, classifier, lowest=0)
        for year, each in years.items():
            yield from _by_cosine(encoder, year, each)

    files = dict.fromkeys(path for one in examples for path in one.files)
    return Suite(
        task="senteval",
        label="set",
        fields=fields_of(
            list(files), sets=",".join(n for n in NAMES if n in there), classifier=classifier.name
        ),
        measure=measure,
        published=publishers("senteval"),
        remark=REMARK,
        unit="tested",
    )


def _classified(
    encoder: Encoder, name: str, examples: Examples, classifier: Classifier
) -> Iterator[Figure]:
    found, gold = judged(encoder, examples, classifier), tested(examples)
    stream = NAMES.index(name)
    right = mean_figure(name, found == gold, stream=stream)
    yield replace(right, published=published("senteval", name, size=len(examples)))
    if name == "MRPC":
        label = f"{name} F1"
        f1 = f1_figure(label, found == 1, gold == 1, stream=stream)
        yield replace(f1, published=published("senteval", label, size=len(examples)), in_mean=False)


def _sick(
    encoder: Encoder, sick: dict[str, tuple[Examples, Examples]], classifier: Classifier
) -> Iterator[Figure]:
    """Learn from English, or the first language, and test on all."""
    if not sick:
        return
    first = next(iter(sick))
    inference = {language: both[0] for language, both in sick.items()}
    names, _ = inference[first].classes()
    targets = {
        language: one_hot(examples.classes()[1], len(names))
        for language, examples in inference.items()
    }
    for language, test in _tested(encoder, inference, targets, classifier, both=True):
        examples = inference[language]
        correct = test.rows.argmax(axis=1) == test.targets.argmax(axis=1)
        yield _of_language("SICK-E", language, first, examples, mean_figure("", correct))
    graded = {language: both[1] for language, both in sick.items()}
    yield from _graded(encoder, "SICK-R", graded, classifier, lowest=1)


def _graded(
    encoder: Encoder,
    name: str,
    sets: dict[str, Examples],
    classifier: Classifier,
    *,
    lowest: int,
) -> Iterator[Figure]:
    """Learn distributions over grades from the first language; correlate on all."""
    first = next(iter(sets))
    regression = replace(classifier, score=grade_correlation)
    stream = NAMES.index("SICK" if name.startswith("SICK") else name)
    scores = {language: scores_of(examples) - lowest + 1 for language, examples in sets.items()}
    targets = {language: grade_targets(each, 5 - lowest + 1) for language, each in scores.items()}
    for language, test in _tested(encoder, sets, targets, regression, both=False):
        examples = sets[language]
        found, gold = expected_grade(test.rows), scores[language][examples.part(TEST)]
        correlated = correlation_figure("", found, gold)
        yield replace(_of_language(name, language, first, examples, correlated), in_mean=False)
        if language == first:
            rho = correlation_figure(f"{name} rho", ranks(found), ranks(gold))
            yield replace(rho, stream=stream, in_mean=False)


def _of_language(
    name: str, language: str, first: str, examples: Examples, figure: Figure
) -> Figure:
    """Name a figure of a set that has the same sentences in all its languages."""
    return replace(
        figure,
        name=name if language == first else f"{name} {language}",
        stream=NAMES.index("SICK" if name.startswith("SICK") else name),
        published=published("senteval", name, size=len(examples)) if language == first else {},
        in_mean=language == first,
    )


def _by_cosine(encoder: Encoder, year: str, sets: dict[str, Examples]) -> Iterator[Figure]:
    """Correlate the cosines of each set of a year; then the sets' mean, plain and weighted."""
    figures = []
    for name, examples in sets.items():
        (own,) = own_encoders(encoder, ["en"])
        first, second = (own.encode(side) for side in examples.sides)
        cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        figures.append(correlation_figure(f"{year} {name}", cosines, scores_of(examples)))
    yield from (replace(figure, in_mean=False) for figure in figures)
    yield from _means(year, figures)


def _means(year: str, figures: list[Figure]) -> Iterator[Figure]:
    """Return the mean of the figures of sets, each alike and by their number of pairs.

    The units of all sets are resampled together; each has its sums in columns of its own.
    """
    width = figures[0].units.shape[1]
    units = np.zeros((sum(len(one.units) for one in figures), width * len(figures)))
    row = 0
    for number, one in enumerate(figures):
        units[row : row + len(one.units), width * number : width * (number + 1)] = one.units
        row += len(one.units)
    sizes = np.array([len(one.units) for one in figures], dtype=np.float64)
    for label, weights in (("", np.ones(len(figures))), (" weighted", sizes)):
        statistic = partial(_weighted, weights=weights / weights.sum())
        yield Figure(name=f"{year}{label}", units=units, statistic=statistic, in_mean=False)


def _weighted(sums: NDArray[np.float64], *, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted mean of correlations from their sums side by side."""
    parts = np.split(sums, len(weights), axis=1)
    found: NDArray[np.float64] = np.stack([pearson(one) for one in parts], axis=1) @ weights
    return found


def _tested(
    encoder: Encoder,
    sets: dict[str, Examples],
    targets: dict[str, NDArray[np.float32]],
    classifier: Classifier,
    *,
    both: bool,
) -> Iterator[tuple[str, Part]]:
    """Yield what is predicted of each language's test part, learned from the first, with targets.

    All vectors are divided by the root mean square of what is learned from.
    """
    first = next(iter(sets))

    def learn(own: Encoder) -> tuple[Predictor, np.float32]:
        examples = sets[first]
        sides = [own.encode(side) for side in examples.sides]
        train = examples.part(TRAIN)
        scale = root_mean_square(np.concatenate([side[train] for side in sides]))
        everything = Part(scaled_features(sides, scale, both=both), targets[first])
        parts = [everything.take(examples.part(part)) for part in (TRAIN, DEV)]
        return classifier.fit(*parts), scale

    learned = learner(encoder, first, learn)
    for language, examples in sets.items():
        (predict, scale), (own,) = learned(language)
        rows = np.flatnonzero(examples.part(TEST))
        sides = [own.encode([side[row] for row in rows.tolist()]) for side in examples.sides]
        found = predict(scaled_features(sides, scale, both=both))
        yield language, Part(found, targets[language][rows])
