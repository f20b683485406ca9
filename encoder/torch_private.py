"""The only uses of torch's private names."""

import torch
from torch import Tensor


def has_bfloat16_products() -> bool:
    """Return whether torch reports that the CPU has AVX-512 BF16."""
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def int8_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply int8 (N, K) and (K, M) exactly, on a CPU, to int32 (N, M)."""
    if hasattr(torch, "_int_mm"):
        return torch._int_mm(left, right)
    return torch.matmul(left.int(), right.int())


def sparse_parts(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return a sparse gradient's rows (N,), maybe repeated, and values (N, D)."""
    return gradient._indices()[0], gradient._values()
