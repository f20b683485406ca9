"""Subword tokenisers, which turn sentences into one flat array of ids.

Axes in this package: ``S`` sentences, ``T`` tokens in all, ``V`` vocabulary rows, ``D`` dimensions.
"""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from miner.threads import thread_count

SPACE = "\u2581"  # SentencePiece's sign for the space before a word


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """S lists of token ids or other numbers, joined in one array.

    Attributes:
        ids: the numbers of all lists, int32 (T,).
        offsets: list i has ``ids[offsets[i] : offsets[i + 1]]``; int64 (S + 1,), from 0.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[int]]) -> "Tokens":
        """Build from a list of ids per sentence, maybe empty ones."""
        parts = list(sentences)
        offsets = np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)
        ids = np.fromiter(chain.from_iterable(parts), np.int32, offsets[-1])
        return cls(ids=ids, offsets=offsets)

    @classmethod
    def group(cls, ids: NDArray[np.int32], owners: NDArray[np.integer], count: int) -> "Tokens":
        """Divide ids, int32 (T,), into ``count`` lists.

        ``owners`` (T,) are the numbers of the ids' lists, from 0. Ids of a list keep their order.
        """
        order = np.argsort(owners, kind="stable")
        return cls(ids=ids[order], offsets=np.searchsorted(owners[order], np.arange(count + 1)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def owners(self) -> NDArray[np.int64]:
        """The number of each token's list, int64 (T,), ascending."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def take(self, rows: NDArray[np.int64]) -> "Tokens":
        """Return the lists at positions ``rows``, int64, in that order."""
        starts, lengths = self.offsets[rows], np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Tokens(ids=self.ids[positions], offsets=offsets)

    def keep(self, is_kept: NDArray[np.bool_]) -> "Tokens":
        """Return the lists with only the tokens where ``is_kept``, bool (T,)."""
        kept_before = np.concatenate(([0], np.cumsum(is_kept)))
        return Tokens(ids=self.ids[is_kept], offsets=kept_before[self.offsets])


def join(parts: Sequence[Tokens]) -> Tokens:
    """Concatenate the sentences of one or more ``Tokens``, in order."""
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate(([0], lengths.cumsum()))
    return Tokens(ids=np.concatenate([part.ids for part in parts]), offsets=offsets)


class Tokenizer:
    """A SentencePiece model, which has its own normaliser.

    RuntimeError says that the bytes ``model`` are not a SentencePiece model.
    """

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        if not model:
            raise RuntimeError("the model is empty")
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the piece ids of each sentence, none for a blank one."""
        return Tokens.of(self._processor.encode(list(sentences), num_threads=thread_count()))

    def pieces(self, ids: Sequence[int] | None = None) -> list[str]:
        """Return pieces of ``ids``, or all, with SPACE for spaces, "" for unknown."""
        names = self._processor.id_to_piece([*range(len(self))] if ids is None else [*ids])
        unknown = self._processor.id_to_piece(self._processor.unk_id())
        return ["" if name == unknown else name for name in names]

    def scores(self) -> list[float]:
        """Return scores by id, which are log probabilities in a unigram model."""
        return self._processor.get_score([*range(len(self))])


def train_tokenizer(
    sentences: Iterable[str], *, vocabulary_size: int, model_type: str = "unigram"
) -> bytes:
    """Train a SentencePiece model, and return it serialised.

    ``model_type`` is ``unigram`` (Kudo 2018) or ``bpe`` (Sennrich et al. 2016). Text is normalised
    by NFKC, with case folded. Sentences above 2000 bytes are skipped, and rare characters unknown.

    Raises:
        ValueError: The text is empty, or ``vocabulary_size`` too large or too small for it.
    """
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=model_type,
            vocab_size=vocabulary_size,
            character_coverage=0.9999,
            normalization_rule_name="nmt_nfkc_cf",
            max_sentence_length=2000,
            bos_id=-1,
            eos_id=-1,
            num_threads=thread_count(),
            minloglevel=1,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2] or "the text is empty"
        if most := re.search(r"<= (\d+)", reason):
            reason = f"this text yields at most {most[1]} subwords; lower it, or use more text"
        elif least := re.search(r"vs (\d+)", reason):
            reason = f"this text needs at least {least[1]} subwords; increase it"
        raise ValueError(f"--vocabulary-size {vocabulary_size}: {reason}") from error
    return model.getvalue()
