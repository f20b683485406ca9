"""The vocabulary of a LASER checkpoint: subword tokens to ids."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from encoder.tokenizer import Tokens

BOS, PAD, EOS, UNK = 0, 1, 2, 3
SPECIAL = {"<s>": BOS, "<pad>": PAD, "</s>": EOS, "<unk>": UNK}
OVERWRITE = " #fairseq:overwrite"


class Vocabulary:
    """Ids of tokens; ``</s>`` ends each sentence, ``<s>`` begins it where ``prepend_bos``.

    A sentence without tokens is the lone ``</s>``. Sentences have at most ``capacity`` ids: what is
    longer is cut before ``</s>``.
    """

    def __init__(
        self, ids: Mapping[str, int], *, prepend_bos: bool = False, capacity: int | None = None
    ) -> None:
        self._ids = {**ids, **SPECIAL}
        # Sentences of one length are never padded, so the token <pad> in a text is just unknown.
        self._ids["<pad>"] = UNK
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

    Raises:
        ValueError: no such file, or a line is not of this form.
    """
    if not path.is_file():
        raise ValueError(f"{path}: there is no such vocabulary file")
    ids: dict[str, int] = {}
    # Tokens may hold any character but the newline, also what str.splitlines takes for one.
    for row, line in enumerate(path.read_bytes().removesuffix(b"\n").split(b"\n")):
        try:
            entry = line.decode("utf-8").removesuffix(OVERWRITE)
            token, count = entry.rsplit(" ", 1)
            int(count)
        except ValueError:
            raise ValueError(
                f"{path}: line {row + 1} is not a token and a count; this is no .cvocab file"
            ) from None
        if (token in ids or token in SPECIAL) and not line.endswith(OVERWRITE.encode()):
            raise ValueError(f"{path}: line {row + 1} repeats the token {token!r}")
        ids[token] = len(SPECIAL) + row
    return ids
