"""Text in another language than its corpus, by document and by paragraph."""

from collections.abc import Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from miner.languages import language_probabilities

# A paragraph is foreign if its corpus's language has less than this probability, and three related
# ones together have more than that.
MAX_CHANCE, MIN_SURE = 0.001, 0.9
RELATED = 3
# The same in a document that has such paragraphs, of one that is likely in their language.
MAX_CHANCE_BESIDE, LIKELY = 0.05, 0.5
MIN_BYTES = 40  # in UTF-8; a name may be in any language
MAX_OWN = 0.1  # share of the text with a verdict in a document that is foreign as a whole
NO_LANGUAGE = "zxx"


def foreign_sentences(paragraphs: Sequence[int], texts: Sequence[str], language: str) -> list[bool]:
    """Return which sentences of a document are in another language.

    ``language`` is a ``known_label``. ``paragraphs`` are the numbers of the sentences' paragraphs.
    A sentence shares the fate of its paragraph unless it is likely in the language itself. Short
    and doubtful paragraphs are kept unless the document is foreign as a whole.
    """
    joined = {
        number: " ".join(text for _, text in group)
        for number, group in groupby(zip(paragraphs, texts, strict=True), itemgetter(0))
    }
    long = {number: text for number, text in joined.items() if len(text.encode()) >= MIN_BYTES}
    guesses = {number: _guess(text, language) for number, text in long.items()}
    others = {guess.best for guess in guesses.values() if guess.is_sure}
    foreign = {number for number, guess in guesses.items() if guess.is_foreign(others)}
    size, foreign_size = (sum(len(long[number]) for number in part) for part in (long, foreign))
    if foreign and size - foreign_size <= MAX_OWN * size:
        foreign |= {number for number in joined if number not in long}
    return [
        number in foreign
        and (text == joined[number] or language_probabilities(text)[language] < LIKELY)
        for number, text in zip(paragraphs, texts, strict=True)
    ]


class _Guess(NamedTuple):
    """The likeliest language of a text, and the corpus's language."""

    best: str
    chance: float
    own: float
    is_sure: bool

    def is_foreign(self, others: Set[str]) -> bool:
        """Return whether a text is in another language."""
        is_like = self.best in others and self.chance > LIKELY and self.own < MAX_CHANCE_BESIDE
        return self.is_sure or is_like


def _guess(text: str, language: str) -> _Guess:
    likely = language_probabilities(text)
    own = likely[language]
    ranked = [(name, chance) for name, chance in likely.items() if name != NO_LANGUAGE][:RELATED]
    is_sure = own < MAX_CHANCE and sum(chance for _, chance in ranked) > MIN_SURE
    return _Guess(*ranked[0], own, is_sure)
