"""Training objectives: pure functions of embeddings."""

from __future__ import annotations

import torch
from torch.nn import functional


def translation_ranking(
    source: torch.Tensor, target: torch.Tensor, *, scale: float, margin: float
) -> torch.Tensor:
    """In-batch translation ranking in both directions with an additive margin.

    Row ``i`` of ``target`` translates row ``i`` of ``source``; the other B - 1 rows are its
    negatives. The logits are ``scale * (cos(x_i, y_j) - margin * [i == j])``, and the loss is the
    mean of the softmax cross entropies over rows and over columns (Chidambaram et al. 2019,
    section 2.1, with the additive margin of Yang et al. 2019, equations 3 and 4).

    Args:
        source: float tensor of shape (B, D), unit rows.
        target: float tensor of shape (B, D), unit rows.
        scale: inverse temperature of the softmax.
        margin: subtracted from the cosine of each true pair.
    """
    cosines = source @ target.T
    logits = scale * (cosines - margin * torch.eye(len(cosines), device=cosines.device))
    labels = torch.arange(len(logits), device=logits.device)
    forward = functional.cross_entropy(logits, labels)
    backward = functional.cross_entropy(logits.T, labels)
    return (forward + backward) / 2
