"""Functions shared by tasks with a classifier on frozen vectors."""

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from encoder import Encoder
from eval.data.labelled import PARTS, TEST, Examples
from eval.data.languages import encoders_of_languages
from eval.metrics import frozen
from miner.arrays import IntArray, Matrix

CLASSIFIERS: dict[str, type[frozen.Classifier]] = {"logistic": frozen.Logistic, "mlp": frozen.Mlp}

Learned = TypeVar("Learned")


def add_classifier(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``--classifier``, ``logistic`` or ``mlp``, by default ``default``."""
    text = (
        "logistic: logistic regression, whose penalty is chosen on held-out data; mlp: a hidden "
        f"layer, whose width and dropout are chosen there (default: {default})"
    )
    parser.add_argument("--classifier", choices=CLASSIFIERS, default=default, help=text)


def make_learner(
    encoder: Encoder, first: str, learn: Callable[[Encoder], Learned]
) -> Callable[..., tuple[Learned, list[Encoder]]]:
    """Build a function that trains on the language ``first`` when needed.

    It takes languages to test, and returns the result of ``learn`` for the encoder of ``first``,
    and the encoders of these languages, or raises errors of ``encoders_of_languages``. ``learn``
    runs once per choice of a joined encoder's parts.
    """
    results: dict[str, Learned] = {}

    def learn_for(*languages: str) -> tuple[Learned, list[Encoder]]:
        model, *others = encoders_of_languages(encoder, (first, *languages))
        if model.name not in results:
            results[model.name] = learn(model)
        return results[model.name], others

    return learn_for


def scaled_features(sides: Sequence[Matrix], scale: np.float32, *, both: bool) -> Matrix:
    """Return a classifier's input from sentence vectors divided by ``scale``.

    ``sides`` are one array (N, D) for sentences, whose input is (N, D), or two for pairs, whose
    input is ``pair_features`` with the argument ``both``.
    """
    scaled = [side / scale for side in sides]
    return scaled[0] if len(scaled) == 1 else frozen.pair_features(*scaled, both=both)


def classify(
    encoder: Encoder, examples: Examples, classifier: frozen.Classifier, *, language: str = "en"
) -> tuple[IntArray, IntArray]:
    """Classify sentences by their vectors, or pairs by |u - v| and u * v.

    The result is the predicted and the true classes of U examples, as indices of sorted labels,
    int64 (U,) each. Examples without parts are all classified, by nested cross-validation. If there
    are parts, the test part is classified, and hyperparameters are chosen on the development part
    or, without one, in the training part. Vectors are not normalised. ``language`` is the code of
    all sentences. Errors of ``encoders_of_languages`` and ``classifier`` are raised.
    """
    (model,) = encoders_of_languages(encoder, [language])
    sides = [model.encode(side, normalize=False) for side in examples.sides]
    is_training = ~examples.part(TEST) if examples.parts else slice(None)
    scale = frozen.root_mean_square(np.concatenate([side[is_training] for side in sides]))
    names, labels = examples.classes()
    features = scaled_features(sides, scale, both=False)
    data = frozen.Part(features, frozen.one_hot(labels, len(names)))
    if not examples.parts:
        return frozen.cross_predict(data, classifier).argmax(axis=1), labels
    train, dev, test = (data.take(examples.part(name)) for name in PARTS)
    predict = classifier.fit(train, dev if len(dev.rows) else None)
    return predict(test.rows).argmax(axis=1), labels[examples.part(TEST)]
