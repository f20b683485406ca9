"""Detection of text in another language than the corpus, by paragraph."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

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
    """Return for each sentence of a document whether its language is foreign.

    A sentence is foreign if its paragraph is, unless the sentence by itself is probably in
    ``language``, the corpus's ``known_label``. A paragraph is foreign if py3langid is nearly sure
    of that, or likely in the language of a sure one, or below 40 bytes if 90% of longer ones' text
    is. ``paragraphs`` are the ascending paragraph numbers of ``texts``.
    """
    joined = {
        number: " ".join(text for _, text in group)
        for number, group in groupby(zip(paragraphs, texts, strict=True), itemgetter(0))
    }
    long = {number: text for number, text in joined.items() if len(text.encode()) >= MIN_BYTES}
    scores = {number: language_probabilities(text) for number, text in long.items()}
    ranked = {
        number: [(name, chance) for name, chance in likely.items() if name != NO_LANGUAGE][:RELATED]
        for number, likely in scores.items()
    }
    sure = {
        number
        for number, top in ranked.items()
        if scores[number][language] < MAX_CHANCE and sum(chance for _, chance in top) > MIN_SURE
    }
    languages = {ranked[number][0][0] for number in sure}
    foreign = sure | {
        number
        for number, ((best, chance), *_) in ranked.items()
        if best in languages and chance > LIKELY and scores[number][language] < MAX_IN_MIXED
    }
    size, foreign_size = (sum(len(long[number]) for number in part) for part in (long, foreign))
    if foreign and size - foreign_size <= MAX_OWN_SHARE * size:
        foreign |= {number for number in joined if number not in long}
    return [
        number in foreign
        and (text == joined[number] or language_probabilities(text)[language] < LIKELY)
        for number, text in zip(paragraphs, texts, strict=True)
    ]
