"""Architectures in training, by their options: the bag, and new networks with random weights."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
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


def new_bilstm(kind: BiLSTMOptions, vocabulary: int) -> dict[str, Tensor]:
    """Draw weights for LASER's network, see ``encoder.laser.bilstm``.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    if kind.dim % 2:
        raise ValueError(f"dim {kind.dim}: expected an even number, half for each direction")
    lstm = nn.LSTM(kind.word_dim, kind.dim // 2, num_layers=kind.layers, bidirectional=True)
    embeddings = nn.Embedding(vocabulary, kind.word_dim)
    nn.init.normal_(embeddings.weight, std=0.1)
    return named({"embed_tokens": embeddings, "lstm": lstm})


def new_transformer(kind: TransformerOptions, vocabulary: int) -> dict[str, Tensor]:
    """Draw weights for a transformer, see ``encoder.trained``.

    Raises:
        ValueError: it cannot have as many dimensions.
    """
    dim = kind.dim
    if dim % HEADS:
        raise ValueError(f"dim {dim}: expected a multiple of {HEADS}, the number of heads")
    embeddings = nn.Embedding(vocabulary, dim)
    nn.init.normal_(embeddings.weight, std=dim**-0.5)
    layers = {
        f"layers.{number}": Layer(dim, 4 * dim, HEADS, before=True, activation=functional.relu)
        for number in range(kind.layers)
    }
    return named({"embed_tokens": embeddings, **layers, "layer_norm": nn.LayerNorm(dim)})


WEIGHTS: dict[type[ArchitectureOptions], Callable[..., dict[str, Tensor]]] = {
    BiLSTMOptions: new_bilstm,
    TransformerOptions: new_transformer,
}


def make_model(options: TrainingOptions, features: Features) -> Model:
    """Make a new model on the GPU, if there is one; its weights are random.

    Raises:
        ValueError: the architecture cannot have as many dimensions.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, vocabulary = options.architecture, features.pieces + 1
    if isinstance(kind, BagOptions):
        return Bag(features, kind.dim).to(device)
    if draw := WEIGHTS.get(type(kind)):
        tensors = draw(kind, vocabulary)
    else:
        layers = {"layers": kind.layers} if isinstance(kind, RecurrentOptions) else {}
        tensors = KINDS[kind.name].new(vocabulary, kind.dim, **layers)
    return Network(tensors, options, features).to(device)
