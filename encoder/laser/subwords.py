"""The way from text to LASER's token ids.

Byte-pair encoding (Sennrich et al. 2016, section 3.2) is as in fastBPE, with its files. A line of
``.fcodes`` has both parts of a merge and a count, and one of ``.fvocab`` a token and a count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

from encoder.laser.networks import PAD
from encoder.network import SentenceTokenizer
from encoder.tokenizer import Tokens
from miner.threads import thread_count

Split = Callable[[Sequence[str]], Iterable[Sequence[str]]]  # lines into subwords
SPLIT_AT_SPACES: Split = partial(map, str.split)

END = "</w>"  # the end of a word, in the codes
CONTINUES = "@@"  # the suffix of each token that does not end its word

MAX_CACHED_WORDS = 1 << 18  # words whose tokens BPE keeps

BOS, EOS, UNK = 0, 2, 3
SPECIAL = {"<s>": BOS, "<pad>": PAD, "</s>": EOS, "<unk>": UNK}
OVERWRITE = " #fairseq:overwrite"


class BPE:
    """A callable that splits a line into tokens by byte-pair encoding.

    It is made from ``.fcodes`` and ``.fvocab``. ValueError says that one is missing or malformed.
    """

    def __init__(self, codes: Path, vocabulary: Path) -> None:
        pairs = [tuple(fields[:2]) for fields in _read_fields(codes, 3)]
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._parts = {first + second: (first, second) for first, second in pairs}
        self._vocabulary = {fields[0] for fields in _read_fields(vocabulary, 2)}
        self._tokens = lru_cache(maxsize=MAX_CACHED_WORDS)(self._split)

    def __call__(self, line: str) -> list[str]:
        """Split a line's words, between spaces, into tokens."""
        return [token for word in line.split(" ") if word for token in self._tokens(word)]

    def _split(self, word: str) -> list[str]:
        parts = [*word[:-1], word[-1] + END]
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            parts = _merge(parts, *best)
        return [token for part in parts for token in self._split_unknown(part)]

    def _split_unknown(self, part: str) -> list[str]:
        token = part.removesuffix(END) if part.endswith(END) else part + CONTINUES
        if token in self._vocabulary or part not in self._parts:
            return [token]
        return [token for half in self._parts[part] for token in self._split_unknown(half)]


def _merge(parts: list[str], first: str, second: str) -> list[str]:
    merged: list[str] = []
    position = 0
    while position < len(parts):
        pair = parts[position : position + 2] == [first, second]
        merged.append(first + second if pair else parts[position])
        position += 2 if pair else 1
    return merged


def _read_fields(path: Path, count: int) -> list[list[str]]:
    if not path.is_file():
        raise ValueError(
            f"{path}: file not found; LASER1 needs its .fcodes and its .fvocab in one folder"
        )
    try:
        rows = [line.decode("utf-8").split(" ") for line in _lines(path)]
    except UnicodeDecodeError:
        raise ValueError(
            f"{path}: is not UTF-8 text, as fastBPE writes; download it again"
        ) from None
    for number, row in enumerate(rows, start=1):
        if len(row) != count:
            raise ValueError(
                f"{path} line {number}: {len(row)} fields between spaces, not {count}; download it "
                "again"
            )
    return rows


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


class Vocabulary:
    """The ids of tokens, by which sentences are encoded.

    ``ids`` are by token, and special tokens have 0 to 3. A sentence begins with ``<s>`` if
    ``prepend_bos``, and ends with ``</s>``. It has at most ``capacity`` ids, if that is not None.
    """

    def __init__(
        self, ids: Mapping[str, int], *, prepend_bos: bool = False, capacity: int | None = None
    ) -> None:
        # Sentences are never padded, so the token <pad> in a text is unknown.
        self._ids = {**ids, **SPECIAL, "<pad>": UNK}
        self._first = [BOS] if prepend_bos else []
        self._max_tokens = None if capacity is None else capacity - 1 - len(self._first)

    def encode(self, sentences: Iterable[Sequence[str]]) -> Tokens:
        """Return the ids of each sentence's tokens, with special tokens.

        Unknown tokens and ``<pad>`` are 3. Tokens above the capacity are dropped before ``</s>``.
        """
        find_id = self._ids.get
        return Tokens.of(
            [*self._first, *(find_id(token, UNK) for token in tokens[: self._max_tokens]), EOS]
            for tokens in sentences
        )


def read_cvocab(path: Path) -> dict[str, int]:
    """Read fairseq's dictionary file, with a token and a count per line.

    The result is the id of each token, which is its line, from 0, plus 4.

    Raises:
        ValueError: The file is missing, a line malformed, or a token repeated or special, unless
            its line ends with ``#fairseq:overwrite``.
    """
    if not path.is_file():
        raise ValueError(f"--vocab {path}: file not found; pass the encoder's .cvocab file")
    ids: dict[str, int] = {}
    for row, line in enumerate(_lines(path)):
        try:
            entry = line.decode("utf-8").removesuffix(OVERWRITE)
            token, count = entry.rsplit(" ", 1)
            int(count)
        except ValueError:
            raise ValueError(
                f"{path} line {row + 1}: expected a token and a count, not "
                f"{line[:60].decode(errors='replace')!r}; pass the encoder's .cvocab file"
            ) from None
        if (token in ids or token in SPECIAL) and not line.endswith(OVERWRITE.encode()):
            raise ValueError(
                f"{path} line {row + 1}: duplicate or special token {token!r}; download it again"
            )
        ids[token] = len(SPECIAL) + row
    return ids


class TextTokenizer(SentenceTokenizer):
    """A tokeniser that preprocesses lines and splits them into subwords.

    ``split`` maps all lines to their tokens, by ``BPE`` on each (LASER1) or ``read_pieces`` (LASER2
    and LASER3), or at white space. ``steps`` is ``make_tokenizer`` or ``make_normalizer``, or None
    for no preprocessing. Its errors for ``language``, None for English, are raised.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        split: Split = SPLIT_AT_SPACES,
        steps: Callable[[str | None], Callable[[str], str]] | None = None,
        language: str | None = None,
    ) -> None:
        self._vocabulary, self._split, self._steps = vocabulary, split, steps
        self._prepare = steps(language) if steps else str

    def for_language(self, language: str | None) -> "TextTokenizer":
        """Return this tokeniser for a language, with errors of ``make_tokenizer``."""
        if self._steps is None:
            return self
        return TextTokenizer(self._vocabulary, self._split, self._steps, language)

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the ids of each sentence's subwords, with special tokens."""
        return self._vocabulary.encode(self._split([self._prepare(line) for line in sentences]))


def read_pieces(path: Path) -> Split:
    """Read a SentencePiece model as a function from lines to their pieces.

    Raises:
        ValueError: The file is missing, or is not a SentencePiece model.
    """
    import sentencepiece

    if not path.is_file():
        raise ValueError(f"--vocab {path}: file not found; pass the encoder's .spm or .fcodes file")
    try:  # without a byte, a model that fails later
        processor = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes() or b"\0")
    except RuntimeError as error:
        raise ValueError(
            f"{path}: is not a SentencePiece model, or is damaged; use the encoder's own .spm (or "
            ".fcodes, for LASER1), or copy it again"
        ) from error
    # Pieces as text, because the vocabulary may have tokens that the model lacks.
    return partial(processor.encode, out_type=str, num_threads=thread_count())
