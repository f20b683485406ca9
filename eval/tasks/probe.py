"""Measure classifiers that read a sentence's form from its vector.

Properties are sentence length, word content, tree depth, word order, tense and number, as in
Conneau et al. 2018. Accuracies are compared with classifiers that use no encoder. WC always
uses logistic regression.
"""

import argparse
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np

from encoder import Encoder
from eval.data.labelled import PARTS, TEST, TRAIN, Examples, first_file, read_examples
from eval.metrics.frozen import Logistic, Part, accuracy, one_hot
from eval.tasks.arguments import add_directory, add_list
from eval.tasks.frozen import CLASSIFIERS, add_classifier, classify
from eval.tasks.suite import Figure, Suite, fields_of, mean_figure, published
from miner.arrays import IntArray, Mask
from miner.extras import require
from miner.language_codes import parse_option

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
    add_directory(parser, holds="files such as bigram_shift.txt, tr|va|te TAB LABEL TAB sentence")
    sets = ", ".join(f"{name} ({file})" for name, file in FILES.items())
    text = f"properties to read, by a file each: {sets} (default: all in DIR)"
    add_list(parser, "--set", "NAME", text, choices=FILES)
    text = "language of the sentences (default: en)"
    parser.add_argument("--lang", type=parse_option, default="en", metavar="XX", help=text)
    add_classifier(parser, default="mlp")


def prepare(args: argparse.Namespace) -> Suite:
    """Load the probing sets that options ask for, by default all, as a suite.

    Raises:
        ValueError: A requested set is missing, a file is malformed, or the folder has no set.
        ModuleNotFoundError: scikit-learn is not installed.
    """
    require("sklearn")
    names = args.set or FILES
    paths = {name: first_file([args.directory], f"{FILES[name]}.txt") for name in names}
    if missing := [name for name in args.set or () if paths[name] is None]:
        raise ValueError(
            f"{args.directory}: lacks {FILES[missing[0]]}.txt; omit {missing[0]} from --set, or "
            "pass the folder with that file"
        )
    sets = {name: _read(path) for name, path in paths.items() if path is not None}
    if not sets:
        raise ValueError(f"{args.directory}: no probing task; expected files as bigram_shift.txt")
    classifier = CLASSIFIERS[args.classifier]()
    baselines = {name: _baselines(examples) for name, examples in sets.items()}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (name, examples) in enumerate(sets.items()):
            # WC has a thousand classes, for which the paper uses regression.
            set_classifier = Logistic() if name == "WC" else classifier
            predicted, gold = classify(encoder, examples, set_classifier, language=args.lang)
            beside = {**baselines[name], **published("probe", name, size=len(predicted))}
            yield replace(mean_figure(name, predicted == gold, stream=stream), beside=beside)

    files = [path for path in paths.values() if path is not None]
    fields = fields_of(files, sets=",".join(sets), lang=args.lang, classifier=classifier.name)
    return Suite(
        "probe", fields, measure, label="property", after=BASELINES, remark=REMARK, unit="tested"
    )


def _read(path: Path) -> Examples:
    examples = read_examples(path)
    for part in PARTS:
        if not examples.part(part).any():
            raise ValueError(f"{path}: no line begins with {part}; expected parts tr, va and te")
        if not any(map(str.strip, compress(examples.sides[0], examples.part(part)))):
            raise ValueError(f"{path}: all sentences of {part} are blank; write them in column 3")
    labels = defaultdict(set)
    for sentence, label in zip(*examples.sides, examples.labels, strict=True):
        labels[sentence].add(label)
    if ambiguous := sum(len(different) > 1 for different in labels.values()):
        logger.warning(
            "%s: %d of %d different sentences have several labels, so no encoder can reach 100%%; "
            "keep one label",
            *(path, ambiguous, len(labels)),
        )
    return examples


def _baselines(examples: Examples) -> dict[str, float | None]:
    _, labels = examples.classes()
    train, test = examples.part(TRAIN), examples.part(TEST)
    sentences = examples.sides[0]
    predictions = {
        "majority": np.full(len(labels), np.bincount(labels[train]).argmax()),
        "unigrams": naive_bayes(sentences, labels, train, 1),
        "bigrams": naive_bayes(sentences, labels, train, 2),
    }
    accuracies = {key: float((each == labels)[test].mean()) for key, each in predictions.items()}
    lengths = np.array([[len(text.split())] for text in sentences], dtype=np.float32)
    lengths = (lengths - lengths.mean()) / max(1.0, float(lengths.std()))
    data = Part(lengths, one_hot(labels, labels.max() + 1))
    train_part, dev, test_part = (data.take(examples.part(part)) for part in PARTS)
    by_length = accuracy(Logistic().fit(train_part, dev)(test_part.rows), test_part.targets)
    return {**accuracies, "length": by_length}


def naive_bayes(sentences: Sequence[str], labels: IntArray, train: Mask, size: int) -> IntArray:
    """Predict the classes of N sentences by naive Bayes, int64 (N,).

    It learns the ``labels``, int64 (N,), of the sentences in the mask ``train`` (N,), or raises
    ValueError if they lack words. Features are counts of sequences of up to ``size`` words, split
    at white space, with add-one smoothing. Without scikit-learn, it raises ModuleNotFoundError.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    train_rows = np.flatnonzero(train)
    vectorizer = CountVectorizer(
        ngram_range=(1, size), tokenizer=str.split, token_pattern=None, lowercase=False
    ).fit([sentences[row] for row in train_rows.tolist()])
    _, counts = np.unique(labels[train_rows], return_counts=True)
    features, prior = vectorizer.transform(sentences), (counts + 1) / (counts + 1).sum()
    bayes = MultinomialNB(class_prior=prior).fit(features[train_rows], labels[train_rows])
    classes: IntArray = bayes.predict(features)
    return classes
