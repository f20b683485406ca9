"""Names in a sentence: the words inside of it that are written with a capital letter.

Names are spelt much alike in many languages, so that an encoder that has met more of them knows
better what a language's names stand for than one that was trained on little text of it. Where more
than half of a sentence's words have capitals, as in headlines, these tell nothing.
"""

import re
from collections.abc import Sequence
from functools import cache


@cache
def _name() -> re.Pattern[str]:
    capitals = "".join(letter for letter in map(chr, range(2**16)) if letter.isupper())
    # After a space, for any first word has a capital; quotes and brackets may stand before it.
    return re.compile(rf"(?<=\s)[^\w\s]*[{capitals}]\S*")


def names(sentences: Sequence[str]) -> list[str]:
    """Return the names of each sentence, with a space between them."""
    found = map(_name().findall, sentences)
    return [
        " ".join(words) if 2 * len(words) <= 1 + sentence.count(" ") else ""
        for words, sentence in zip(found, sentences, strict=True)
    ]
