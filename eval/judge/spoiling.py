"""Near-copies of translations: a sentence changed so that it no longer says what the other says."""

import re
from collections.abc import Callable, Sequence
from random import Random

Spoil = Callable[[str, Random, Sequence[str]], str]

_CLAUSE = re.compile(r"[,;:.!?\u3001\u3002\uff0c\uff1a\uff1b]\s*")
_VERB = re.compile(r"\b(is|are|was|were|will|can|must|should|has|have|does|do|did)\b(?! not)")
_NOT = re.compile(r"n't\b| not\b| never\b")
_NAME = re.compile(r"(?<=[^.!?:\W] )[A-Z\u0391-\u03a9\u0410-\u042f]\w{2,}")


def half(text: str, random: Random, others: Sequence[str]) -> str:
    """Keep the first or the second half of the words, or of the characters without spaces."""
    words = text.split(" ")
    units, joint = (words, " ") if len(words) > 3 else (list(text), "")
    middle = len(units) // 2
    return joint.join(units[:middle] if random.random() < 0.7 else units[middle:])


def clause(text: str, random: Random, others: Sequence[str]) -> str:
    """Leave out what stands before or after a comma or the like."""
    places = [found.end() for found in _CLAUSE.finditer(text)]
    places = [place for place in places if len(text) < 5 * min(place, len(text) - place)]
    if not places:
        return text
    place = random.choice(places)
    return (text[:place] if random.random() < 0.5 else text[place:]).strip()


def number(text: str, random: Random, others: Sequence[str]) -> str:
    """Give other digits."""
    shift = random.randrange(1, 9)
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + shift) % 10), text)


def name(text: str, random: Random, others: Sequence[str]) -> str:
    """Put a name of another sentence in the place of one."""
    found = list(_NAME.finditer(text))
    drawn = random.sample(others, min(8, len(others)))
    names = [each for other in drawn for each in _NAME.findall(other)]
    if not found or not names:
        return text
    place = random.choice(found)
    other: str = random.choice(names)
    return text[: place.start()] + other + text[place.end() :]


def negation(text: str, random: Random, others: Sequence[str]) -> str:
    """Say in English that it is not so, or that it is."""
    if _NOT.search(text):
        return _NOT.sub("", text, count=1)
    return _VERB.sub(r"\1 not", text, count=1)


def addition(text: str, random: Random, others: Sequence[str]) -> str:
    """Say more: another sentence before or behind."""
    other = random.choice(others)
    return f"{text} {other}" if random.random() < 0.5 else f"{other} {text}"


KINDS: tuple[Spoil, ...] = (half, half, clause, clause, number, name, negation, addition)
