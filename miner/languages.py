"""Detect the language of a corpus from a sample of its sentences."""

import logging
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from miner.language_codes import base_language, macrolanguage, parse_language
from miner.storage.atomic import atomic_file
from miner.storage.cache import shared_folder

logger = logging.getLogger(__name__)

SAMPLED = 200  # sentences
FEW = 20  # sentences; single ones may be too short to be recognised
MIN_SHARE = 0.5  # of the sample, for a corpus's language

# They are described in ``is_code``. "run" (rn) is not among them, because folders have this name.
CODES = frozenset((files("miner") / "assets" / "language-codes.txt").read_text("ascii").split())
_CODE = re.compile(r"([a-z]{2,3})([-_][a-z0-9]{2,8})*", re.IGNORECASE)


def is_code(text: str) -> bool:
    """Return whether a text is a code in ``CODES``, maybe with a region.

    ``CODES`` has ISO 639-1, its three-letter codes except ``run``, and languages of LASER and
    Tatoeba. A script or variant may also follow. Case does not matter, nor ``_`` instead of ``-``.
    """
    match = _CODE.fullmatch(text)
    if match and match[1].lower() in CODES:
        with suppress(ValueError):
            return bool(parse_language(text))
    return False


def language_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each language in a sample of texts, largest first.

    Languages are as in ``language_of``. At most 200 texts are sampled: evenly spaced ones, or the
    first if there are fewer than 400. A sample of fewer than 20 texts counts as one, whose most
    probable language is returned with its probability. The result is empty without texts.
    """
    sample = texts[:: max(1, len(texts) // SAMPLED)][:SAMPLED]
    if 0 < len(sample) < FEW:
        code, probability = identifier().classify(" ".join(sample))
        return {str(code): float(probability)}
    votes = Counter(map(language_of, sample))
    return {code: count / len(sample) for code, count in votes.most_common()}


def language_of(text: str) -> str:
    """Return the ISO 639 code of the most probable language of any text.

    Most codes have two letters. ``zxx`` stands for no language. A blank text also gets a code.
    """
    return str(identifier().classify(text)[0])


def language_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each of py3langid's labels, largest first."""
    return {str(code): float(chance) for code, chance in identifier().rank(text)}


def known_label(code: str) -> str | None:
    """Return the identifier's label for the language of a code, or None.

    It may be the label of its macrolanguage, or of another language of the macrolanguage.
    """
    known = identifier().labels
    by_base = {base_language(label): label for label in known}
    by_wider = {macrolanguage(label): label for label in known}
    base, wider = base_language(code), macrolanguage(code)
    return by_base.get(base) or by_base.get(wider) or by_wider.get(wider)


def main_language(shares: Mapping[str, float]) -> str | None:
    """Return the first language with a share of at least half, or None."""
    return next((code for code, share in shares.items() if share >= MIN_SHARE), None)


def seen_language(texts: Sequence[str]) -> str | None:
    """Return the language of at least half the texts in a sample, or None.

    It is as in ``language_of``. Of 400 or more texts, 200 evenly spaced ones count, of fewer the
    first 200. Fewer than 20 count as one, whose language needs a probability of at least half.
    """
    return main_language(language_shares(texts))


_loading = threading.Lock()


def identifier() -> Any:  # noqa: ANN401 - the library has no types
    """Return py3langid's ``LanguageIdentifier``, loaded once for all threads.

    If possible, its unpacked model is saved in ``miner.storage.cache.shared_folder``.
    """
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
    import numpy as np

    from miner.arrays import load_array

    state = packed.stat()
    path = shared_folder() / f"languages-{state.st_size}-{state.st_mtime_ns}.npy"
    if not path.exists():
        from py3langid.modelio import load_model

        parts = [np.asarray(part) for part in load_model(packed)]
        kinds = [(str(place), part.dtype, part.shape) for place, part in enumerate(parts)]
        with atomic_file(path) as unpacked:
            np.save(unpacked, np.array([tuple(parts)], dtype=np.dtype(kinds, align=True)))
    model = load_array(path, mmap_mode="r").view(np.ndarray)
    return [model[name][0] for name in model.dtype.names]
