"""Uses torch's private names, here alone; versions may lack one, and then do without."""

import torch
from torch import Tensor


def has_int8_products() -> bool:
    """Return whether the processor has instructions for products of int8 (AVX-512 VNNI)."""
    return _says("_is_vnni_supported") and hasattr(torch, "_int_mm")


def has_bfloat16_products() -> bool:
    """Return whether the processor has instructions for products of bfloat16 (AVX-512 BF16)."""
    return _says("_is_avx512_bf16_supported")


def int8_product(left: Tensor, right: Tensor, *, out: Tensor) -> None:
    """Write the product of int8 (N, K) and (K, M) to int32 ``out`` (N, M)."""
    if hasattr(torch, "_int_mm"):
        torch._int_mm(left, right, out=out)
    else:
        torch.matmul(left.int(), right.int(), out=out)


def sparse_parts(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (N,) and their values (N, D) of a sparse gradient, coalesced or not."""
    return gradient._indices()[0], gradient._values()


def _says(question: str) -> bool:
    return bool(getattr(torch.cpu, question, lambda: False)())
