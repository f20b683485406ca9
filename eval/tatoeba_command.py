"""eval-encoder tatoeba without its command line: similarity search by language, and the means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from eval.datasets import load_tatoeba, tatoeba_languages
from eval.encoder_tasks import translation_errors
from eval.report import (
    TATOEBA_HEADER,
    signature,
    tatoeba_mean,
    tatoeba_mean_row,
    tatoeba_record,
    tatoeba_row,
)
from miner.commandline import product_version


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
    tell(TATOEBA_HEADER)
    results = {}
    for name, (foreign, english) in texts.items():
        results[name] = translation_errors(foreign, english, encoder=encoder)
        tell(tatoeba_row(name, results[name]))
    if len(results) > 1:
        tell(tatoeba_mean_row(list(results.values())))
    signed = signature(
        "tatoeba",
        {
            "languages": ",".join(names),
            "sentences": sum(errors.sentences for errors in results.values()),
            "encoder": encoder.name,
            "similarity": "cosine",
            "v": product_version(),
        },
    )
    tell(signed)
    return {
        "task": "tatoeba",
        "languages": {name: tatoeba_record(errors) for name, errors in results.items()},
        "mean": tatoeba_mean(list(results.values())),
        "signature": signed,
    }
