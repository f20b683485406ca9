"""The transformer in training, see ``encoder.trained``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from torch.nn import functional

from encoder.laser.transformer import Layer
from encoder.trained import HEADS
from encoder.training.architectures.network import Network, named
from encoder.training.options import TrainingOptions, TransformerOptions

if TYPE_CHECKING:
    from encoder.bag.features import Features


def new_transformer(options: TrainingOptions, features: Features) -> Network:
    """Make a network with random weights.

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
