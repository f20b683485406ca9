"""Models in training, which are the bag and networks with random weights."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from encoder.bag.features import Features
from encoder.laser.networks import Layer
from encoder.sentence_networks import KINDS
from encoder.trained import HEADS
from encoder.training.architectures.bag import Bag
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import Network
from encoder.training.options import (
    ArchitectureOptions,
    BagOptions,
    BiLSTMOptions,
    RecurrentOptions,
    TrainingOptions,
    TransformerOptions,
)


def make_model(options: TrainingOptions, features: Features) -> Model:
    """Make a model with random weights, on the GPU if there is one.

    Torch draws them. Pieces and n-grams are of ``features``. Errors of ``check_dim`` are raised.
    """
    check_dim(options.architecture)
    kind, vocabulary = options.architecture, features.pieces + 1
    if isinstance(kind, BagOptions):
        model: Model = Bag(features, kind.dim)
    else:
        if isinstance(kind, BiLSTMOptions):
            tensors = _draw_bilstm(kind, vocabulary)
        elif isinstance(kind, TransformerOptions):
            tensors = _draw_transformer(kind, vocabulary)
        else:
            layers = {"layers": kind.layers} if isinstance(kind, RecurrentOptions) else {}
            tensors = KINDS[kind.name].new(vocabulary, kind.dim, **layers)
        model = Network(tensors, options, features)
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def check_dim(kind: ArchitectureOptions) -> None:
    """Check that directions, heads or levels can share ``dim``.

    Raises:
        ValueError: They cannot.
    """
    times = {"bilstm": 2, "transformer": HEADS}.get(kind.name, 1)
    times = KINDS[kind.name].times if kind.name in KINDS else times
    if rest := kind.dim % times:
        raise ValueError(
            f"--dim {kind.dim}: --architecture {kind.name} requires a multiple of {times}; pass "
            f"{kind.dim - rest + times}"
        )


def _draw_bilstm(kind: BiLSTMOptions, vocabulary: int) -> dict[str, Tensor]:
    lstm = nn.LSTM(kind.word_dim, kind.dim // 2, num_layers=kind.layers, bidirectional=True)
    embeddings = nn.Embedding(vocabulary, kind.word_dim)
    nn.init.normal_(embeddings.weight, std=0.1)
    return nn.ModuleDict({"embed_tokens": embeddings, "lstm": lstm}).state_dict()


def _draw_transformer(kind: TransformerOptions, vocabulary: int) -> dict[str, Tensor]:
    dim = kind.dim
    embeddings = nn.Embedding(vocabulary, dim)
    nn.init.normal_(embeddings.weight, std=dim**-0.5)
    layers = nn.ModuleList(
        Layer(dim, 4 * dim, HEADS, before=True, activation=functional.relu)
        for _ in range(kind.layers)
    )
    parts = {"embed_tokens": embeddings, "layers": layers, "layer_norm": nn.LayerNorm(dim)}
    return nn.ModuleDict(parts).state_dict()
