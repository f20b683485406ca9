"""Byte-pair encoding as fastBPE applies it, with its vocabulary filter.

Sennrich, Haddow & Birch 2016, "Neural Machine Translation of Rare Words with Subword Units",
section 3.2; the filter and the file formats are fastBPE's (``.fcodes``: two parts and a count a
line, in order of merging; ``.fvocab``: a token and a count a line).
"""

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

END = "</w>"  # of a word, inside the codes
CONTINUES = "@@"  # what a token has that is not the last of its word

WORDS_KEPT = 1 << 18  # of which the tokens are remembered


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
            ranks = [self._ranks.get(pair, len(self._ranks)) for pair in pairwise(parts)]
            best = min(ranks)
            if best == len(self._ranks):
                break
            parts = _merged(parts, parts[ranks.index(best)], parts[ranks.index(best) + 1])
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
        raise ValueError(f"{path}: there is no such file; LASER1 needs its .fcodes and its .fvocab")
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    try:
        rows = [line.decode("utf-8").split(" ") for line in lines]
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not UTF-8 text, so no file of fastBPE's") from None
    for number, row in enumerate(rows, start=1):
        if len(row) != count:
            raise ValueError(
                f"{path}: line {number} has {len(row)} fields, not {count} as fastBPE writes them"
            )
    return rows
