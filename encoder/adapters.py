"""Encoders of the sentence-transformers library, an optional extra."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from encoder import Precision
from encoder.base import BaseEncoder
from encoder.rows import Matrix

# E5 models are trained with a prefix on every text. For symmetric tasks it is this one (Wang et al.
# 2024, "Multilingual E5 Text Embeddings", section 2).
E5 = re.compile(r"(^|[-_])e5[-_](?!.*instruct)")
HUB_TIMEOUT = 5  # seconds

Model = Any  # a model of the library, which is imported late


class _NotFoundError(ValueError):
    """The model is not a folder, and the hub lacks it or cannot be reached."""


class SentenceTransformerEncoder(BaseEncoder):
    """An encoder that runs a model of sentence-transformers.

    ``place`` is a folder, or a name on the Hugging Face hub, whose model is downloaded if missing.
    Its code is not run. ``auto`` is float32. A model with ``e5-`` in its name, without ``instruct``
    later, gets the prefix ``query: `` on each sentence. ValueError says that the model cannot be
    loaded, or ``precision`` is int8, and ModuleNotFoundError that a package is not installed.
    """

    def __init__(self, place: str, precision: Precision) -> None:
        if precision == "int8":
            raise ValueError(
                f"encoder 'st:{place}' cannot run in int8; use --precision float32 or bfloat16"
            )
        try:
            self._model = _load(place)
        except (ModuleNotFoundError, _NotFoundError):
            raise
        except Exception as error:  # the library passes on any error of its parts
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"encoder 'st:{place}' cannot be loaded ({reason}); check that it is a model of "
                "sentence-transformers, and complete"
            ) from error
        self._model.eval()
        self.precision: Precision = "float32" if precision == "auto" else precision
        if self.precision == "bfloat16":
            self._model.bfloat16()
        name, suffix = Path(place).name, "-bfloat16" * (self.precision == "bfloat16")
        self.name = f"{name}@{_hash_weights(self._model)[:12]}{suffix}"
        self.dim = len(self._model.encode("", convert_to_numpy=True))
        self._prompt = "query: " if E5.search(name) else None

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
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


def _load(place: str) -> Model:
    from huggingface_hub import HfApi, snapshot_download

    is_local = Path(place).exists()
    try:
        if not is_local:
            snapshot_download(place, local_files_only=True)
        return _model(place, local_files_only=True)
    except (OSError, ValueError):
        if is_local:
            raise
    try:  # once, because the library tries each file six times, for over a minute
        HfApi().model_info(place, timeout=HUB_TIMEOUT)
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        reason = "and the Hugging Face hub cannot be reached; check the network"
        if status in (401, 404) or isinstance(error, ValueError):  # of an impossible name
            reason = "nor a public model on the Hugging Face hub; check its name"
        raise _NotFoundError(f"encoder 'st:{place}' is not a folder, {reason}") from error
    return _model(place)


def _model(place: str, **options: bool) -> Model:
    import sentence_transformers  # takes seconds

    return sentence_transformers.SentenceTransformer(place, trust_remote_code=False, **options)


def _hash_weights(model: Model) -> str:
    import torch

    digest = hashlib.sha256()  # because a name on the hub does not identify the revision
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
