"""Detects the language of a corpus from a sample of its sentences."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

SAMPLED = 200  # sentences
FEW = 20  # sentences, of which some are too short to be recognised one by one
MIN_SHARE = 0.5  # of the sample that a language must have to be the corpus's

# ISO 639-1, and those of ISO 639-3 and 639-2 that have a code there, an encoder of LASER's or a set
# in Tatoeba's (not "run", which has "rn" and is what people call a folder).
_TEXT = files("miner").joinpath("assets", "language-codes.txt").read_text(encoding="ascii")
CODES = frozenset(_TEXT.split())


def language_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each language (ISO 639-1) in an even sample, the largest first.

    Fewer than ``FEW`` texts are taken as one, whose language comes with its probability.
    """
    step = max(1, len(texts) // SAMPLED)
    sample = texts[::step][:SAMPLED]
    if not sample:
        return {}
    if len(sample) < FEW:
        code, probability = identifier().classify(" ".join(sample))
        return {str(code): float(probability)}
    votes = Counter(map(language_of, sample))
    return {code: count / len(sample) for code, count in votes.most_common()}


def language_of(text: str) -> str:
    """Return the language that a text is most likely in (ISO 639-1)."""
    return str(identifier().classify(text)[0])


def main_language(shares: Mapping[str, float]) -> str | None:
    """Return the language that most sentences are in, if there is one."""
    return next((code for code, share in shares.items() if share >= MIN_SHARE), None)


def seen_language(texts: Sequence[str]) -> str | None:
    """Return the language that texts are in by a sample of them; None if it is not recognised."""
    return main_language(language_shares(texts))


_loading = threading.Lock()


def identifier() -> Any:  # noqa: ANN401 - the library has no types
    """Return py3langid's identifier; the first call loads it for all threads (half a second)."""
    with _loading:
        return _loaded()


@cache
def _loaded() -> Any:  # noqa: ANN401
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
