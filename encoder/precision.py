"""Networks made ready for a device and a precision."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

Precision = Literal["float32", "bf16", "int8", "auto"]


class Ready:
    """A network on its device, in its precision; satisfies ``encoder.network.Network``."""

    def __init__(self, network: nn.Module, *, precision: str, device: torch.device) -> None:
        self.dim = int(network.dim)  # type: ignore[arg-type]
        self.precision = precision
        self.device = device
        self._network = network.to(device)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Vectors (B, D) of sentences of one length, ids (B, T)."""
        return self._network(ids)


def ready(network: nn.Module, precision: Precision) -> Ready:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Ready(network, precision=precision, device=device)
