"""Encoders as they are trained: modules that map tokens to vectors, differentiably."""

from collections.abc import Callable, Sequence

import numpy as np
from torch import nn

from encoder import Encoder
from encoder.tokenizer import Tokenizer, Tokens
from encoder.training.data import drop_tokens

Save = Callable[..., None]  # with the folder, and ``facts`` of the training
Trained = tuple[Encoder, Save]  # an encoder as it stands, and what saves it


class Model(nn.Module):
    """What is trained: embeds ``Tokens`` of S sentences as float (S, D), not normalised."""

    def begin_with(self, encoder: Encoder) -> None:
        """Go on from an encoder's weights; a ValueError says how its architecture differs."""
        raise NotImplementedError

    def drop(self, tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
        """Leave out what a step does not see, with probability ``rate``: tokens."""
        return drop_tokens(tokens, rate, generator)

    def finished(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the encoder as it stands and what saves it; ``sample`` is text for whitening."""
        raise NotImplementedError
