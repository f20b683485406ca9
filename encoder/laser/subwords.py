"""Text to LASER's token ids: preprocessing, then subwords, then the vocabulary.

Byte-pair encoding (Sennrich, Haddow & Birch 2016, "Neural Machine Translation of Rare Words with
Subword Units", section 3.2) is as fastBPE applies it, with its vocabulary filter and files:
``.fcodes``, two parts and a count a line, in order of merging; ``.fvocab``, a token and a count.
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
Steps = Callable[[str | None], Callable[[str], str]]  # what a language's lines are changed by

END = "</w>"  # of a word, inside the codes
CONTINUES = "@@"  # what a token has that is not the last of its word

WORDS_KEPT = 1 << 18  # of which the tokens are remembered

BOS, EOS, UNK = 0, 2, 3
SPECIAL = {"<s>": BOS, "<pad>": PAD, "</s>": EOS, "<unk>": UNK}
OVERWRITE = " #fairseq:overwrite"


class BPE:
    """Splits the words of a line into subword tokens."""

    def __init__(self, codes: Path, vocabulary: Path) -> None:
        pairs = [tuple(fields[:2]) for fields in _read_fields(codes, 3)]
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._parts = {first + second: (first, second) for first, second in pairs}
        self._vocabulary = {fields[0] for fields in _read_fields(vocabulary, 2)}
        self._tokens = lru_cache(maxsize=WORDS_KEPT)(self._split)

    def __call__(self, line: str) -> list[str]:
        """Return the tokens of the words, which are between spaces."""
        return [token for word in line.split(" ") if word for token in self._tokens(word)]

    def _split(self, word: str) -> list[str]:
        parts = [*word[:-1], word[-1] + END]
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            parts = _merged(parts, *best)
        return [token for part in parts for token in self._known(part)]

    def _known(self, part: str) -> list[str]:
        """Return the part as a token, or those it was merged from where the vocabulary lacks it."""
        token = part.removesuffix(END) if part.endswith(END) else part + CONTINUES
        if token in self._vocabulary or part not in self._parts:
            return [token]
        return [token for half in self._parts[part] for token in self._known(half)]


def _merged(parts: list[str], first: str, second: str) -> list[str]:
    """Join all pairs of ``first`` and ``second`` as one, from the left."""
    merged: list[str] = []
    position = 0
    while position < len(parts):
        pair = parts[position : position + 2] == [first, second]
        merged.append(first + second if pair else parts[position])
        position += 2 if pair else 1
    return merged


def _read_fields(path: Path, count: int) -> list[list[str]]:
    if not path.is_file():
        raise ValueError(f"{path}: file not found; LASER1 needs its .fcodes and its .fvocab")
    try:
        rows = [line.decode("utf-8").split(" ") for line in _lines(path)]
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not UTF-8 text; expected a file of fastBPE") from None
    for number, row in enumerate(rows, start=1):
        if len(row) != count:
            raise ValueError(
                f"{path}: line {number} has {len(row)} fields; expected {count}, as fastBPE writes"
            )
    return rows


def _lines(path: Path) -> list[bytes]:
    """Return lines, which may hold any character but the newline."""
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


class Vocabulary:
    """Ids of tokens; ``</s>`` ends each sentence, ``<s>`` begins it where ``prepend_bos``.

    Sentences have at most ``capacity`` ids: what is longer is cut before ``</s>``.
    """

    def __init__(
        self, ids: Mapping[str, int], *, prepend_bos: bool = False, capacity: int | None = None
    ) -> None:
        # Sentences of one length are never padded, so the token <pad> in a text is just unknown.
        self._ids = {**ids, **SPECIAL, "<pad>": UNK}
        self._first = [BOS] if prepend_bos else []
        self._room = None if capacity is None else capacity - 1 - len(self._first)

    def encode(self, sentences: Iterable[Sequence[str]]) -> Tokens:
        """Return the ids of sentences that are split into tokens already."""
        known = self._ids.get
        return Tokens.of(
            [*self._first, *(known(token, UNK) for token in tokens[: self._room]), EOS]
            for tokens in sentences
        )


def read_cvocab(path: Path) -> dict[str, int]:
    """Read fairseq's dictionary file, ``token count`` a line; ids count on from the special ones.

    A ValueError says that there is none, or which line is not of this form.
    """
    if not path.is_file():
        raise ValueError(f"{path}: vocabulary file not found")
    ids: dict[str, int] = {}
    for row, line in enumerate(_lines(path)):
        try:
            entry = line.decode("utf-8").removesuffix(OVERWRITE)
            token, count = entry.rsplit(" ", 1)
            int(count)
        except ValueError:
            raise ValueError(
                f"{path}: line {row + 1} is not a token and a count; this is not a .cvocab file"
            ) from None
        if (token in ids or token in SPECIAL) and not line.endswith(OVERWRITE.encode()):
            raise ValueError(f"{path}: line {row + 1} repeats the token {token!r}")
        ids[token] = len(SPECIAL) + row
    return ids


def split_at_spaces(lines: Sequence[str]) -> Iterable[Sequence[str]]:
    """Return what stands between spaces in each line."""
    return map(str.split, lines)


class TextTokenizer(SentenceTokenizer):
    """Changes lines as their language (ISO 639) asks, then splits them into subwords.

    ``split`` is ``BPE`` for LASER1, ``read_pieces`` for LASER2 and LASER3; ``steps`` is of
    ``encoder.laser.preprocess``. Without these, lines are subwords between spaces already.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        split: Split = split_at_spaces,
        steps: Steps | None = None,
        language: str | None = None,
    ) -> None:
        self._vocabulary, self._split, self._steps = vocabulary, split, steps
        self._prepare = steps(language) if steps else str

    def for_language(self, language: str | None) -> "TextTokenizer":
        """Return the same subwords after the preprocessing of ``language``."""
        if self._steps is None:
            return self
        return TextTokenizer(self._vocabulary, self._split, self._steps, language)

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Return the ids of the subwords of each sentence."""
        return self._vocabulary.encode(self._split([self._prepare(line) for line in sentences]))


def read_pieces(path: Path) -> Split:
    """Return what splits lines into a SentencePiece model's pieces; a ValueError if it is none."""
    import sentencepiece

    if not path.is_file():
        raise ValueError(f"{path}: SentencePiece model not found")
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    except RuntimeError as error:
        raise ValueError(f"{path}: is not a SentencePiece model, or is damaged") from error
    # As text, not as SentencePiece's ids: the vocabulary may know what the model does not.
    return partial(processor.encode, out_type=str, num_threads=thread_count())
