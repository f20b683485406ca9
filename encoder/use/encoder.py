"""Encoding with the network: what a piece is worth alone is remembered, sentences go in threads."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from encoder import USE, Precision
from encoder.base import MIN_COSINE, SAMPLE, BaseEncoder
from encoder.coverage import individual
from encoder.rows import Matrix, normalize_rows
from encoder.tokenizer import Tokens
from encoder.use.compiled import CHANNELS, FEATURES
from encoder.use.glossary import KNOWN_BYTES, GlossaryWords, added_languages, bundled, load_glossary
from encoder.use.network import DIM, PREPARED, Network, rounded
from encoder.use.weights import DIGEST, load_tokenizer, load_weights
from miner.instructions import CHOSEN
from miner.threads import blocks, in_threads, prefetch

RowsOf = Callable[[NDArray[np.int64]], Matrix]  # vectors (P, 512) of pieces by their ids (P,)

CHUNK_SENTENCES = 1024  # tokenised together, the next ones meanwhile
BATCH_TOKENS = 64  # that a thread computes at once: their rows stay in a processor's cache
PREPARED_AT_ONCE = 128  # pieces, for the same reason
KEPT_BYTES = 256 << 20  # of prepared pieces: in int8, those of about two languages


def load_use(*, precision: Precision) -> "UseEncoder":
    """Load the encoder; ``auto`` is int8 where the processor has instructions for it.

    Raises as ``load_weights`` does, and a ValueError where there is no such precision.
    """
    if precision not in ("float32", "int8", "auto"):
        raise ValueError(
            f"encoder 'use' cannot run in {precision}; use --precision float32 or int8"
        )
    if precision == "int8" and not CHOSEN:
        raise ValueError(
            "encoder 'use': this CPU has no int8 instructions; use --precision auto or float32"
        )
    exact = UseEncoder(Network(load_weights().tensors, "float32"))
    if precision == "float32" or not CHOSEN:
        return exact
    found = UseEncoder(Network(load_weights().tensors, "int8"))
    cosines = np.einsum("sd,sd->s", exact.encode(SAMPLE), found.encode(SAMPLE))
    return found if precision == "int8" or cosines.min() >= MIN_COSINE else exact


class UseEncoder(BaseEncoder):
    """Encodes sentences with the network; satisfies ``encoder.Encoder``."""

    def __init__(self, network: Network, words: GlossaryWords | None = None) -> None:
        """With the words of a language that the network reads by a glossary, if it does."""
        own = f"+{words.name}" if words else ""
        self.name = f"{USE}@{DIGEST}{own}-{network.precision}"
        self.dim, self.precision = DIM, network.precision
        self.kept_bytes = KEPT_BYTES + (KNOWN_BYTES if words else 0)
        self._network, self._words = network, words
        self._tokenizer = words or load_tokenizer()
        self._rows = (words or load_weights()).rows
        self._readers: dict[str, UseEncoder] = {}  # by the name of the bundled encoder's part
        self._prepared = PreparedPieces(self._rows, network)
        self._lock = threading.Lock()

    def for_language(self, language: str | None) -> "UseEncoder":
        """Return the encoder for a language: itself, unless that is read by a glossary."""
        if individual(language or "") not in added_languages():
            return self
        own = bundled(language or "")
        if own.name not in self._readers:
            words = GlossaryWords(load_glossary(), own)
            self._readers[own.name] = UseEncoder(self._network, words)
        return self._readers[own.name]

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        vectors = np.empty((len(sentences), DIM), dtype=np.float32)
        chunks = blocks(len(sentences), CHUNK_SENTENCES)
        with self._lock:
            if self._words and self._words.full:
                self._words.forget()
                self._prepared = PreparedPieces(self._rows, self._network)
            texts = (sentences[chunk] for chunk in chunks)
            for chunk, tokens in zip(chunks, prefetch(self._tokenizer.encode, texts), strict=True):
                vectors[chunk] = self._chunk(tokens)
        if normalize:
            normalize_rows(vectors)
        return vectors

    def _chunk(self, tokens: Tokens) -> Matrix:
        pieces, slots = self._prepared, self._prepared.find(tokens.ids)
        sums = np.empty((len(tokens), FEATURES), dtype=np.float32)

        def add(batch: slice) -> None:
            offsets = tokens.offsets[batch.start : batch.stop + 1]
            some = Tokens(ids=slots[offsets[0] : offsets[-1]], offsets=offsets - offsets[0])
            self._network.sums(pieces.numbers, pieces.scales, some, sums[batch])

        in_threads(add, _batches(tokens.offsets))
        return self._network.vectors(sums, np.diff(tokens.offsets))


class PreparedPieces:
    """Pieces prepared by the network, wherever they stand; those not met for longest make room.

    They are ``numbers`` (P, PREPARED), each CHANNELS of them times one of ``scales``. For a network
    in int8 these are int16: half the bytes to fetch for each token.
    """

    def __init__(self, rows: RowsOf, network: Network) -> None:
        self._rows, self._network = rows, network
        kind = np.dtype(np.int16 if network.precision == "int8" else np.float32)
        self._make_room(KEPT_BYTES // (PREPARED * kind.itemsize), kind)

    def _make_room(self, count: int, kind: np.dtype) -> None:
        self._slots: dict[int, int] = {}  # those met last stand last
        self.numbers = np.empty((count, PREPARED), dtype=kind)
        self.scales = np.ones((count, PREPARED // CHANNELS), dtype=np.float32)

    def find(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the place of each token among the pieces, int32 (T,), which are prepared."""
        different, places = np.unique(ids, return_inverse=True)
        numbers = different.tolist()
        if len(numbers) > len(self.numbers):
            self._make_room(len(numbers), self.numbers.dtype)
        known = {number: self._slots.pop(number) for number in numbers if number in self._slots}
        self._slots.update(known)
        self._add([number for number in numbers if number not in known])
        slots = np.array([self._slots[number] for number in numbers], dtype=np.int32)
        return slots[places]

    def _add(self, new: Sequence[int]) -> None:
        used, room = len(self._slots), len(self.numbers)
        oldest = list(itertools.islice(self._slots, max(0, used + len(new) - room)))
        slots = [self._slots.pop(number) for number in oldest]
        slots += range(used, used + len(new) - len(oldest))
        self._slots.update(zip(new, slots, strict=True))
        ids, places = np.array(new, dtype=np.int64), np.array(slots, dtype=np.int64)

        def prepare(block: slice) -> None:
            rows, where = self._network.prepare(self._rows(ids[block])), places[block]
            if self.numbers.dtype == rows.dtype:
                self.numbers[where] = rows
            else:
                codes, scales = rounded(rows.reshape(-1, CHANNELS), np.int16)
                self.numbers[where] = codes.reshape(rows.shape)
                self.scales[where] = scales.reshape(len(rows), -1)

        in_threads(prepare, blocks(len(new), PREPARED_AT_ONCE))


def _batches(offsets: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of consecutive sentences of about BATCH_TOKENS tokens, one at least."""
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + BATCH_TOKENS, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
