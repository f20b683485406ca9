"""Architectures in training, by their options; one file each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from encoder.training.architectures.bag import new_bag
from encoder.training.architectures.bilstm import new_bilstm
from encoder.training.architectures.sentence_networks import new_sentence_network
from encoder.training.architectures.transformer import new_transformer
from encoder.training.options import (
    ArchitectureOptions,
    BagOptions,
    BiLSTMOptions,
    TrainingOptions,
    TransformerOptions,
)

if TYPE_CHECKING:
    from encoder.bag.features import Features
    from encoder.training.architectures.model import Model

MODELS: dict[type[ArchitectureOptions], Callable[[TrainingOptions, Features], Model]] = {
    BagOptions: new_bag,
    BiLSTMOptions: new_bilstm,
    TransformerOptions: new_transformer,
}


def make_model(options: TrainingOptions, features: Features) -> Model:
    """Make a new model on the GPU, if there is one.

    Raises:
        ValueError: the architecture cannot have as many dimensions.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    make = MODELS.get(type(options.architecture), new_sentence_network)
    return make(options, features).to(device)
