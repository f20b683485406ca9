"""Encoding by a neural network: sentences of one length together, side by side in threads.

Nothing is computed for padding, and a sentence's vector does not depend on what is encoded beside
it: batches hold sentences of one length only, unless the network leaves out those that have ended.
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
from encoder.tokenizer import Tokens
from miner.threads import in_threads, prefetch

CHUNK_SENTENCES = 4096  # tokenised and sorted by length together; the next ones meanwhile
BATCH_TOKENS = {"cpu": 4096, "cuda": 65_536}
MIN_TOKENS = 32  # of a batch

logger = logging.getLogger(__name__)
_working = threading.Lock()  # one call has all threads


class SentenceTokenizer(ABC):
    """Makes token ids of sentences; every sentence has one token at least."""

    @abstractmethod
    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Tokenise sentences of the language that it was made for."""

    def for_language(self, language: str | None) -> "SentenceTokenizer":
        """Return one of the same vocabulary for another language (ISO 639), if it differs."""
        return self


class Ready:
    """A network on its device, in its precision; a ``ragged`` one takes several lengths at once."""

    def __init__(self, network: nn.Module, *, precision: Precision, device: torch.device) -> None:
        self.dim: int = network.dim  # type: ignore[assignment]
        self.precision, self.ragged = precision, precision == "int8"
        self.device, self._network = device, network.to(device)

    def weights(self) -> dict[str, Tensor]:
        """Return all tensors of the network, by name."""
        return self._network.state_dict()

    def embed(self, ids: Tensor) -> Tensor:
        """Embed ids int64 (B, T) of B sentences, on ``device``, as float (B, D).

        To a ragged network they come longest first, with -1 after the end of shorter ones.
        """
        return self._network(ids)


def ready(network: nn.Module, precision: Precision, sample: Tokens) -> Ready:
    """Put a network on the GPU, where there is one, and into a precision.

    ``auto`` is the first of int8 and bfloat16 for which the processor has instructions and in which
    every sentence of the sample keeps its vector's direction (``MIN_COSINE``), else float32: it
    depends on the machine's kind and the weights alone. A ValueError says that it cannot be had.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if precision != "auto":
        return _in_precision(network, precision, device)
    exact = _in_precision(network, "float32", device)
    expected = embed_tokens(exact, sample)
    for candidate in _fast_here(network, device):
        found = _in_precision(network, candidate, device)
        cosines = functional.cosine_similarity(embed_tokens(found, sample), expected)
        cosine = cosines.min().item()
        logger.debug("precision %s: least cosine to float32 %.6f", candidate, cosine)
        if cosine >= MIN_COSINE:
            return found
    return exact


def _fast_here(network: nn.Module, device: torch.device) -> list[Precision]:
    if device.type == "cuda":
        return ["bfloat16"]
    from miner.instructions import CHOSEN  # loads Numba

    has_int8 = isinstance(network, BiLSTM) and CHOSEN is not None
    fast: list[Precision] = ["int8"] if has_int8 else []
    return [*fast, "bfloat16"] if torch_private.has_bfloat16_products() else fast


def _in_precision(network: nn.Module, precision: Precision, device: torch.device) -> Ready:
    if precision == "int8":
        if not isinstance(network, BiLSTM) or device.type != "cpu":
            raise ValueError(
                "int8 is for LASER1 and LASER2 on CPUs; choose float32, bfloat16 or auto"
            )
        from encoder.laser.int8 import Int8BiLSTM  # loads Numba

        network = Int8BiLSTM(network)
    if precision == "bfloat16":  # of a copy: the conversion is in place
        network = copy.deepcopy(network).bfloat16()
    return Ready(network, precision=precision, device=device)


class NetworkEncoder(BaseEncoder):
    """Encodes sentences with a network; satisfies ``encoder.Encoder``."""

    def __init__(self, *, name: str, tokenizer: SentenceTokenizer, network: Ready) -> None:
        self.name = name
        self.dim, self.precision = network.dim, network.precision
        self._tokenizer, self._network = tokenizer, network

    def for_language(self, language: str | None) -> "NetworkEncoder":
        """Return the same network with the preprocessing of ``language``, which its name has."""
        tokenizer = self._tokenizer.for_language(language) if language else self._tokenizer
        if tokenizer is self._tokenizer:
            return super().for_language(language)
        name = f"{self.name.partition('/')[0]}/{language}"
        return NetworkEncoder(name=name, tokenizer=tokenizer, network=self._network)

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        """Encode equal sentences once, and tokenise one chunk while another one is encoded."""
        places: dict[str, int] = {}
        rows = np.array([places.setdefault(line, len(places)) for line in sentences], np.int64)
        unique = list(places)
        vectors = torch.empty(len(unique), self.dim)
        starts = range(0, len(unique), CHUNK_SENTENCES)
        chunks = (unique[start : start + CHUNK_SENTENCES] for start in starts)
        for start, tokens in zip(starts, prefetch(self._tokenizer.encode, chunks), strict=True):
            vectors[start : start + len(tokens)] = embed_tokens(self._network, tokens)
        if normalize:
            functional.normalize(vectors, out=vectors)
        return vectors.numpy()[rows]


def embed_tokens(network: Ready, tokens: Tokens) -> Tensor:
    """Return the vectors of the sentences, float32 (S, D), on the processor."""
    device = network.device
    vectors = torch.empty(len(tokens), network.dim, device=device)
    lengths = np.diff(tokens.offsets)

    @torch.inference_mode()
    def embed(rows: NDArray[np.int64]) -> None:
        longest = int(lengths[rows[0]])
        # Sentences of few tokens are repeated: libraries sum the products of very few rows in
        # another order, and a vector would depend on its batch in the last digits.
        rows = np.repeat(rows, -(-MIN_TOKENS // (longest * len(rows))))
        padded = np.full((len(rows), longest), -1, dtype=np.int64)
        padded[np.arange(longest) < lengths[rows, None]] = tokens.take(rows).ids
        ids, places = torch.from_numpy(padded), torch.from_numpy(rows)
        if device.type == "cuda":  # pinned, so that the host does not wait for the copies
            ids, places = (one.pin_memory().to(device, non_blocking=True) for one in (ids, places))
        vectors[places] = network.embed(ids).float()

    batches = length_batches(lengths, BATCH_TOKENS[device.type], ragged=network.ragged)
    with _working:
        in_threads(embed, batches, count=1 if device.type == "cuda" else None)
    return vectors.cpu()


def length_batches(
    lengths: NDArray[np.int64], size: int, *, ragged: bool
) -> Iterator[NDArray[np.int64]]:
    """Yield rows of sentences, the longest first, of equal length unless ``ragged``.

    A batch has room for ``size`` tokens, ends of shorter ones included; or for one longer sentence.
    """
    order = np.argsort(-lengths, kind="stable")
    changes = np.nonzero(np.diff(lengths[order]) if not ragged else [])[0] + 1
    for rows in np.split(order, changes):
        while len(rows):
            count = max(1, size // int(lengths[rows[0]]))
            yield rows[:count]
            rows = rows[count:]
