"""Encoders of the sentence-transformers library, an optional extra."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import Precision
from encoder.base import BaseEncoder

# E5 models are trained with a prefix on every text; for texts of equal standing it is this one
# (Wang et al. 2024, "Multilingual E5 Text Embeddings", section 2).
E5 = re.compile(r"(^|[-_])e5[-_](?!.*instruct)")
E5_PROMPT = "query: "
HUB_TIMEOUT = 5  # seconds

Model = Any  # of the library, which is loaded late


class SentenceTransformerEncoder(BaseEncoder):
    """Encodes with a model of sentence-transformers; satisfies ``encoder.Encoder``."""

    def __init__(
        self, model: Model, *, name: str, prompt: str | None, precision: Precision
    ) -> None:
        self.name, self.precision = name, precision
        self.dim = len(model.encode("", convert_to_numpy=True))
        self._model, self._prompt = model, prompt

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
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
    if precision == "int8":
        raise ValueError(f"encoder 'st:{place}' runs in float32 or bfloat16, not in int8")
    try:
        model = _load(place)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # the library raises what the hub, its files or its parts raise
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"encoder 'st:{place}' cannot be loaded: {reason}") from error
    model.eval()
    chosen: Precision = "float32" if precision == "auto" else precision
    if chosen == "bfloat16":
        model.bfloat16()
    prompt = E5_PROMPT if E5.search(Path(place).name) else None
    name = f"{Path(place).name}@{_digest(model)[:12]}{'-bfloat16' * (chosen == 'bfloat16')}"
    return SentenceTransformerEncoder(model, name=name, prompt=prompt, precision=chosen)


def _load(place: str) -> Model:
    """Load what is on this machine; fetch what is not, from a hub that answers."""
    from huggingface_hub import HfApi, snapshot_download

    is_here = Path(place).exists()
    try:
        if not is_here:
            snapshot_download(place, local_files_only=True)
        return _model(place, local_files_only=True)
    except (OSError, ValueError):
        if is_here:
            raise
    try:  # once: the library asks for each of a model's files six times, which takes over a minute
        HfApi().model_info(place, timeout=HUB_TIMEOUT)
    except Exception as error:
        raise ValueError(
            f"it is no folder, was not fetched before, and the Hugging Face hub says: {error}"
        ) from error
    return _model(place)


def _model(place: str, **options: bool) -> Model:
    import sentence_transformers  # takes seconds

    return sentence_transformers.SentenceTransformer(place, trust_remote_code=False, **options)


def _digest(model: Model) -> str:
    """Return a hash of the weights: a name on the hub does not say which revision it is."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
