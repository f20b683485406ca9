"""How far each text is from being in another language than its corpus.

The language model is py3langid's: a naive Bayes classifier of byte n-grams, which an automaton
finds. It is compiled here, with weights as whole numbers, so that sums are exact. Axes: ``F``
n-grams, ``L`` languages, ``P`` texts.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.languages import identifier

STEP = 1 / 11  # of a log probability: all weights less their mean fit int8
LOG = 1 << 8  # parts of a logarithm: 10,000 n-grams fit int32
COUNTED = 256  # occurrences of one n-gram in a text
ROWS = 1 << 13  # of weights that are made whole at a time

# Languages of one macrolanguage (ISO 639-3), and varieties: texts in them differ in few words.
_CLOSE = (
    *({"no", "nb", "nn"}, {"zh", "yue", "wuu"}, {"hr", "sr", "bs"}, {"id", "ms"}),
    *({"ar", "arz", "ary"}, {"es", "ext", "an"}, {"en", "pcm"}, {"fa", "prs"}),
)


class _Model(NamedTuple):
    moves: NDArray[np.uint32]
    rows: NDArray[np.int64]
    found: NDArray[np.int32]
    weights: NDArray[np.int8]
    priors: NDArray[np.int32]
    logs: NDArray[np.int32]


@cache
def _model() -> _Model:
    known = identifier()
    weights = np.empty(known.nb_ptc.shape, dtype=np.int8)
    for start in range(0, len(weights), ROWS):
        part = known.nb_ptc[start : start + ROWS].astype(np.float64)
        weights[start : start + ROWS] = np.rint((part - part.mean(axis=1, keepdims=True)) / STEP)
    return _Model(
        moves=np.frombuffer(known.tk_nextmove, dtype=np.uint32),
        rows=np.array(known.tk_row, dtype=np.int64) << 8,
        found=np.array(known.tk_output, dtype=np.int32),
        weights=weights,
        priors=np.rint(known.nb_pc.astype(np.float64) / STEP * LOG).astype(np.int32),
        logs=np.rint(np.log1p(np.arange(COUNTED)) * LOG).astype(np.int32),
    )


def own_language(texts: Sequence[str], language: str | None) -> NDArray[np.float32]:
    """Measure how far ``language`` exceeds all others in texts, float32 (P,).

    ``language`` is a label of py3langid, such as ``de``. Close languages, such as hr and sr, count
    as one. The result is a difference of log probabilities, divided by the square root of the
    number of bytes, negative if another language is likelier, and 0 for a text without known
    n-grams. All are NaN if ``language`` is None, or py3langid knows neither it nor a close one.
    """
    own = _columns(language)
    if not own.any():
        return np.full(len(texts), np.nan, dtype=np.float32)
    from miner.judge.compiled import beat_languages  # loads Numba

    encoded = [_bytes_of(text) for text in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    beats = np.empty(len(texts))
    joined = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    beat_languages(joined, ends, _model(), own, beats)
    lengths = np.sqrt(np.maximum(np.diff(ends), 1))
    return (beats * (STEP / LOG) / lengths).astype(np.float32)


def _columns(language: str | None) -> NDArray[np.bool_]:
    """Return a mask (L,) of languages that count as ``language``, or (0,)."""
    if language is None:
        return np.zeros(0, dtype=np.bool_)
    own = next((close for close in _CLOSE if language in close), {language})
    return np.array([name in own for name in identifier().nb_classes])


def _bytes_of(text: str) -> bytes:
    lowered = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", lowered).encode(errors="surrogatepass")
