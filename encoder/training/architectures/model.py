"""The base class of encoders in training."""

from collections.abc import Callable, Sequence

import numpy as np
from torch import nn

from encoder import Encoder
from encoder.tokenizer import Tokenizer, Tokens

Trained = tuple[Encoder, Callable[..., None]]  # the encoder at a step, a function to save it


class Model(nn.Module):
    """Abstract base of modules from ``Tokens`` to unnormalised vectors (S, D)."""

    def start_from(self, encoder: Encoder) -> None:
        """Copy weights of an encoder with the same pieces (ValueError if unfit)."""
        raise NotImplementedError

    def drop(self, tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
        """Return sentences without some tokens, drawn with probability ``rate``."""
        return tokens.keep(generator.random(len(tokens.ids)) >= rate)

    def export(self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float) -> Trained:
        """Return the encoder with the present weights, and a function to save it.

        The function takes a folder and the keyword ``facts`` (JSON values). A bag is whitened
        (``partly_whiten``) on ``sample``, with power ``whitening``. Other models ignore both. The
        model, put into evaluation mode, may share its weights with both results.
        """
        raise NotImplementedError
