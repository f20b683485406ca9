"""Encoders with a neural network, which batch sentences by their lengths.

No time is spent on padding, and a sentence's vector does not depend on its batch.
"""

import copy
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from encoder import Precision, torch_private
from encoder.base import MIN_COSINE, BaseEncoder
from encoder.laser.networks import BiLSTM
from encoder.rows import Matrix
from encoder.tokenizer import Tokens
from miner.threads import prefetch, run_in_threads

CHUNK_SENTENCES = 4096  # tokenised and sorted together, while the chunk before is encoded
BATCH_TOKENS = {"cpu": 4096, "cuda": 65_536}
MIN_TOKENS = 32  # least tokens of a batch

logger = logging.getLogger(__name__)
_working = threading.Lock()  # one call at a time uses all threads


class SentenceTokenizer(ABC):
    """Base class of tokenisers that return at least one token per sentence."""

    @abstractmethod
    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the token ids of each sentence, at least one."""

    def for_language(self, language: str | None) -> "SentenceTokenizer":
        """Return the tokeniser of a language (ISO 639, or None), here itself."""
        return self


class PreparedNetwork:
    """A ``network``, already in ``precision``, which is moved to ``device``.

    If ``ragged`` (int8), sentences of a batch may have several lengths, else they have one. In
    encoders' names, ``name`` is its precision, with the largest code of int8.
    """

    def __init__(self, network: nn.Module, *, precision: Precision, device: torch.device) -> None:
        self.dim: int = network.dim  # type: ignore[assignment]
        self.precision, self.ragged = precision, precision == "int8"
        self.name: str = network.name if precision == "int8" else precision  # type: ignore[assignment]
        self.device, self._network = device, network.to(device)

    def weights(self) -> dict[str, Tensor]:
        """Return the network's tensors by name, not copied, or none in int8."""
        return self._network.state_dict()

    def embed(self, ids: Tensor) -> Tensor:
        """Embed B sentences of token ids (B, T) as vectors (B, D).

        ``ids`` are int64, on ``device``. Vectors are in the network's precision, or float32 if
        int8. If ``ragged``, lengths descend, with -1 after sentences, or else all have T ids.
        """
        return self._network(ids)


