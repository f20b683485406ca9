"""Architectures in training, by their options: the bag, and new networks with random weights."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from encoder.bag.features import Features
from encoder.laser.transformer import Layer
from encoder.sentence_networks import KINDS
from encoder.trained import HEADS
from encoder.training.architectures.bag import Bag
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import Network, named
from encoder.training.options import (
    ArchitectureOptions,
    BagOptions,
    BiLSTMOptions,
    RecurrentOptions,
    TrainingOptions,
    TransformerOptions,
)


def new_bilstm(options: TrainingOptions, features: Features) -> Network:
    """Make LASER's network, see ``encoder.laser.bilstm``.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    kind = options.architecture
    assert isinstance(kind, BiLSTMOptions)
    if kind.dim % 2:
        raise ValueError(f"dim {kind.dim}: expected an even number, half for each direction")
    lstm = nn.LSTM(kind.word_dim, kind.dim // 2, num_layers=kind.layers, bidirectional=True)
    embeddings = nn.Embedding(features.pieces + 1, kind.word_dim)
    nn.init.normal_(embeddings.weight, std=0.1)
    return Network(kind.name, named({"embed_tokens": embeddings, "lstm": lstm}), options, features)


def new_transformer(options: TrainingOptions, features: Features) -> Network:
    """Make a transformer, see ``encoder.trained``.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    kind = options.architecture
    assert isinstance(kind, TransformerOptions)
    dim = kind.dim
    if dim % HEADS:
        raise ValueError(f"dim {dim}: expected a multiple of {HEADS}, the number of heads")
    embeddings = nn.Embedding(features.pieces + 1, dim)
    nn.init.normal_(embeddings.weight, std=dim**-0.5)
    layers = {
        f"layers.{number}": Layer(dim, 4 * dim, HEADS, before=True, activation=functional.relu)
        for number in range(kind.layers)
    }
    parts = {"embed_tokens": embeddings, **layers, "layer_norm": nn.LayerNorm(dim)}
    return Network(kind.name, named(parts), options, features)


def new_sentence_network(options: TrainingOptions, features: Features) -> Network:
    """Make one of ``encoder.sentence_networks``.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    kind = options.architecture
    layers = {"layers": kind.layers} if isinstance(kind, RecurrentOptions) else {}
    tensors = KINDS[kind.name].new(features.pieces + 1, kind.dim, **layers)
    return Network(kind.name, tensors, options, features)


MODELS: dict[type[ArchitectureOptions], Callable[[TrainingOptions, Features], Model]] = {
    BagOptions: lambda options, features: Bag(features, options.architecture.dim),
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
