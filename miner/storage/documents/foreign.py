"""Detection of text in another language than the corpus, by paragraph."""

from collections.abc import Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from miner.languages import language_probabilities

# A paragraph is surely foreign if the corpus's language has less than ``MAX_CHANCE``, and the
# likeliest ``RELATED`` together have more than ``MIN_SURE``.
MAX_CHANCE = 0.001
MIN_SURE = 0.9
RELATED = 3
# In a document with a surely foreign paragraph, others in its language need less evidence.
MAX_IN_MIXED = 0.05
LIKELY = 0.5
MIN_BYTES = 40  # in UTF-8; shorter paragraphs may be names, which are in any language
MAX_OWN_SHARE = 0.1  # of the characters in long paragraphs, in a document that is wholly foreign
NO_LANGUAGE = "zxx"


def foreign_sentences(paragraphs: Sequence[int], texts: Sequence[str], language: str) -> list[bool]:
    """Return whether each sentence of a document is in another language.

    A sentence of a foreign paragraph is kept if it is likely in the corpus's language by itself.
    Short and doubtful paragraphs are kept unless the document is foreign as a whole.
    ``paragraphs`` are the numbers of the sentences' paragraphs, ``language`` is a ``known_label``.
    """
    joined = {
        number: " ".join(text for _, text in group)
        for number, group in groupby(zip(paragraphs, texts, strict=True), itemgetter(0))
    }
    long = {number: text for number, text in joined.items() if len(text.encode()) >= MIN_BYTES}
    results = {number: _identify(text, language) for number, text in long.items()}
    languages = {result.language for result in results.values() if result.is_sure}
    foreign = {number for number, result in results.items() if result.is_foreign(languages)}
    size, foreign_size = (sum(len(long[number]) for number in part) for part in (long, foreign))
    if foreign and size - foreign_size <= MAX_OWN_SHARE * size:
        foreign |= {number for number in joined if number not in long}
    return [
        number in foreign
        and (text == joined[number] or language_probabilities(text)[language] < LIKELY)
        for number, text in zip(paragraphs, texts, strict=True)
    ]


class _Identification(NamedTuple):
    """The likeliest language of a text, compared with the corpus's language."""

    language: str
    chance: float
    own_chance: float
    is_sure: bool

    def is_foreign(self, languages: Set[str]) -> bool:
        is_like = (
            self.language in languages and self.chance > LIKELY and self.own_chance < MAX_IN_MIXED
        )
        return self.is_sure or is_like


def _identify(text: str, language: str) -> _Identification:
    scores = language_probabilities(text)
    own_chance = scores[language]
    ranked = [(name, chance) for name, chance in scores.items() if name != NO_LANGUAGE][:RELATED]
    is_sure = own_chance < MAX_CHANCE and sum(chance for _, chance in ranked) > MIN_SURE
    return _Identification(*ranked[0], own_chance, is_sure)
