"""Classifiers and regressions on frozen vectors of English sentences, by SentEval's protocols.

Nested 10-fold cross-validation, or the parts given. Of pairs |u - v| and u * v are used, for
inference u and v, too. STS by cosine. Read are SentEval's folders or NAME.tsv, [tr|va|te TAB] LABEL
TAB sentence.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data import senteval
from eval.data.labelled import DEV, TEST, TRAIN, Examples
from eval.data.published import published
from eval.encoding import learner, own_encoders
from eval.metrics import frozen
from eval.metrics.bootstrap import pearson
from eval.tasks import suite
from eval.tasks.arguments import add_list
from eval.tasks.frozen import CLASSIFIERS, add_classifier, judged, scaled_features, tested
from miner.extras import require

Sets = Mapping[str, Examples]  # by language

NAMES = (*senteval.SINGLE, "MRPC", "SICK", "STSB", *senteval.STS_YEARS)
REMARK = (
    "InferSent (BiLSTM-max, AllNLI) and GloVe (mean of words): Conneau 2018, where the set has as "
    "many examples; correlations in per cent"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help="hold the sets")
    add_list(parser, "--set", "NAME", f"of {', '.join(NAMES)}", choices=NAMES)
    add_classifier(parser, default="logistic")


def prepare(args: argparse.Namespace) -> suite.Suite:
    """Load the sets."""
    require("sklearn")
    wanted = args.set or NAMES
    found = {name: _load(args.directories, name) for name in NAMES if name in wanted}
    sets = {name: each for name, each in found.items() if each}
    if missing := [name for name in args.set or () if name not in sets]:
        raise ValueError(f"{args.directories[0]}: no set {', '.join(missing)}")
    if not sets:
        raise ValueError(f"{args.directories[0]}: none of the sets {', '.join(NAMES)}")
    classifier = CLASSIFIERS[args.classifier]()

    def measure(encoder: Encoder) -> Iterator[suite.Figure]:
        for name, each in sets.items():
            if name == "SICK":
                yield from _sick(encoder, each, classifier)
            elif name == "STSB":
                yield from _graded(encoder, name, each, classifier, lowest=0)
            elif name in senteval.STS_YEARS:
                yield from _by_cosine(encoder, name, each)
            else:
                yield from _classified(encoder, name, each[""], classifier)

    files = dict.fromkeys(path for each in sets.values() for path in _files(each))
    fields = suite.fields_of(list(files), sets=",".join(sets), classifier=classifier.name)
    return suite.Suite(
        task="senteval", label="set", fields=fields, measure=measure, remark=REMARK, unit="tested"
    )


def _load(directories: Sequence[Path], name: str) -> Mapping[str, Any]:
    """Return the examples of a set by language or by part, both kinds of them for SICK."""
    if name == "SICK":
        return senteval.load_sick(directories)
    if name in senteval.STS_YEARS:
        return senteval.load_sts_year(directories, name)
    if name == "STSB":
        benchmark = senteval.load_sts_benchmark(directories)
        return {"en": benchmark} if benchmark else {}
    single = senteval.load_transfer(directories, name)
    return {"": single} if single else {}


def _files(sets: Mapping[str, Any]) -> Iterator[Path]:
    for one in sets.values():
        yield from (one if isinstance(one, Examples) else one[0]).files


def _classified(
    encoder: Encoder, name: str, examples: Examples, classifier: frozen.Classifier
) -> Iterator[suite.Figure]:
    found, gold = judged(encoder, examples, classifier), tested(examples)
    stream = NAMES.index(name)
    right = suite.mean_figure(name, found == gold, stream=stream)
    yield replace(right, beside=published("senteval", name, size=len(examples)))
    if name == "MRPC":
        label = f"{name} F1"
        f1 = suite.f1_figure(label, found == 1, gold == 1, stream=stream)
        yield replace(f1, beside=published("senteval", label, size=len(examples)), in_mean=False)


def _sick(
    encoder: Encoder, sick: Mapping[str, tuple[Examples, Examples]], classifier: frozen.Classifier
) -> Iterator[suite.Figure]:
    """Learn from English, or the first language, and test on all."""
    first = next(iter(sick))
    inference = {language: both[0] for language, both in sick.items()}
    names, _ = inference[first].classes()
    targets = {
        language: frozen.one_hot(examples.classes()[1], len(names))
        for language, examples in inference.items()
    }
    for language, test in _tested(encoder, inference, targets, classifier, both=True):
        examples = inference[language]
        correct = test.rows.argmax(axis=1) == test.targets.argmax(axis=1)
        yield _of_language("SICK-E", language, first, examples, suite.mean_figure("", correct))
    graded = {language: both[1] for language, both in sick.items()}
    yield from _graded(encoder, "SICK-R", graded, classifier, lowest=1)


def _graded(
    encoder: Encoder, name: str, sets: Sets, classifier: frozen.Classifier, *, lowest: int
) -> Iterator[suite.Figure]:
    """Learn distributions over grades from the first language; correlate on all."""
    first = next(iter(sets))
    regression = replace(classifier, score=frozen.grade_correlation)
    stream = NAMES.index("SICK" if name.startswith("SICK") else name)
    scores = {language: examples.scores() - lowest + 1 for language, examples in sets.items()}
    targets = {
        language: frozen.grade_targets(each, 5 - lowest + 1) for language, each in scores.items()
    }
    for language, test in _tested(encoder, sets, targets, regression, both=False):
        examples = sets[language]
        found, gold = frozen.expected_grade(test.rows), scores[language][examples.part(TEST)]
        correlated = suite.correlation_figure("", found, gold)
        yield replace(_of_language(name, language, first, examples, correlated), in_mean=False)
        if language == first:
            rho = suite.correlation_figure(f"{name} rho", suite.ranks(found), suite.ranks(gold))
            yield replace(rho, stream=stream, in_mean=False)


def _of_language(
    name: str, language: str, first: str, examples: Examples, figure: suite.Figure
) -> suite.Figure:
    """Name a figure of a set that has the same sentences in all its languages."""
    return replace(
        figure,
        name=name if language == first else f"{name} {language}",
        stream=NAMES.index("SICK" if name.startswith("SICK") else name),
        beside=published("senteval", name, size=len(examples)) if language == first else {},
        in_mean=language == first,
    )


def _by_cosine(encoder: Encoder, year: str, sets: Sets) -> Iterator[suite.Figure]:
    """Correlate the cosines of each set of a year; then the sets' mean, plain and weighted."""
    figures = []
    for name, examples in sets.items():
        (own,) = own_encoders(encoder, ["en"])
        first, second = (own.encode(side) for side in examples.sides)
        cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        figures.append(suite.correlation_figure(f"{year} {name}", cosines, examples.scores()))
    yield from (replace(figure, in_mean=False) for figure in figures)
    yield from _means(year, figures)


