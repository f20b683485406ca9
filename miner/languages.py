"""Detects the language of a corpus from a sample of its sentences."""

import logging
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from miner.language_codes import base_language, macrolanguage, parse_language
from miner.storage.atomic import atomic_file
from miner.storage.cache import shared_folder

logger = logging.getLogger(__name__)

SAMPLED = 200  # sentences
FEW = 20  # sentences, of which some are too short to be recognised one by one
MIN_SHARE = 0.5  # of the sample that a language must have to be the corpus's

# ISO 639-1, and those of ISO 639-3 and 639-2 that have a code there, an encoder of LASER's or a set
# in Tatoeba's (not "run", which has "rn" and is what people call a folder).
CODES = frozenset((files("miner") / "assets" / "language-codes.txt").read_text("ascii").split())
_CODE = re.compile(r"([a-z]{2,3})([-_][a-z0-9]{2,8})*", re.IGNORECASE)


def is_code(text: str) -> bool:
    """Return whether a text is a language code, with or without script or country."""
    match = _CODE.fullmatch(text)
    if match is None or match[1].lower() not in CODES:
        return False
    try:
        return bool(parse_language(text))
    except ValueError:
        return False


def language_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each language (ISO 639-1) in an even sample, the largest first.

    Fewer than ``FEW`` texts are taken as one, whose language comes with its probability.
    """
    sample = texts[:: max(1, len(texts) // SAMPLED)][:SAMPLED]
    if 0 < len(sample) < FEW:
        code, probability = identifier().classify(" ".join(sample))
        return {str(code): float(probability)}
    votes = Counter(map(language_of, sample))
    return {code: count / len(sample) for code, count in votes.most_common()}


def language_of(text: str) -> str:
    """Return the language that a text is most likely in (ISO 639-1)."""
    return str(identifier().classify(text)[0])


def chances(text: str) -> dict[str, float]:
    """Return the probability of each language for a text."""
    return {str(code): float(chance) for code, chance in identifier().rank(text)}


def known_label(code: str) -> str | None:
    """Return the identifier's name for a language or a related one."""
    known = identifier().labels
    by_base = {base_language(label): label for label in known}
    by_wider = {macrolanguage(label): label for label in known}
    base, wider = base_language(code), macrolanguage(code)
    return by_base.get(base) or by_base.get(wider) or by_wider.get(wider)


def main_language(shares: Mapping[str, float]) -> str | None:
    """Return the language that most sentences are in, if there is one."""
    return next((code for code, share in shares.items() if share >= MIN_SHARE), None)


def seen_language(texts: Sequence[str]) -> str | None:
    """Return the language that texts are in by a sample of them; None if it is not recognised."""
    return main_language(language_shares(texts))


_loading = threading.Lock()


def identifier() -> Any:  # noqa: ANN401 - the library has no types
    """Return py3langid's identifier; the first call loads it for all threads."""
    with _loading:
        return _loaded()


@cache
def _loaded() -> Any:  # noqa: ANN401
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    try:
        weights, priors, classes, moves, rows, features = _mapped_model(MODEL_DIR / MODEL_FILE)
    except OSError as error:
        logger.debug("py3langid's model cannot be kept unpacked: %s", error)
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    parts = weights, priors, classes.tolist(), memoryview(moves), features.tolist()
    return LanguageIdentifier(*parts, norm_probs=True, tk_row=rows.tolist())


def _mapped_model(packed: Path) -> list[Any]:
    """Return the arrays of py3langid's model, 70 MB, which are unpacked once for all processes."""
    import numpy as np

    state = packed.stat()
    path = shared_folder() / f"languages-{state.st_size}-{state.st_mtime_ns}.npy"
    if not path.exists():
        from py3langid.modelio import load_model

        parts = [np.asarray(part) for part in load_model(packed)]
        kinds = [(str(place), part.dtype, part.shape) for place, part in enumerate(parts)]
        with atomic_file(path) as unpacked:
            np.save(unpacked, np.array([tuple(parts)], dtype=np.dtype(kinds, align=True)))
    model = np.load(path, mmap_mode="r").view(np.ndarray)
    return [model[name][0] for name in model.dtype.names]
