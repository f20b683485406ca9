"""Training objectives: pure functions of embeddings."""

from __future__ import annotations

import torch
from torch.nn import functional


def translation_ranking(
    source: torch.Tensor,
    target: torch.Tensor,
    *,
    scale: float,
    margin: float,
    negatives: torch.Tensor | None = None,
) -> torch.Tensor:
    """In-batch translation ranking in both directions with an additive margin.

    Row ``i`` of ``target`` translates row ``i`` of ``source``; the other B - 1 rows are its
    negatives. The logits are ``scale * (cos(x_i, y_j) - margin * [i == j])``, and the loss is the
    mean of the softmax cross entropies over rows and over columns (Chidambaram et al. 2019,
    section 2.1, with the additive margin of Yang et al. 2019, equations 3 and 4). Hard negatives
    are further rows that a source is ranked against (Chidambaram et al. 2019, section 2.2).

    Args:
        source: float tensor of shape (B, D), unit rows.
        target: float tensor of shape (B, D), unit rows.
        scale: inverse temperature of the softmax.
        margin: subtracted from the cosine of each true pair.
        negatives: float tensor of shape (B, H, D), unit rows: H wrong translations of each source.
    """
    # Under autocast this product is bfloat16, five times as fast where the hardware has it; its
    # rounding (0.04 in a logit at scale 20) is below the noise of the negatives.
    logits = ((scale * source) @ target.T).float()
    logits.diagonal().sub_(scale * margin)
    # No logit is above the scale, so one exponential serves both softmaxes without overflow, and
    # the matrix is never transposed: that would cost more than the product.
    exponentials = (logits - scale).exp()
    rows, columns = exponentials.sum(dim=1), exponentials.sum(dim=0)
    if negatives is not None:
        hard = torch.einsum("bd,bhd->bh", scale * source, negatives).float()
        rows = rows + (hard - scale).exp().sum(dim=1)
    normalisers = (rows.log() + columns.log()) / 2 + scale
    return (normalisers - logits.diagonal()).mean()


def sequence_translation(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy of the tokens of translations, in nats: the logarithm of the perplexity.

    What LASER is trained by (Artetxe & Schwenk 2019, section 3.2).

    Args:
        logits: float tensor of shape (N, V), of each token given those before it.
        tokens: int64 tensor of shape (N,), the right ones.
    """
    return functional.cross_entropy(logits.float(), tokens)


def distillation(
    source: torch.Tensor,
    target: torch.Tensor,
    teacher_source: torch.Tensor,
    teacher_target: torch.Tensor,
) -> torch.Tensor:
    """One minus the mean cosine of a student's vectors of a pair to its teacher's vectors of it.

    Both sides are drawn to both of the teacher's vectors, so that what these differ in is averaged
    out (Reimers & Gurevych 2020, equation 1, with the cosine loss of Heffernan et al. 2022).

    Args:
        source: float tensor of shape (B, D), unit rows, as the other three.
        target: the student's vectors of the translations.
        teacher_source: the teacher's vectors of the sources.
        teacher_target: the teacher's vectors of the translations.
    """
    return 1 - ((source + target) * (teacher_source + teacher_target)).sum(dim=1).mean() / 4
