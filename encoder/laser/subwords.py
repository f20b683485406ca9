"""Text to LASER's token ids: preprocessing, then subwords, then the vocabulary."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.laser.bpe import BPE
from encoder.laser.preprocess import normalizing, tokenizing
from encoder.laser.vocabulary import Vocabulary
from encoder.tokenizer import Tokens
from miner.threads import thread_count

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


class WhitespaceTokenizer:
    """For text that is tokens between spaces already."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def for_language(self, language: str | None) -> "WhitespaceTokenizer":
        """Return itself: nothing is left to do that depends on the language."""
        return self

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the ids of the tokens of each sentence."""
        return self._vocabulary.encode(sentence.split() for sentence in sentences)


class SentencePieceTokenizer:
    """LASER2's and LASER3's: regular punctuation, lower case, pieces of a SentencePiece model."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        processor: "SentencePieceProcessor",
        language: str | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._processor = processor
        self._normalize = normalizing(language)

    def for_language(self, language: str | None) -> "SentencePieceTokenizer":
        """Return the same pieces after the preprocessing of ``language``."""
        return SentencePieceTokenizer(self._vocabulary, self._processor, language)

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the ids of the pieces of each sentence."""
        lines = [self._normalize(sentence) for sentence in sentences]
        # As text, not as SentencePiece's ids: the vocabulary may know what the model does not.
        pieces = self._processor.encode(lines, out_type=str, num_threads=thread_count())
        return self._vocabulary.encode(pieces)


class BPETokenizer:
    """LASER1's: words as Moses splits them, lower case, fastBPE's subwords."""

    def __init__(self, vocabulary: Vocabulary, bpe: BPE, language: str | None = None) -> None:
        self._vocabulary = vocabulary
        self._bpe = bpe
        self._words = tokenizing(language)

    def for_language(self, language: str | None) -> "BPETokenizer":
        """Return the same subwords after the preprocessing of ``language``."""
        return BPETokenizer(self._vocabulary, self._bpe, language)

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the ids of the subwords of each sentence."""
        return self._vocabulary.encode(self._bpe(self._words(line)) for line in sentences)


def read_pieces(path: Path) -> "SentencePieceProcessor":
    """Read a SentencePiece model (``.spm``).

    Raises:
        ValueError: no such file, or something else is in it.
    """
    import sentencepiece

    if not path.is_file():
        raise ValueError(f"{path}: there is no such SentencePiece model")
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    except RuntimeError as error:
        raise ValueError(f"{path}: is no SentencePiece model, or damaged") from error
