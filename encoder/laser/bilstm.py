"""LASER1's and LASER2's network: a BiLSTM whose outputs are pooled by their maximum.

Artetxe & Schwenk 2019, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual
Transfer and Beyond", section 3. Axes: ``B`` sentences of one length, ``T`` tokens, ``D`` outputs.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Tensors = Mapping[str, Tensor]  # of a network, by name


class BiLSTM(nn.Module):
    """Embeds token ids (B, T) as the maximum over T of the last layer's outputs: (B, D)."""

    def __init__(self, tensors: Tensors, *, dropout: float = 0.0) -> None:
        """Take the weights as LASER names them; its sizes are theirs.

        ``dropout`` is the share of what enters each layer that is left out in training. A
        ValueError names a tensor that is missing, left over, or of another shape than the others
        ask for.
        """
        super().__init__()
        vocabulary, width = _shape(tensors, "embed_tokens.weight", 2)
        hidden = _shape(tensors, "lstm.weight_hh_l0", 2)[1]
        layers = sum(name.startswith("lstm.weight_hh_l") for name in tensors)
        both = "lstm.weight_hh_l0_reverse" in tensors
        self.directions = ("", "_reverse") if both else ("",)
        layers //= len(self.directions)
        with torch.device("meta"):
            self.embed_tokens = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, hidden, layers, bidirectional=both, batch_first=True)
        adopt(self, tensors)
        self.vocabulary, self.dim = vocabulary, hidden * len(self.directions)
        self.lstm.dropout = self._dropout = dropout

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed sentences as (B, D), of one length; or of ``lengths`` (B,), and padded to T."""
        x = functional.dropout(self.embed_tokens(ids), self._dropout, self.training)
        if lengths is None:
            outputs, _ = self.lstm(x)
        else:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, _ = pad_packed_sequence(self.lstm(packed)[0], True, padding_value=-torch.inf)
        return outputs.amax(dim=1)


def adopt(module: nn.Module, tensors: Tensors) -> None:
    """Make the tensors the parameters of a module built on the meta device, as float32.

    A ValueError names a tensor that is missing, left over or of another shape.
    """
    expected = module.state_dict()
    for name in expected.keys() - tensors.keys():
        raise ValueError(f"lacks the tensor {name}")
    for name in sorted(tensors.keys() - expected.keys()):
        raise ValueError(f"has a tensor {name} that this network does not")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise ValueError(
                f"has {name} of shape {tuple(tensor.shape)}; "
                f"the other tensors ask for {tuple(expected[name].shape)}"
            )
    floats = {name: tensor.float().contiguous() for name, tensor in tensors.items()}
    module.load_state_dict(floats, assign=True)
    module.requires_grad_(False).eval()


def _shape(tensors: Tensors, name: str, axes: int) -> list[int]:
    if name not in tensors:
        raise ValueError(f"lacks the tensor {name}")
    shape = list(tensors[name].shape)
    if len(shape) != axes or not all(shape):
        raise ValueError(f"has {name} of shape {tuple(shape)}; expected {axes} axes")
    return shape
