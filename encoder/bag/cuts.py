"""Tell whether a word is cut into the same pieces wherever it stands.

No piece goes across a space, so each word of a sentence is cut on its own, but for rounding: the
tokeniser adds scores up from the sentence's beginning, in float32, and of two ways to cut a word
that score nearly the same ("aa a" and "a aa" do), what stands before it may decide.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder.bag.compiled_words import compare_cuts, enter_pieces
from encoder.tokenizer import Tokens

# A sum is rounded by 2^-24 of itself at most, each of two at each character; and twice that much.
ROUNDING = 2.0**-22
UNKNOWN = 10.0  # that a character of no piece scores below all pieces


class Cuts:
    """The pieces of a unigram model (Kudo 2018) and their scores, to cut words into."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float]) -> None:
        self._scores = np.array(scores)
        self._unknown = pieces.index("")
        lengths = np.array([*map(len, pieces)])
        characters = Tokens(
            ids=np.frombuffer("".join(pieces).encode("utf-32-le"), dtype=np.int32),
            offsets=np.concatenate(([0], lengths.cumsum())),
        )
        self._longest = int(lengths.max())
        self._hashes = np.zeros(len(pieces), dtype=np.uint64)
        self._slots = np.full(4 << len(pieces).bit_length(), -1, dtype=np.int32)
        enter_pieces(characters.ids, characters.offsets, self._hashes, self._slots)
        self._characters = characters

    def margins(self, words: Tokens) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return by how much the best cut of each word beats the next, and what it costs.

        ``words`` are lists of pieces. Margins are per character, float32 (W,), infinite where there
        is one cut, and 0 where a character has no piece; costs are negative log probabilities,
        float32 (W,). In a sentence whose words cost C together, a word with a margin above C
        ``ROUNDING`` is cut as it is alone.
        """
        spelt = self._characters.take(words.ids.astype(np.int64))
        margins, costs = np.zeros((2, len(words)), dtype=np.float32)
        offsets = spelt.offsets[words.offsets]
        unknown = self._scores.min() - UNKNOWN
        table = self._hashes, self._slots, self._scores
        compare_cuts(spelt.ids, offsets, *table, unknown, self._longest, margins, costs)
        margins[words.owners[words.ids == self._unknown]] = 0
        return margins, costs