def _means(year: str, figures: list[suite.Figure]) -> Iterator[suite.Figure]:
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
        yield suite.Figure(name=f"{year}{label}", units=units, statistic=statistic, in_mean=False)


def _weighted(sums: NDArray[np.float64], *, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted mean of correlations from their sums side by side."""
    parts = np.split(sums, len(weights), axis=1)
    return np.stack([pearson(one) for one in parts], axis=1) @ weights


def _tested(
    encoder: Encoder,
    sets: Sets,
    targets: Mapping[str, NDArray[np.float32]],
    classifier: frozen.Classifier,
    *,
    both: bool,
) -> Iterator[tuple[str, frozen.Part]]:
    """Yield predictions for each language's test part, learned from the first, with targets."""
    first = next(iter(sets))

    def learn(own: Encoder) -> tuple[frozen.Predictor, np.float32]:
        examples = sets[first]
        sides = [own.encode(side) for side in examples.sides]
        train = examples.part(TRAIN)
        scale = frozen.root_mean_square(np.concatenate([side[train] for side in sides]))
        everything = frozen.Part(scaled_features(sides, scale, both=both), targets[first])
        parts = [everything.take(examples.part(part)) for part in (TRAIN, DEV)]
        return classifier.fit(*parts), scale

    learned = learner(encoder, first, learn)
    for language, examples in sets.items():
        (predict, scale), (own,) = learned(language)
        rows = np.flatnonzero(examples.part(TEST))
        sides = [own.encode([side[row] for row in rows.tolist()]) for side in examples.sides]
        found = predict(scaled_features(sides, scale, both=both))
        yield language, frozen.Part(found, targets[language][rows])
