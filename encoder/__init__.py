"""Text to vectors: multilingual sentence encoders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BUNDLED", "Encoder", "load_encoder"]

BUNDLED = "mini"


class Encoder(Protocol):
    """What encodes sentences of any language into one space.

    ``name`` identifies the weights (two encoders with equal names give equal vectors); ``dim`` is
    the number of dimensions D.
    """

    name: str
    dim: int

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 (S, D); the zero vector for a sentence without any token."""
        ...


def load_encoder(spec: str = BUNDLED) -> Encoder:
    """Load an encoder.

    Args:
        spec: ``mini``, the bundled encoder, or the path of a folder written by ``train-encoder``.

    Raises:
        ValueError: no such encoder, or its files are damaged.
    """
    from encoder.checkpoint import load_bag_encoder

    if spec == BUNDLED:
        return load_bag_encoder(Path(__file__).parent / "assets" / BUNDLED, name=BUNDLED)
    folder = Path(spec)
    if not folder.is_dir():
        raise ValueError(
            f"encoder {spec!r} is neither {BUNDLED!r} (the bundled encoder) "
            "nor a folder made by train-encoder"
        )
    return load_bag_encoder(folder, name=folder.resolve().name)
