"""Encoding with the network: what a piece is worth alone is remembered, sentences go in threads."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from encoder import USE, Encoder, Precision
from encoder.base import MIN_COSINE, SAMPLE, BaseEncoder
from encoder.coverage import individual
from encoder.rows import Matrix, normalize_rows
from encoder.tokenizer import Tokens
from encoder.use.compiled import FEATURES
from encoder.use.glossary import KNOWN_BYTES, GlossaryWords, added_languages, bundled, load_glossary
from encoder.use.network import DIM, KEPT_BYTES, Network, Pieces
from encoder.use.weights import PieceTokenizer, digest, load_tokenizer, load_weights
from miner.knn.core.vnni import AVAILABLE
from miner.threads import ahead, blocks, in_threads

RowsOf = Callable[[NDArray[np.int64]], Matrix]  # vectors (P, 512) of pieces by their ids (P,)
Cutter = PieceTokenizer | GlossaryWords

CHUNK_SENTENCES = 1024  # tokenised together, the next ones meanwhile
BATCH_TOKENS = 64  # that a thread computes at once: their rows stay in a processor's cache
PREPARED_AT_ONCE = 128  # pieces, for the same reason


def load_use(*, precision: Precision) -> "UseEncoder":
    """Load the encoder; ``auto`` is int8 where the processor has instructions for it.

    Raises:
        ModuleNotFoundError: its package is not installed.
        ValueError: its files are not those of the release, or it has no such precision here.
    """
    if precision not in ("float32", "int8", "auto"):
        raise ValueError(f"encoder 'use' runs in float32 or int8, not in {precision}")
    if precision == "int8" and not AVAILABLE:
        raise ValueError("encoder 'use': this processor has no int8 instructions; leave it out")
    exact = _in_precision("float32")
    if precision == "float32" or not AVAILABLE:
        return exact
    found = _in_precision("int8")
    cosines = np.einsum("sd,sd->s", exact.encode(SAMPLE), found.encode(SAMPLE))
    return found if precision == "int8" or cosines.min() >= MIN_COSINE else exact


def _in_precision(precision: Precision) -> "UseEncoder":
    weights, name = load_weights(), f"{USE}@{digest()}-{precision}"
    network = Network(weights.tensors, precision)
    return UseEncoder(name=name, tokenizer=load_tokenizer(), rows=weights.rows, network=network)


class UseEncoder(BaseEncoder):
    """Encodes sentences with the network; satisfies ``encoder.Encoder``."""

    kept_bytes = KEPT_BYTES  # of pieces it has met

    def __init__(self, *, name: str, tokenizer: Cutter, rows: RowsOf, network: Network) -> None:
        """With the vectors, float32 (P, 512), that ``rows`` returns for ids of pieces (P,)."""
        self.name, self.dim, self.precision = name, DIM, network.precision
        self._tokenizer = tokenizer
        self._network = network
        self._rows = rows
        self._readers: dict[str, UseEncoder] = {}  # by the name of the bundled encoder's part
        self._prepared = PreparedPieces(rows, network)
        self._lock = threading.Lock()

    def for_language(self, language: str | None) -> "UseEncoder":
        """Return the encoder for a language: itself, unless that is read by a glossary."""
        if individual(language or "") not in added_languages():
            return self
        own = bundled(language or "")
        if own.name not in self._readers:
            self._readers[own.name] = ReadingEncoder(own, self._network)
        return self._readers[own.name]

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        vectors = np.empty((len(sentences), DIM), dtype=np.float32)
        starts = range(0, len(sentences), CHUNK_SENTENCES)
        chunks = (sentences[start : start + CHUNK_SENTENCES] for start in starts)
        with self._lock:
            self._begin()
            for start, tokens in zip(starts, ahead(self._tokenizer.encode, chunks), strict=True):
                vectors[start : start + len(tokens)] = self._chunk(tokens)
        if normalize:
            normalize_rows(vectors)
        return vectors

    def _begin(self) -> None:
        """Get ready for a call."""

    def _chunk(self, tokens: Tokens) -> Matrix:
        pieces, slots = self._prepared.find(tokens.ids)
        sums = np.empty((len(tokens), FEATURES), dtype=np.float32)

        def add(batch: slice) -> None:
            offsets = tokens.offsets[batch.start : batch.stop + 1]
            ids = slots[offsets[0] : offsets[-1]]
            self._network.sums(pieces, Tokens(ids=ids, offsets=offsets - offsets[0]), sums[batch])

        in_threads(add, _batches(tokens.offsets))
        return self._network.vectors(sums, np.diff(tokens.offsets))


class ReadingEncoder(UseEncoder):
    """Encodes sentences of languages that the network reads by a glossary."""

    kept_bytes = KEPT_BYTES + KNOWN_BYTES

    def __init__(self, language: Encoder, network: Network) -> None:
        """With the bundled encoder for these languages."""
        glossary = load_glossary()
        words = GlossaryWords(glossary, language)
        parts = "+".join((digest(), glossary.digest, language.name.rpartition("@")[2]))
        name = f"{USE}@{parts}-{network.precision}"
        super().__init__(name=name, tokenizer=words, rows=words.rows, network=network)
        self._words = words

    def _begin(self) -> None:
        """Forget the words where they are too many."""
        if self._words.full:
            self._words.forget()
            self._prepared = PreparedPieces(self._rows, self._network)


class PreparedPieces:
    """Pieces prepared by the network, wherever they stand; those not met for longest make room."""

    def __init__(self, rows: RowsOf, network: Network) -> None:
        self._rows = rows
        self._network = network
        self._slots: dict[int, int] = {}  # those met last stand last
        self._pieces = Pieces.empty(network.precision)

    def find(self, ids: NDArray[np.int32]) -> tuple[Pieces, NDArray[np.int32]]:
        """Return prepared pieces, and the place of each token among them: int32 (T,)."""
        different, places = np.unique(ids, return_inverse=True)
        numbers = different.tolist()
        known = {number: self._slots.pop(number) for number in numbers if number in self._slots}
        new = [number for number in numbers if number not in known]
        if len(numbers) > len(self._pieces.numbers):
            self._pieces = Pieces.of(len(numbers), self._pieces.numbers.dtype)
            self._slots, known, new = {}, {}, numbers
        self._slots.update(known)
        self._add(new)
        slots = np.array([self._slots[number] for number in numbers], dtype=np.int32)
        return self._pieces, slots[places]

    def _add(self, new: Sequence[int]) -> None:
        used, room = len(self._slots), len(self._pieces.numbers)
        oldest = list(itertools.islice(self._slots, max(0, used + len(new) - room)))
        slots = [self._slots.pop(number) for number in oldest]
        slots += range(used, used + len(new) - len(oldest))
        self._slots.update(zip(new, slots, strict=True))
        ids, places = np.array(new, dtype=np.int64), np.array(slots, dtype=np.int64)

        def prepare(block: slice) -> None:
            self._pieces.put(places[block], self._network.prepare(self._rows(ids[block])))

        in_threads(prepare, blocks(len(new), PREPARED_AT_ONCE))


def _batches(offsets: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of consecutive sentences of about BATCH_TOKENS tokens, one at least."""
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + BATCH_TOKENS, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
