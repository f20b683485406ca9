"""eval-encoder tatoeba without its command line: similarity search by language, and the means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eval.data.datasets import ISO_639_1, ISO_639_3, load_tatoeba, tatoeba_languages
from eval.data.published import TATOEBA_SOURCE, tatoeba_rate
from eval.metrics.bootstrap import SIGNED, interval, mean_samples
from eval.metrics.similarity import SearchErrors, search_errors
from eval.output import signature
from eval.table import Table
from miner.commandline import product_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder

TABLE = Table("language", ["sentences", "xx->en", "en->xx", "mean", "95% interval", "LASER"])


def run_tatoeba(
    directory: Path,
    *,
    languages: Sequence[str] | None,
    encoder_spec: str,
    tell: Callable[[str], None],
) -> dict[str, object]:
    """Run the task; the report as a record for JSON.

    Args:
        directory: holds ``tatoeba.xxx-eng.xxx`` and ``.eng``.
        languages: ISO 639-3 or 639-1 codes; None for every language in ``directory``.
        encoder_spec: for ``encoder.load_encoder``.
        tell: called with each line of the table as it is ready.

    Raises:
        ValueError: data is missing or malformed; all is loaded before anything is encoded.
    """
    from encoder import load_encoder

    names = tatoeba_languages(directory) if languages is None else list(dict.fromkeys(languages))
    texts = {name: load_tatoeba(directory, name) for name in names}
    encoder = load_encoder(encoder_spec)
    tell(TABLE.header)
    results: dict[str, SearchErrors] = {}
    published: dict[str, float | None] = {}
    samples: list[NDArray[np.float64]] = []
    for name, (foreign, english) in texts.items():
        errors = language_errors(encoder, name, foreign, english)
        samples.append(error_samples(errors, stream=len(samples)))
        results[name] = errors
        published[name] = tatoeba_rate(ISO_639_3.get(name, name), errors)
        tell(TABLE.row(name, *_cells(errors), interval(samples[-1]), published[name]))
    mean = _mean(list(results.values()))
    mean_interval = interval(np.mean(samples, axis=0))
    theirs = _mean_published(list(published.values()))
    if len(results) > 1:
        tell(TABLE.row("mean", None, *mean.values(), mean_interval, theirs))
    signed = signature(
        "tatoeba",
        {
            "languages": ",".join(names),
            "sentences": sum(errors.sentences for errors in results.values()),
            "encoder": encoder.name,
            "similarity": "cosine",
            "interval": SIGNED,
            "v": product_version(),
        },
    )
    tell(signed)
    tell(f"LASER: {TATOEBA_SOURCE}")
    return {
        "task": "tatoeba",
        "languages": {
            name: {
                "sentences": errors.sentences,
                **_mean([errors]),
                "interval": interval(sampled),
                "published": published[name],
            }
            for (name, errors), sampled in zip(results.items(), samples, strict=True)
        },
        "mean": {**mean, "interval": mean_interval, "published": theirs},
        "published_source": TATOEBA_SOURCE,
        "signature": signed,
    }


def language_errors(
    encoder: Encoder, language: str, foreign: Sequence[str], english: Sequence[str]
) -> SearchErrors:
    """Errors of the search by cosine between sentences of a language and their translations.

    Raises:
        ValueError: there are no sentences.
    """
    return search_errors(
        encoder.for_language(ISO_639_1.get(language, language)).encode(foreign),
        encoder.for_language("en").encode(english),
    )


def error_samples(errors: SearchErrors, *, stream: int) -> NDArray[np.float64]:
    """Resampled mean error rates; the unit is a pair, with its errors of both directions."""
    return mean_samples((errors.forward.astype(np.float64) + errors.backward) / 2, stream=stream)


def _cells(errors: SearchErrors) -> tuple[int, float, float, float]:
    return errors.sentences, errors.forward_rate, errors.backward_rate, errors.rate


def _mean(results: Sequence[SearchErrors]) -> dict[str, float]:
    """Mean error rates over the languages, each counting the same; fractions from 0 to 1."""
    columns = zip(*(_cells(errors)[1:] for errors in results), strict=True)
    names = ("xx_en", "en_xx", "mean")
    return {name: sum(values) / len(values) for name, values in zip(names, columns, strict=True)}


def _mean_published(rates: Sequence[float | None]) -> float | None:
    """The mean, where every language has a figure."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if len(known) == len(rates) else None
