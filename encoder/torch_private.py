"""Uses torch's private names, here alone; versions may lack one, and then do without."""

import torch
from torch import Tensor


def has_bfloat16_products() -> bool:
    """Return whether the processor has instructions for products of bfloat16 (AVX-512 BF16)."""
    return _says("_is_avx512_bf16_supported")


def int8_product(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of int8 (N, K) and (K, M): int32 (N, M)."""
    if hasattr(torch, "_int_mm"):
        return torch._int_mm(left, right)
    return torch.matmul(left.int(), right.int())


def sparse_parts(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (N,) and their values (N, D) of a sparse gradient, coalesced or not."""
    return gradient._indices()[0], gradient._values()


def _says(question: str) -> bool:
    return bool(getattr(torch.cpu, question, lambda: False)())
