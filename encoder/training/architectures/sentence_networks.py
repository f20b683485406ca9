"""The networks that Conneau et al. compare, in training, see ``encoder.sentence_networks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from encoder.sentence_networks import KINDS
from encoder.training.architectures.network import Network
from encoder.training.options import RecurrentOptions, TrainingOptions

if TYPE_CHECKING:
    from encoder.bag.features import Features


def new_sentence_network(options: TrainingOptions, features: Features) -> Network:
    """Make a network with random weights.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    kind = options.architecture
    layers = {"layers": kind.layers} if isinstance(kind, RecurrentOptions) else {}
    tensors = KINDS[kind.name].new(features.pieces + 1, kind.dim, **layers)
    return Network(kind.name, tensors, options, features)