def prepare(network: nn.Module, precision: Precision, sample: Tokens) -> PreparedNetwork:
    """Move a network to the GPU, if any, and convert it to a precision.

    ``network``, in float32 and evaluation mode, is copied for bfloat16 or int8. ``auto`` tries
    bfloat16 on GPUs, but on CPUs with instructions for them int8 of BiLSTMs, then bfloat16. It uses
    the first in which each vector of ``sample``, not empty, has a cosine of at least 0.9995 to that
    in float32, else float32. ValueError says that int8 needs a BiLSTM on a machine without a GPU.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if precision != "auto":
        return _in_precision(network, precision, device)
    exact = _in_precision(network, "float32", device)
    expected = embed_tokens(exact, sample)
    for candidate in _fast_precisions(network, device):
        converted = _in_precision(network, candidate, device)
        cosines = functional.cosine_similarity(embed_tokens(converted, sample), expected)
        cosine = cosines.min().item()
        logger.debug("precision %s: lowest cosine to float32 %.6f", candidate, cosine)
        if cosine >= MIN_COSINE:
            return converted
    return exact


def _fast_precisions(network: nn.Module, device: torch.device) -> list[Precision]:
    if device.type == "cuda":
        return ["bfloat16"]
    from miner.instructions import CHOSEN  # loads Numba

    has_int8 = isinstance(network, BiLSTM) and CHOSEN is not None
    fast: list[Precision] = ["int8"] if has_int8 else []
    return [*fast, "bfloat16"] if torch_private.has_bfloat16_products() else fast


def _in_precision(
    network: nn.Module, precision: Precision, device: torch.device
) -> PreparedNetwork:
    if precision == "int8":
        if not isinstance(network, BiLSTM) or device.type != "cpu":
            raise ValueError(
                "--precision int8 requires LASER1, LASER2 or a bilstm, on a CPU; use float32, "
                "bfloat16 or auto"
            )
        from encoder.laser.int8 import Int8BiLSTM  # loads Numba

        network = Int8BiLSTM(network)
    if precision == "bfloat16":  # of a copy, because the conversion is in place
        network = copy.deepcopy(network).bfloat16()
    return PreparedNetwork(network, precision=precision, device=device)


class NetworkEncoder(BaseEncoder):
    """An encoder that embeds ``tokenizer``'s ids by a ``PreparedNetwork``."""

    def __init__(
        self, *, name: str, tokenizer: SentenceTokenizer, network: PreparedNetwork
    ) -> None:
        self.name = name
        self.dim, self.precision = network.dim, network.precision
        self._tokenizer, self._network = tokenizer, network

    def for_language(self, language: str | None) -> "NetworkEncoder":
        """Return the encoder with the tokeniser of a language.

        ``language``, an ISO 639 code, is added to the name. With one tokeniser for all languages,
        or None, the result is as in ``BaseEncoder.for_language``. Errors are of the tokeniser.
        """
        tokenizer = self._tokenizer.for_language(language) if language else self._tokenizer
        if tokenizer is self._tokenizer:
            return super().for_language(language)
        name = f"{self.name.partition('/')[0]}/{language}"
        return NetworkEncoder(name=name, tokenizer=tokenizer, network=self._network)

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        numbers: dict[str, int] = {}
        rows = np.array([numbers.setdefault(line, len(numbers)) for line in sentences], np.int64)
        unique = list(numbers)
        vectors = torch.empty(len(unique), self.dim)
        starts = range(0, len(unique), CHUNK_SENTENCES)
        chunks = (unique[start : start + CHUNK_SENTENCES] for start in starts)
        for start, tokens in zip(starts, prefetch(self._tokenizer.encode, chunks), strict=True):
            vectors[start : start + len(tokens)] = embed_tokens(self._network, tokens)
        if normalize:
            functional.normalize(vectors, out=vectors)
        return vectors.numpy()[rows]


def embed_tokens(network: PreparedNetwork, tokens: Tokens) -> Tensor:
    """Embed S sentences, none empty, as float32 (S, D) in the CPU's memory."""
    device = network.device
    vectors = torch.empty(len(tokens), network.dim, device=device)
    lengths = np.diff(tokens.offsets)

    @torch.inference_mode()
    def embed(rows: NDArray[np.int64]) -> None:
        longest = int(lengths[rows[0]])
        # Small batches repeat their sentences, because libraries sum the products of very few rows
        # in another order, and a vector's last digits would depend on its batch.
        rows = np.repeat(rows, -(-MIN_TOKENS // (longest * len(rows))))
        padded = np.full((len(rows), longest), -1, dtype=np.int64)
        padded[np.arange(longest) < lengths[rows, None]] = tokens.take(rows).ids
        ids, places = torch.from_numpy(padded), torch.from_numpy(rows)
        if device.type == "cuda":  # pinned, so that the host does not wait for the copies
            ids, places = (one.pin_memory().to(device, non_blocking=True) for one in (ids, places))
        vectors[places] = network.embed(ids).float()

    batches = length_batches(lengths, BATCH_TOKENS[device.type], ragged=network.ragged)
    with _working:
        run_in_threads(embed, batches, count=1 if device.type == "cuda" else None)
    return vectors.cpu()


def length_batches(
    lengths: NDArray[np.int64], size: int, *, ragged: bool
) -> Iterator[NDArray[np.int64]]:
    """Yield batches of sentences of similar lengths, longest first.

    A batch is positions of sentences, int64, by descending ``lengths``, int64 (S,), above 0. It has
    at most ``size`` tokens with padding, or one sentence. Lengths are equal unless ``ragged``.
    """
    order = np.argsort(-lengths, kind="stable")
    changes = np.flatnonzero([] if ragged else np.diff(lengths[order])) + 1
    for rows in np.split(order, changes):
        while len(rows):
            count = max(1, size // int(lengths[rows[0]]))
            yield rows[:count]
            rows = rows[count:]
