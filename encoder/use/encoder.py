"""The encoder ``use``, which caches prepared pieces and runs in threads."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from encoder import USE, Precision
from encoder.base import MIN_COSINE, SAMPLE, BaseEncoder
from encoder.coverage import language_key
from encoder.rows import Matrix, normalize_rows
from encoder.tokenizer import Tokens
from encoder.use import glossary
from encoder.use.compiled import CHANNELS, FEATURES
from encoder.use.network import DIM, PREPARED, Network, channel_sizes, quantize
from encoder.use.weights import DIGEST, load_tokenizer, load_weights
from miner.instructions import CHOSEN
from miner.threads import blocks, prefetch, run_in_threads

CHUNK_SENTENCES = 1024  # tokenised together, while the chunk before is encoded
BATCH_TOKENS = 512  # tokens per step of a thread
ROWS_AT_ONCE = 128  # pieces or sentences per step of a thread, whose rows fit into the cache
KEPT_BYTES = 256 << 20  # of prepared pieces, in int8 enough for about two languages


def load_use(*, precision: Precision) -> "UseEncoder":
    """Load the encoder ``use``.

    ``auto`` is int8 if the CPU has int8 instructions, and each vector of ``SAMPLE`` has a cosine of
    at least 0.9995 to that in float32, or else float32.

    Raises:
        ValueError: A file is missing or damaged, or the encoder cannot run in this precision.
        ModuleNotFoundError: The network's package is not installed.
    """
    if precision not in ("float32", "int8", "auto"):
        raise ValueError(
            f"--precision {precision}: encoder 'use' cannot run in it; pass float32, int8 or auto"
        )
    if precision == "int8" and not CHOSEN:
        raise ValueError(
            "--precision int8: this CPU has no int8 instructions; use --precision auto or float32"
        )
    in_float32 = UseEncoder(Network(load_weights().tensors))
    if precision == "float32" or not CHOSEN:
        return in_float32
    in_int8 = UseEncoder(Network(load_weights().tensors, in_float32.channel_sizes(SAMPLE)))
    cosines = np.einsum("sd,sd->s", in_float32.encode(SAMPLE), in_int8.encode(SAMPLE))
    return in_int8 if precision == "int8" or cosines.min() >= MIN_COSINE else in_float32


class UseEncoder(BaseEncoder):
    """An encoder with ``network``, of pieces or of a language's ``words``.

    ``kept_bytes`` is about the memory of its own full caches. Errors are of ``load_weights``.
    """

    def __init__(self, network: Network, words: glossary.GlossaryWords | None = None) -> None:
        suffix = f"+{words.name}" if words else ""
        self.name = f"{USE}@{DIGEST}{suffix}-{network.name}"
        self.dim, self.precision = DIM, network.precision
        self.kept_bytes = KEPT_BYTES + (glossary.KNOWN_BYTES if words else 0)
        self._network, self._words = network, words
        self._tokenizer = words or load_tokenizer()
        self._rows = (words or load_weights()).rows
        self._readers: dict[str, UseEncoder] = {}  # by the name of the bundled encoder's part
        self._prepared = PreparedPieces(self._rows, network)
        self._lock = threading.Lock()

    def for_language(self, language: str | None) -> "UseEncoder":
        """Return this encoder, or one that reads a language's words as English.

        Only languages of ``added_languages`` have another, by ``load_glossary``. Errors of both are
        raised, of the first for any language.
        """
        if language_key(language or "") not in glossary.added_languages():
            return self
        bag = glossary.load_bundled(language or "")
        if bag.name not in self._readers:
            words = glossary.GlossaryWords(glossary.load_glossary(), bag)
            self._readers[bag.name] = UseEncoder(self._network, words)
        return self._readers[bag.name]

    def channel_sizes(self, sentences: Sequence[str]) -> Matrix:
        """Return hidden channels' root mean squares over tokens, float32 (768,)."""
        tokens, pieces = self._tokenizer.encode(sentences), self._prepared
        slots = Tokens(ids=pieces.find(tokens.ids), offsets=tokens.offsets)
        return channel_sizes(self._network.hidden(pieces.numbers, pieces.scales, slots))

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        vectors = np.empty((len(sentences), DIM), dtype=np.float32)
        chunks = blocks(len(sentences), CHUNK_SENTENCES)
        with self._lock:
            if self._words and self._words.full:
                self._words.forget()
                self._prepared = PreparedPieces(self._rows, self._network)
            texts = (sentences[chunk] for chunk in chunks)
            for chunk, tokens in zip(chunks, prefetch(self._tokenizer.encode, texts), strict=True):
                self._encode_chunk(tokens, vectors[chunk])
        if normalize:
            normalize_rows(vectors)
        return vectors

    def _encode_chunk(self, tokens: Tokens, vectors: Matrix) -> None:
        pieces, slots = self._prepared, self._prepared.find(tokens.ids)
        sums = np.empty((len(tokens), FEATURES), dtype=np.float32)
        counts = np.diff(tokens.offsets)

        def add(batch: slice) -> None:
            offsets = tokens.offsets[batch.start : batch.stop + 1]
            batch_tokens = Tokens(ids=slots[offsets[0] : offsets[-1]], offsets=offsets - offsets[0])
            self._network.sums(pieces.numbers, pieces.scales, batch_tokens, sums[batch])

        def finish(block: slice) -> None:
            vectors[block] = self._network.vectors(sums[block], counts[block])

        run_in_threads(add, _batches(tokens.offsets))
        run_in_threads(finish, blocks(len(tokens), ROWS_AT_ONCE))


