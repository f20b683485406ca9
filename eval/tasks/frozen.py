"""Shared by tasks with a classifier on frozen vectors: its option, vectors, right or wrong."""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from eval.data.labelled import DEV, TEST, TRAIN, Examples
from eval.encoding import own_encoders
from eval.metrics import frozen
from eval.metrics.frozen import Floats

CLASSIFIERS: dict[str, type[frozen.Classifier]] = {"logistic": frozen.Logistic, "mlp": frozen.Mlp}


def add_classifier(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``classifier``."""
    text = (
        "logistic: regression, penalty chosen on development data; mlp: one hidden layer, "
        f"width and dropout chosen there (default: {default})"
    )
    parser.add_argument("--classifier", choices=CLASSIFIERS, default=default, help=text)


def scaled_features(sides: Sequence[Floats], scale: np.float32, *, both: bool) -> Floats:
    """Return what a classifier sees of sentences, or pairs of them, divided by ``scale``."""
    divided = [side / scale for side in sides]
    return divided[0] if len(divided) == 1 else frozen.pair_features(*divided, both=both)


def judged(
    encoder: Encoder, examples: Examples, classifier: frozen.Classifier, *, language: str = "en"
) -> NDArray[np.int64]:
    """Return the classes that single sentences, or paraphrases, are taken for: int64 (U,).

    Vectors are as long as the network makes them: their length is information, too.

    Without parts by nested cross-validation, U = N; else of the test part, with what is not learned
    chosen on the development part or, where there is none, by cross-validation.
    """
    (own,) = own_encoders(encoder, [language])
    sides = [own.encode(side, normalize=False) for side in examples.sides]
    shown = ~examples.part(TEST) if examples.parts else slice(None)
    scale = frozen.root_mean_square(np.concatenate([side[shown] for side in sides]))
    names, labels = examples.classes()
    targets = frozen.one_hot(labels, len(names))
    everything = frozen.Part(scaled_features(sides, scale, both=False), targets)
    if not examples.parts:
        return _likeliest(frozen.nested(everything, classifier))
    train, dev, test = (everything.take(examples.part(name)) for name in (TRAIN, DEV, TEST))
    predict = classifier.fit(train, dev if len(dev.rows) else None)
    return _likeliest(predict(test.rows))


def tested(examples: Examples) -> NDArray[np.int64]:
    """Return the classes of the units that ``judged`` judges."""
    _, labels = examples.classes()
    return labels[examples.part(TEST)] if examples.parts else labels


def _likeliest(found: Floats) -> NDArray[np.int64]:
    classes: NDArray[np.int64] = found.argmax(axis=1)
    return classes
