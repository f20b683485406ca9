"""Names of documents, such as URLs and paths, without what only says their language.

Translated pages often differ in that alone: ``/de/start.html`` and ``/en/start.html``,
``start.fr.html`` and ``start.html?lang=en``. Resnik & Smith 2003, "The Web as a Parallel Corpus".
"""

import re
from collections import Counter
from collections.abc import Sequence

from miner import languages

_PART = re.compile(r"[^/._?=&:-]+")
_NUMBER = re.compile(r"[\W\d_]*(\.[a-z]+)?")  # of a document that was only counted: 0017.txt
_QUERY = {"lang", "language", "locale", "hl", "l"}
# ISO 639-1. Words of other languages among them, such as "is", are left out on both sides alike;
# "sh" is an ending of files.
CODES = {code for code in languages.CODES if len(code) == 2} - {"sh"} | {"bh"}
_REGIONS = frozenset("at be br ca ch cn gb hans hant hk ie latn mx nz tw us cyrl".split())


def language_free(name: str) -> str:
    """Return what is left of a name without codes of languages, in lower case.

    >>> language_free("https://a.org/de/start.html") == language_free("https://a.org/start.en.html")
    True
    """
    kept = []
    after_code = False
    for part in _PART.findall(name.lower()):
        is_code = part in CODES or (after_code and part in _REGIONS)
        if not is_code and part not in _QUERY:
            kept.append(part)
        after_code = is_code
    return "/".join(kept)


def same_names(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of documents whose names differ in the language alone.

    A name that several documents of a side share then is no sign of anything, nor is a number.
    """
    keys = [
        ["" if _NUMBER.fullmatch(name) else language_free(name) for name in names]
        for names in (source, target)
    ]
    counts = [Counter(side) for side in keys]
    places = {key: place for place, key in enumerate(keys[1]) if counts[1][key] == 1}
    return [
        (place, places[key])
        for place, key in enumerate(keys[0])
        if key and counts[0][key] == 1 and key in places
    ]
