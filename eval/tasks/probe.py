"""Probing tasks: what of a sentence's form can be read off its vector (Conneau et al. 2018)."""

import argparse
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data.labelled import DEV, TEST, TRAIN, Examples, first_file, read_examples
from eval.data.published import published, publishers
from eval.metrics.frozen import Classifier, Logistic, Part, one_hot
from eval.tasks.arguments import add_directory, add_list
from eval.tasks.frozen import CLASSIFIERS, add_classifier, judged, tested
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure

logger = logging.getLogger(__name__)

FILES = {
    "SentLen": "sentence_length",
    "WC": "word_content",
    "TreeDepth": "tree_depth",
    "TopConst": "top_constituents",
    "BShift": "bigram_shift",
    "Tense": "past_present",
    "SubjNum": "subj_number",
    "ObjNum": "obj_number",
    "SOMO": "odd_man_out",
    "CoordInv": "coordination_inversion",
}
BASELINES = ("majority", "length", "unigrams", "bigrams")
REMARK = (
    "majority, length, unigrams, bigrams: the most frequent class, a regression on the number of "
    "words, naive Bayes; fastText, BiLSTM: Conneau et al. 2018, where the test part has 10,000"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "Accuracy of classifiers that read sentence length, word content, tree depth, word order, "
        "tense and number off frozen vectors, beside what is found without an encoder."
    )
    add_directory(parser, holds="bigram_shift.txt and the like, split TAB label TAB sentence")
    add_list(parser, "--set", "NAME", f"of {', '.join(FILES)}", choices=FILES)
    parser.add_argument("--lang", default="en", metavar="XX", help="of the sentences (default: en)")
    add_classifier(parser, default="mlp")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the sets.

    Raises:
        ValueError: there is none, one asked for is missing, or one is malformed.
    """
    wanted = args.set or FILES
    paths = {name: first_file([args.directory], f"{FILES[name]}.txt") for name in wanted}
    if missing := [FILES[name] for name in args.set or () if paths[name] is None]:
        raise ValueError(f"{args.directory}: no {missing[0]}.txt")
    sets = {name: _read(path) for name, path in paths.items() if path is not None}
    if not sets:
        raise ValueError(f"{args.directory}: no probing task; expected bigram_shift.txt and others")
    classifier = CLASSIFIERS[args.classifier]()
    baselines = {name: _baselines(examples) for name, examples in sets.items()}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (name, examples) in enumerate(sets.items()):
            # Regression for the thousand classes of WC, as published.
            chosen = Logistic() if name == "WC" else classifier
            found = judged(encoder, examples, chosen, language=args.lang)
            others = {**baselines[name], **published("probe", name, size=len(found))}
            right = mean_figure(name, found == tested(examples), stream=stream)
            yield replace(right, published=others)

    return Suite(
        task="probe",
        label="property",
        fields=fields_of(
            [path for path in paths.values() if path is not None],
            sets=",".join(sets),
            lang=args.lang,
            classifier=classifier.name,
        ),
        measure=measure,
        published=(*BASELINES, *publishers("probe")),
        remark=REMARK,
        unit="tested",
    )


def _read(path: Path) -> Examples:
    examples = read_examples(path)
    for part in (TRAIN, DEV, TEST):
        if not examples.part(part).any():
            raise ValueError(f"{path}: no line of the part {part}; expected tr, va and te")
    labels = defaultdict(set)
    for sentence, label in zip(*examples.sides, examples.labels, strict=True):
        labels[sentence].add(label)
    if torn := sum(len(each) > 1 for each in labels.values()):
        logger.warning(
            "%s: %d of %d different sentences have several labels: no encoder can be right",
            path,
            torn,
            len(labels),
        )
    return examples


def _baselines(examples: Examples) -> dict[str, float | None]:
    """Return the accuracy of what knows no encoder."""
    _, labels = examples.classes()
    train, test = examples.part(TRAIN), examples.part(TEST)
    words = [sentence.split() for sentence in examples.sides[0]]
    majority = int(np.bincount(labels[train]).argmax())
    grams = {size: [_grams(each, size) for each in words] for size in (1, 2)}
    bayes = {
        size: float((naive_bayes(each, labels, train)[test] == labels[test]).mean())
        for size, each in grams.items()
    }
    return {
        "majority": float((labels[test] == majority).mean()),
        "length": _by_length(words, labels, examples),
        "unigrams": bayes[1],
        "bigrams": bayes[2],
    }


def _by_length(
    words: Sequence[Sequence[str]], labels: NDArray[np.int64], examples: Examples
) -> float:
    lengths = np.array([[len(each)] for each in words], dtype=np.float32)
    lengths = (lengths - lengths.mean()) / max(1.0, float(lengths.std()))
    everything = Part(lengths, one_hot(labels, labels.max() + 1))
    train, dev, test = (everything.take(examples.part(part)) for part in (TRAIN, DEV, TEST))
    classifier: Classifier = Logistic()
    found = classifier.fit(train, dev)(test.rows).argmax(axis=1)
    return float((found == test.targets.argmax(axis=1)).mean())


def _grams(words: Sequence[str], size: int) -> list[str]:
    """Return the runs of up to ``size`` words."""
    return [
        " ".join(words[start : start + length])
        for length in range(1, size + 1)
        for start in range(len(words) - length + 1)
    ]


def naive_bayes(
    texts: Sequence[Sequence[str]], labels: NDArray[np.int64], train: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the class of each text by multinomial naive Bayes with add-one smoothing: (N,).

    Features that no training text has are left out.
    """
    known: dict[str, int] = {}
    for row in np.flatnonzero(train).tolist():
        for feature in texts[row]:
            known.setdefault(feature, len(known))
    classes = int(labels.max()) + 1
    counts = np.ones((len(known), classes))
    for row in np.flatnonzero(train).tolist():
        for feature, times in Counter(texts[row]).items():
            counts[known[feature], labels[row]] += times
    logs = np.log(counts / counts.sum(axis=0))
    prior = np.log(np.bincount(labels[train], minlength=classes) + 1.0)
    found = np.empty(len(texts), dtype=np.int64)
    for row, text in enumerate(texts):
        there = [known[feature] for feature in text if feature in known]
        found[row] = int((prior + logs[there].sum(axis=0)).argmax())
    return found
