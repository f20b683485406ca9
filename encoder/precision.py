"""Networks made ready for a device, in float32 or in a precision that is faster there."""

import copy
import logging

import torch
from torch import Tensor, nn
from torch.nn import functional

from encoder import Precision, torch_private
from encoder.base import MIN_COSINE
from encoder.laser.bilstm import BiLSTM
from encoder.network import Ready, embed_tokens
from encoder.tokenizer import Tokens

logger = logging.getLogger(__name__)


def ready(network: nn.Module, precision: Precision, sample: Tokens) -> Ready:
    """Put a network on the GPU, where there is one, and into a precision.

    ``auto`` is the first of int8 and bfloat16 for which the processor has instructions and in which
    every sentence of the sample keeps its vector's direction (``MIN_COSINE``), else float32. So
    it depends on the machine's kind and the weights, not on what else the machine does.

    Raises:
        ValueError: the network has no such precision here.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if precision != "auto":
        return _in_precision(network, precision, device)
    exact = _in_precision(network, "float32", device)
    expected = _vectors(exact, sample)
    for candidate in _fast_here(network, device):
        found = _in_precision(network, candidate, device)
        cosine = functional.cosine_similarity(_vectors(found, sample), expected).min().item()
        logger.debug("precision %s: least cosine to float32 %.6f", candidate, cosine)
        if cosine >= MIN_COSINE:
            return found
    return exact


def _fast_here(network: nn.Module, device: torch.device) -> list[Precision]:
    if device.type == "cuda":
        return ["bfloat16"]
    fast: list[Precision] = []
    if isinstance(network, BiLSTM) and torch_private.has_int8_products():
        fast.append("int8")
    if torch_private.has_bfloat16_products():
        fast.append("bfloat16")
    return fast


def _in_precision(network: nn.Module, precision: Precision, device: torch.device) -> Ready:
    if precision == "int8":
        if not isinstance(network, BiLSTM) or device.type != "cpu":
            raise ValueError(
                "int8 is for LASER1 and LASER2 on processors; choose float32, bfloat16 or auto"
            )
        from encoder.laser.int8 import Int8BiLSTM

        return Ready(Int8BiLSTM(network), precision=precision, device=device)
    if precision == "bfloat16":  # of a copy: the conversion is in place
        network = copy.deepcopy(network).bfloat16()
    return Ready(network, precision=precision, device=device)


def _vectors(network: Ready, sample: Tokens) -> Tensor:
    vectors = torch.empty(len(sample), network.dim)
    embed_tokens(network, sample, out=vectors)
    return vectors
