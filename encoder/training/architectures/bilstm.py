"""LASER's network in training, see ``encoder.laser.bilstm``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from encoder.training.architectures.network import Network, named
from encoder.training.options import BiLSTMOptions, TrainingOptions

if TYPE_CHECKING:
    from encoder.bag.features import Features

WIDTH = 320  # of LASER's token embeddings (Artetxe & Schwenk 2019, section 3.1)


def new_bilstm(options: TrainingOptions, features: Features) -> Network:
    """Make a network with random weights.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    kind = options.architecture
    assert isinstance(kind, BiLSTMOptions)
    if kind.dim % 2:
        raise ValueError(f"dim {kind.dim}: expected an even number, half for each direction")
    lstm = nn.LSTM(WIDTH, kind.dim // 2, num_layers=kind.layers, bidirectional=True)
    embeddings = nn.Embedding(features.pieces + 1, WIDTH)
    nn.init.normal_(embeddings.weight, std=0.1)
    return Network(kind.name, named({"embed_tokens": embeddings, "lstm": lstm}), options, features)