class PreparedPieces:
    """A cache of pieces that the network has prepared.

    ``rows`` returns float32 vectors of piece ids, int64. The cache has P pieces, or more if a call
    needs them, and replaces the least recently used. A piece's numbers are its row of ``numbers``
    (P, 3840), float32, or int16 in int8, each 256 of them times one of ``scales`` (P, 15).
    """

    def __init__(self, rows: Callable[[NDArray[np.int64]], Matrix], network: Network) -> None:
        self._rows, self._network = rows, network
        kind = np.dtype(np.int16 if network.precision == "int8" else np.float32)
        self._allocate(KEPT_BYTES // (PREPARED * kind.itemsize), kind)

    def _allocate(self, count: int, kind: np.dtype) -> None:
        self._slots: dict[int, int] = {}  # the last used ones last
        self.numbers = np.empty((count, PREPARED), dtype=kind)
        self.scales = np.ones((count, PREPARED // CHANNELS), dtype=np.float32)

    def find(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return each piece's row in ``numbers``, int32 (T,), until the next call.

        Missing pieces of ``ids`` (T,) are prepared first. They may replace other rows, or the
        arrays ``numbers`` and ``scales``, so read these after the call.
        """
        distinct, inverse = np.unique(ids, return_inverse=True)
        numbers = distinct.tolist()
        if len(numbers) > len(self.numbers):
            self._allocate(len(numbers), self.numbers.dtype)
        cached = {number: self._slots.pop(number) for number in numbers if number in self._slots}
        self._slots.update(cached)
        self._add([number for number in numbers if number not in cached])
        slots = np.array([self._slots[number] for number in numbers], dtype=np.int32)
        return slots[inverse]

    def _add(self, new: Sequence[int]) -> None:
        used, capacity = len(self._slots), len(self.numbers)
        oldest = list(itertools.islice(self._slots, max(0, used + len(new) - capacity)))
        slots = [self._slots.pop(number) for number in oldest]
        slots += range(used, used + len(new) - len(oldest))
        self._slots.update(zip(new, slots, strict=True))
        ids, targets = np.array(new, dtype=np.int64), np.array(slots, dtype=np.int64)

        def prepare(block: slice) -> None:
            rows, block_targets = self._network.prepare(self._rows(ids[block])), targets[block]
            if self.numbers.dtype == rows.dtype:
                self.numbers[block_targets] = rows
            else:
                largest = np.iinfo(np.int16).max
                codes, scales = quantize(rows.reshape(-1, CHANNELS), np.int16, largest)
                self.numbers[block_targets] = codes.reshape(rows.shape)
                self.scales[block_targets] = scales.reshape(len(rows), -1)

        run_in_threads(prepare, blocks(len(new), ROWS_AT_ONCE))


def _batches(offsets: NDArray[np.int64]) -> Iterator[slice]:
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + BATCH_TOKENS, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
