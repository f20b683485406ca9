"""Figures that others published for the very same task: same files, same measure.

What is only alike is left out. (MTEB's "BUCC" is retrieval of pairs known to be there, not mining.)
"""

from __future__ import annotations

from importlib.resources import files

from eval.metrics.similarity import SearchErrors

TATOEBA_SOURCE = (
    "Artetxe & Schwenk 2019, Massively Multilingual Sentence Embeddings for Zero-Shot "
    "Cross-Lingual Transfer and Beyond, TACL 7, tables 1 and 9"
)
TATOEBA_FILE = "tatoeba-artetxe-schwenk-2019.tsv"


def tatoeba_published() -> dict[str, tuple[int, float, float]]:
    """Sentences and error rates (xx to en, en to xx; 0 to 1) of LASER, by ISO 639-3 code."""
    text = files("eval").joinpath("assets", TATOEBA_FILE).read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[2:])
    return {
        code: (int(sentences), float(xx_en) / 100, float(en_xx) / 100)
        for code, sentences, xx_en, en_xx in rows
    }


def tatoeba_rate(code: str, errors: SearchErrors) -> float | None:
    """LASER's mean error rate; None where it was not measured on as many sentences."""
    sentences, xx_en, en_xx = tatoeba_published().get(code, (0, 0.0, 0.0))
    return (xx_en + en_xx) / 2 if sentences == errors.sentences else None
