"""The faults of parallel text from the web, made from text that is parallel.

As Bicleaner's and OpusFilter's rules have it (Sánchez-Cartagena et al. 2018; Aulamo et al. 2020).
"""

import re
from collections.abc import Callable, Mapping, Sequence

SITE_LINES = (
    "Home | About us | Products | Contact | Sitemap",
    "Copyright © 2019. All rights reserved.",
    "We use cookies to improve your experience. Read our privacy policy.",
    "Click here to subscribe to our newsletter.",
    "Share on Facebook | Share on Twitter | Print this page",
    "Log in or register to post comments",
    "Page 1 of 12 « Previous Next »",
    "Posted by admin at 10:32 | 4 comments",
)
LINK = " https://www.example.com/news/article?id=12"
Sides = tuple[list[str], list[str]]


def noises(
    source: Sequence[str], target: Sequence[str], foreign: Mapping[str, Sequence[str]]
) -> dict[str, Sides]:
    """Return by kind of noise the sources and targets that it makes of parallel lines.

    ``foreign`` has the same lines in other languages, by name. Lines that a kind leaves as they
    were, such as those without a number to falsify, are not among its pairs.
    """
    changes: dict[str, Callable[[int], str]] = {
        "untranslated": lambda row: source[row],
        "misaligned": lambda row: target[(row + 1) % len(target)],
        "truncated": lambda row: _half(target[row]),
        "boilerplate": lambda row: SITE_LINES[row % len(SITE_LINES)],
        "number": lambda row: _other_number(target[row]),
        "link": lambda row: target[row] + LINK,
        **{
            f"in {language}": lambda row, lines=lines: lines[row]  # type: ignore[misc]
            for language, lines in foreign.items()
        },
    }
    made: dict[str, Sides] = {}
    for kind, change in changes.items():
        changed = [(source[row], change(row), target[row]) for row in range(len(source))]
        kept = [(one, other) for one, other, before in changed if other != before]
        made[kind] = [one for one, _ in kept], [other for _, other in kept]
    return made


def _half(text: str) -> str:
    """Return the first half: of its words, or of its characters where it has no spaces."""
    words = text.split()
    if len(words) > 3:
        return " ".join(words[: len(words) // 2])
    return text[: len(text) // 2]


def _other_number(text: str) -> str:
    """Return a text with every digit of its numbers one higher; 9 becomes 1."""
    return re.sub(r"\d", lambda digit: str(int(digit[0]) % 9 + 1), text)
