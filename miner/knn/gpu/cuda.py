"""Generate candidates in both directions on CUDA devices (docs/gpu.md)."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import torch

from miner.knn.gpu import keys
from miner.knn.gpu.products import product
from miner.knn.gpu.sweep import search

logger = logging.getLogger(__name__)

# Error bound of a device's product of unit rows, per dimension. Tensor cores add 16 terms to a sum
# in one step, each truncated at 2**-23 of the largest or below, as is the sum (Fasi et al. 2021,
# "Numerical behavior of NVIDIA tensor cores"): 18 / 16 * 2**-23, and three quarters more for
# partial sums of libraries.
ROUNDING = 2.0**-22


class DeviceError(RuntimeError):
    """An error of a device that could not finish its search, with the reason."""


def usable_devices() -> list[torch.device]:
    """Return CUDA devices with correct bfloat16 products, and log the others."""
    usable = []
    for number in range(torch.cuda.device_count()):
        device = torch.device("cuda", number)
        if fault := _fault(device):
            logger.info("%s is not used: %s", device, fault)
        else:
            usable.append(device)
    return usable


def _fault(device: torch.device) -> str:
    # Test products are integers of up to 11 bits, which float32 represents and bfloat16 does not.
    x = (torch.arange(64 * 48) % 19 - 9).reshape(64, 48)
    try:
        rows = x.to(device, torch.bfloat16)
        products = product(rows, rows).cpu()
    except RuntimeError as error:
        return _reason(error)
    return "" if torch.equal(products, (x @ x.T).float()) else "its products are wrong"


def generate_on_devices(
    source: torch.Tensor,
    target: torch.Tensor,
    *,
    kept: int,
    devices: Sequence[torch.device],
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[keys.DeviceCandidates, keys.DeviceCandidates]:
    """Return the candidates of all sources and of all targets.

    They have the ``kept`` largest products of each row, or all, summed in float32 in the device's
    order (``ROUNDING``), (N, min(kept, M)) and (M, min(kept, N)). Devices share the sources.

    Args:
        source: bfloat16, float16 or float32 (N, D), finite, in host memory. float32 has no fused
            kernel, and a tenth of the speed or less.
        target: (M, D), of the same dtype, finite, in host memory. N and M are below 2**31.
        kept: candidates per row, at least 1.
        devices: CUDA devices, at least one.
        progress: called with numbers of products, which sum to N * M, by one thread at a time.

    Raises:
        DeviceError: A device failed, or lacks the memory for a small search.
    """
    assert source.shape[1] == target.shape[1]
    assert source.dtype == target.dtype
    assert max(len(source), len(target)) <= keys.MAX_ROWS
    assert kept > 0
    stop, lock = threading.Event(), threading.Lock()

    def report(products: int) -> None:
        with lock:
            progress(products)

    both = partial(search, source, target, kept=kept, progress=report, stop=stop)

    def search_share(device: torch.device, share: range) -> tuple[torch.Tensor, torch.Tensor]:
        with _failures_of(device):
            if device.type == "cuda":
                torch.cuda.set_device(device)  # of this thread, for Triton
            return both(share=share, device=device)

    bounds = [len(source) * number // len(devices) for number in range(len(devices) + 1)]
    with ThreadPoolExecutor(len(devices)) as pool:
        searches = [
            pool.submit(search_share, device, range(*share))
            for device, share in zip(devices, pairwise(bounds), strict=True)
        ]
        try:
            for done in as_completed(searches):
                done.result()
        finally:
            stop.set()  # after a failure or an interrupt, other devices stop after their cell
    results = [done.result() for done in searches]
    with _failures_of(devices[0]):
        forward = torch.cat([share.cpu() for share, _ in results])
        shares = [share.to(devices[0]) for _, share in results]
        backward = keys.best(shares, min(kept, len(source))).cpu()
        sources = keys.device_candidates(forward, of=len(target))
        return sources, keys.device_candidates(backward, of=len(source))


@contextmanager
def _failures_of(device: torch.device) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise DeviceError(f"{device}: {_reason(error)}") from error


def _reason(error: RuntimeError) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]
