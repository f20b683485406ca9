"""What tasks on aligned texts have in common: the texts, the encoder, most of a signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.data.aligned import AlignedTexts, english_of, load_aligned
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import SIGNED
from eval.output import signature
from miner.commandline import product_version

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from encoder import Encoder


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Texts to measure ``encoder`` on; ``english`` is one of their languages."""

    data: AlignedTexts
    english: str
    encoder: Encoder

    @property
    def others(self) -> list[str]:
        """The languages but English."""
        return [language for language in self.data.languages if language != self.english]

    def vectors(self, language: str) -> NDArray[np.float32]:
        """The sentences of a language, encoded: float32 (N, D)."""
        return self.encode(self.data.texts[language], language)

    def encode(self, sentences: Sequence[str], language: str) -> NDArray[np.float32]:
        """Sentences of a language, encoded: float32 (N, D)."""
        return self.encoder.for_language(language).encode(sentences)

    def signature(self, task: str, **fields: object) -> str:
        """A signature with what all tasks on aligned texts have in common."""
        common = {
            "languages": ",".join(self.data.languages),
            "sentences": len(self.data.texts[self.english]),
            "sha256": fingerprint(*self.data.files.values()),
            "encoder": self.encoder.name,
        }
        rest = {"interval": SIGNED, "v": product_version()}
        return signature(task, common | fields | rest)


def load(directory: Path, languages: Sequence[str] | None, encoder_spec: str) -> Loaded:
    """Texts of ``languages`` (None: all) and of English, and the encoder.

    Raises:
        ValueError: data is missing or malformed, there is no such encoder, or nothing but English.
    """
    from encoder import load_encoder

    known = load_aligned(directory)
    english = english_of(known.languages, directory)
    asked = known.languages if languages is None else languages
    data = load_aligned(directory, [*asked, english])
    if data.languages == [english]:
        raise ValueError(f"{directory}: nothing to find {english!r} sentences from but themselves")
    return Loaded(data=data, english=english, encoder=load_encoder(encoder_spec))
