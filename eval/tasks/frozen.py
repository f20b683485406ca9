"""Shared by tasks with a classifier on frozen vectors: its option, vectors, right or wrong."""

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data.labelled import PARTS, TEST, Examples
from eval.data.languages import encoders_of_languages
from eval.metrics import frozen
from eval.metrics.frozen import Floats

CLASSIFIERS: dict[str, type[frozen.Classifier]] = {"logistic": frozen.Logistic, "mlp": frozen.Mlp}

Classes = NDArray[np.int64]
Learned = TypeVar("Learned")


def add_classifier(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``classifier``."""
    text = (
        "logistic: regression, penalty chosen on development data; mlp: one hidden layer, "
        f"width and dropout chosen there (default: {default})"
    )
    parser.add_argument("--classifier", choices=CLASSIFIERS, default=default, help=text)


def learner(
    encoder: Encoder, first: str, learn: Callable[[Encoder], Learned]
) -> Callable[..., tuple[Learned, list[Encoder]]]:
    """Return what gives, for languages tested, what was learned of the first, and their encoders.

    Of a joined encoder, other languages have other parts: each choice of parts learns once.
    """
    known: dict[str, Learned] = {}

    def of(*languages: str) -> tuple[Learned, list[Encoder]]:
        own, *others = encoders_of_languages(encoder, (first, *languages))
        if own.name not in known:
            known[own.name] = learn(own)
        return known[own.name], others

    return of


def scaled_features(sides: Sequence[Floats], scale: np.float32, *, both: bool) -> Floats:
    """Return what a classifier sees of sentences, or pairs of them, divided by ``scale``."""
    divided = [side / scale for side in sides]
    return divided[0] if len(divided) == 1 else frozen.pair_features(*divided, both=both)


def judged(
    encoder: Encoder, examples: Examples, classifier: frozen.Classifier, *, language: str = "en"
) -> tuple[Classes, Classes]:
    """Return the classes that sentences, or paraphrases, are taken for, and theirs: int64 (U,).

    Vectors are as long as the network makes them: their length says something. Without parts by
    nested cross-validation, U = N; else of the test part, with what is not learned chosen on the
    development part or, where there is none, by cross-validation.
    """
    (own,) = encoders_of_languages(encoder, [language])
    sides = [own.encode(side, normalize=False) for side in examples.sides]
    shown = ~examples.part(TEST) if examples.parts else slice(None)
    scale = frozen.root_mean_square(np.concatenate([side[shown] for side in sides]))
    names, labels = examples.classes()
    features = scaled_features(sides, scale, both=False)
    everything = frozen.Part(features, frozen.one_hot(labels, len(names)))
    if not examples.parts:
        return frozen.cross_predict(everything, classifier).argmax(axis=1), labels
    train, dev, test = (everything.take(examples.part(name)) for name in PARTS)
    predict = classifier.fit(train, dev if len(dev.rows) else None)
    return predict(test.rows).argmax(axis=1), labels[examples.part(TEST)]
