"""Encoders as they are trained: modules that map tokens to vectors, differentiably."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from encoder import Encoder
    from encoder.tokenizer import Tokenizer, Tokens

Save = Callable[[Path, Mapping[str, Any]], None]  # with the folder and metadata of the training


class Model(nn.Module):
    """What is trained: embeds S sentences as float (S, ``dim``), not normalised."""

    dim: int

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Embed the sentences."""
        raise NotImplementedError

    def finished(
        self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float
    ) -> tuple[Encoder, Save]:
        """Return the encoder as it stands and what saves it; ``sample`` is text for whitening."""
        raise NotImplementedError
