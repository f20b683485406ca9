"""The head of inference of an encoder that learned it: two sentences' vectors to three classes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from encoder.checkpoint import read_config, replace_files

if TYPE_CHECKING:
    import torch

HEAD = "inference.safetensors"
ENCODER = "encoder"  # the checksum of the encoder that the head is of


def save_head(folder: Path, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Write a head beside the encoder that is in a folder."""
    from safetensors.torch import save

    metadata = {ENCODER: read_config(folder)["sha256"]}
    replace_files(folder, {HEAD: save(dict(tensors), metadata=metadata)})


def load_head(folder: Path) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Return what maps (u, v, |u - v|, u * v), float32 (N, 4 D), to logits (N, 3).

    Rows u and v have the length sqrt(D); classes are in the order of ``INFERENCE_LABELS``.

    Raises:
        ValueError: there is no head, or it is damaged or of another encoder.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / HEAD
    if not path.is_file():
        raise ValueError(f"{folder}: has no head of inference, as --objective nli would keep")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            weights: Any = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ValueError(f"{path}: is damaged; copy it again") from error
    if metadata.get(ENCODER) != read_config(folder)["sha256"]:
        raise ValueError(f"{path}: is of another encoder than the one beside it; copy both again")

    def logits(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        hidden = np.tanh(rows @ weights["0.weight"].T + weights["0.bias"])
        return hidden @ weights["2.weight"].T + weights["2.bias"]

    return logits
