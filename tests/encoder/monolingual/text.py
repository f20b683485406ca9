"""Text of two made-up languages in which words keep the same company, none of it translated."""

import numpy as np

WORDS, SHARED, TOPICS = 120, 40, 24
LETTERS = "abdeghiklmnorstu"


def made_up_word(number: int, ending: str) -> str:
    first, second = divmod(number, len(LETTERS))
    return f"{LETTERS[first]}{LETTERS[second]}{LETTERS[(3 * number) % 16]}{ending}"


def words_of(language: str) -> list[str]:
    """Word i of a language means word i of the other one; the first ones are the same."""
    endings = ["um"] * SHARED + [language] * (WORDS - SHARED)
    return [made_up_word(number, ending) for number, ending in enumerate(endings)]


def made_up_text(language: str, count: int, *, seed: int) -> list[str]:
    """Sentences about a topic each, with words of it and of those beside it."""
    generator = np.random.default_rng(seed)
    words = words_of(language)
    lines = []
    for _ in range(count):
        centre = generator.integers(TOPICS) * WORDS // TOPICS
        near = (centre + np.abs(generator.normal(0, 4, size=8)).astype(int)) % WORDS
        lines.append(" ".join(words[number] for number in near))
    return lines
