"""Encoders of the sentence-transformers library, an optional extra."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Precision

# E5 models are trained with a prefix on every text; for texts of equal standing it is this one
# (Wang et al. 2024, "Multilingual E5 Text Embeddings", section 2).
E5 = re.compile(r"(^|[-_])e5[-_](?!.*instruct)")
E5_PROMPT = "query: "


class SentenceTransformerEncoder:
    """Encodes with a model of sentence-transformers; satisfies ``encoder.Encoder``."""

    def __init__(self, model: Any, *, name: str, prompt: str | None) -> None:  # noqa: ANN401
        self.name = name
        self.dim = len(model.encode("", convert_to_numpy=True))
        self._model = model
        self._prompt = prompt

    def for_language(self, language: str | None) -> SentenceTransformerEncoder:
        """Itself: its tokeniser does the same to all languages."""
        return self

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        """Vectors, float32 (S, D), of unit length or as the model gives them."""
        if not len(sentences):
            return np.zeros((0, self.dim), dtype=np.float32)
        vectors = self._model.encode(
            list(sentences),
            prompt=self._prompt,
            normalize_embeddings=normalize,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)


def load_sentence_transformer(place: str, *, precision: Precision) -> SentenceTransformerEncoder:
    """Load a model by its name on the Hugging Face hub, or from a folder. No code in it is run.

    Raises:
        ModuleNotFoundError: sentence-transformers is not installed.
        ValueError: there is no such model, or it cannot run in this precision.
    """
    import sentence_transformers

    if precision == "int8":
        raise ValueError(f"encoder 'st:{place}' runs in float32 or bf16, not in int8")
    try:
        model = sentence_transformers.SentenceTransformer(place, trust_remote_code=False)
    except Exception as error:  # the library raises what the hub, its files or its parts raise
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"encoder 'st:{place}' cannot be loaded: {reason}") from error
    model.eval()
    if precision == "bf16":
        model.bfloat16()
    prompt = E5_PROMPT if E5.search(Path(place).name) else None
    short = f"{Path(place).name}@{_digest(model)[:12]}"
    return SentenceTransformerEncoder(
        model, name=short + ("-bf16" if precision == "bf16" else ""), prompt=prompt
    )


def _digest(model: Any) -> str:  # noqa: ANN401
    """A hash of the weights, for a name on the hub does not say which revision was loaded."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
