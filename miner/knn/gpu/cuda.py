"""Candidates in both directions from CUDA devices, each product computed once: see docs/gpu.md."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial

import torch

from miner.knn.gpu import keys
from miner.knn.gpu.products import product
from miner.knn.gpu.sweep import search

logger = logging.getLogger(__name__)

# A device's product of two unit rows errs by less than this for each dimension. Tensor cores sum 16
# terms and what there was before in one step, each cut off 2**-23 below the largest or lower, as is
# the sum (Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores"): 18 / 16 * 2**-23, and
# three quarters more for what a library may add up in parts.
ROUNDING = 2.0**-22


class DeviceError(RuntimeError):
    """A device could not finish its search; the message says which and why."""


def usable_devices() -> list[torch.device]:
    """Return the CUDA devices that multiply bfloat16 rightly; the log says what others do wrong."""
    usable = []
    for number in range(torch.cuda.device_count()):
        device = torch.device("cuda", number)
        if fault := _fault(device):
            logger.info("%s is not used: %s", device, fault)
        else:
            usable.append(device)
    return usable


def _fault(device: torch.device) -> str:
    """Return what is wrong with products on this device; empty if nothing.

    They are integers of up to 11 bits, which float32 holds and bfloat16 does not.
    """
    x = (torch.arange(64 * 48) % 19 - 9).reshape(64, 48)
    try:
        rows = x.to(device, torch.bfloat16)
        found = product(rows, rows).cpu()
    except RuntimeError as error:
        return _reason(error)
    return "" if torch.equal(found, (x @ x.T).float()) else "its products are wrong"


def generate_on_devices(
    source: torch.Tensor,
    target: torch.Tensor,
    *,
    kept: int,
    devices: Sequence[torch.device],
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[keys.DeviceCandidates, keys.DeviceCandidates]:
    """Return candidates of each source among the targets, and of each target among the sources.

    They are the ``kept`` largest products of each row, or all, as the devices compute them: exact
    products of the numbers given, summed in float32 in the device's own order (see ``ROUNDING``).
    Costs 2 * N * M * D operations. Each device takes an equal share of the sources, and holds it
    and all targets, or else blocks of them that are copied again as the search moves on. Sides are
    bfloat16, float16 or float32 (N, D) and (M, D), finite, in host memory; float32 goes without the
    fused kernel, at a tenth of the speed or less. ``progress`` is called with the number of
    products computed after each cell of the matrix, by one thread at a time.

    A DeviceError says that a device failed, or has not enough memory for even a small search.
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
    bounds = [len(source) * number // len(devices) for number in range(len(devices) + 1)]
    with ThreadPoolExecutor(len(devices)) as pool:
        searches = [
            pool.submit(_search_share, both, device, range(start, stop))
            for device, start, stop in zip(devices, bounds, bounds[1:], strict=False)
        ]
        try:
            for done in as_completed(searches):
                done.result()
        finally:
            stop.set()  # if one failed or the user interrupts, the others end after their cell
    found = [done.result() for done in searches]
    with _failures_of(devices[0]):
        forward = torch.cat([share.cpu() for share, _ in found])
        shares = [share.to(devices[0]) for _, share in found]
        backward = keys.best(shares, min(kept, len(source))).cpu()
        one = keys.device_candidates(forward, of=len(target))
        return one, keys.device_candidates(backward, of=len(source))


def _search_share(
    both: Callable[..., tuple[torch.Tensor, torch.Tensor]], device: torch.device, share: range
) -> tuple[torch.Tensor, torch.Tensor]:
    with _failures_of(device):
        if device.type == "cuda":
            torch.cuda.set_device(device)  # of this thread: Triton launches there
        return both(share=share, device=device)


@contextmanager
def _failures_of(device: torch.device) -> Iterator[None]:
    """Raise errors of torch, CUDA and its libraries as errors of the device."""
    try:
        yield
    except RuntimeError as error:
        raise DeviceError(f"{device}: {_reason(error)}") from error


def _reason(error: RuntimeError) -> str:
    """Return an error's first line; CUDA's go on with advice for its developers."""
    return (str(error) or type(error).__name__).partition("\n")[0]
