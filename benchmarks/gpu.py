"""Measure the share of a GPU's bfloat16 rate that the search reaches.

    python benchmarks/gpu.py --rows 262144 --dim 1024

measures on the first usable CUDA device, one after the other and each after a run to warm up: the
bare product; the fused kernel alone in each of its tilings, with floors that let through as many
hits as the second half of the columns would give; the whole search with the fused kernel and
without; and FAISS's flat search in float16, both directions, if the installed FAISS has a GPU part
that works. All in operations of one product (2 * N * M * D) a second, and as a share of the first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from unittest import mock

import numpy as np
import torch

from miner.knn.gpu import sweep
from miner.knn.gpu.cuda import generate_on_devices, usable_devices

CELL = 65_536  # rows and columns for the kernel alone


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of the second of two runs."""
    for _ in range(2):
        torch.cuda.synchronize(device)
        start = time.perf_counter()
        work()
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


def unit_vectors(rows: int, dim: int, seed: int) -> torch.Tensor:
    vectors = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(vectors).bfloat16()


def kernel_times(x: torch.Tensor, y: torch.Tensor, kept: int) -> dict[str, float]:
    """Return the seconds of each tiling, for typical numbers of hits."""
    from miner.knn.gpu import fused

    # Products of random unit vectors are normal with a deviation of D ** -0.5.
    above = statistics.NormalDist(sigma=x.shape[1] ** -0.5).inv_cdf(1 - kept / len(y))
    floors = torch.full((len(x),), above, device=x.device)
    times = {}
    for tiling in fused.TILINGS:
        fault = fused.fault(tiling, x.device, x.dtype)
        name = f"kernel {tiling.rows} x {tiling.columns}"
        if fault:
            print(f"{name}: {fault}")
            continue
        find = partial(
            fused.find_hits,
            *(x, y, floors, floors),
            first_row=0,
            first_column=0,
            capacity=4 * kept,
            tiling=tiling,
        )
        times[name] = seconds(find, x.device)
    return times


def faiss_seconds(source: torch.Tensor, target: torch.Tensor, kept: int, device: int) -> float:
    """Return the seconds of two searches by FAISS's float16 flat index.

    Raises:
        ImportError: FAISS has no GPU part.
        RuntimeError: FAISS does not support this GPU.
    """
    import faiss

    if not hasattr(faiss, "StandardGpuResources"):
        raise ImportError("this FAISS has no GPU part")
    resources = faiss.StandardGpuResources()
    options = faiss.GpuIndexFlatConfig()
    options.useFloat16, options.device = True, device
    sides = [side.float().numpy() for side in (source, target)]

    def both() -> None:
        for queries, base in (sides, sides[::-1]):
            index = faiss.GpuIndexFlatIP(resources, base.shape[1], options)
            index.add(base)
            index.search(queries, kept)

    return seconds(both, torch.device("cuda", device))


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of candidates (N, C) that both searches have."""
    pairs = zip(first[:1000], second[:1000], strict=True)
    return statistics.mean(np.isin(one, other).mean() for one, other in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=262_144)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--kept", type=int, default=12)
    args = parser.parse_args()
    devices = usable_devices()[:1]
    if not devices:
        sys.exit("no usable CUDA device on this machine: nothing to measure")
    (device,) = devices
    torch.cuda.set_device(device)
    source, target = (unit_vectors(args.rows, args.dim, seed) for seed in (1, 2))
    x, y = (side[:CELL].to(device) for side in (source, target))
    cell = len(x) * len(y)
    part = y[: max(1, sweep.DENSE // len(x))]
    rates = {"product": len(x) * len(part) / seconds(lambda: x @ part.T, device)}
    for name, taken in kernel_times(x, y, args.kept).items():
        rates[name] = cell / taken
    search = partial(generate_on_devices, source, target, kept=args.kept, devices=devices)
    rates["search"] = args.rows**2 / seconds(search, device)
    fused = search()
    with mock.patch.object(sweep, "working_tiling", lambda device, dtype: None):
        rates["search, not fused"] = args.rows**2 / seconds(search, device)
        sorted_ = search()
    try:
        taken = faiss_seconds(source, target, args.kept, device.index)
        rates["FAISS float16, twice"] = args.rows**2 / taken
    except (ImportError, RuntimeError) as error:
        print(f"FAISS: {str(error).partition(chr(10))[0]}")
    print(f"{args.rows:,} x {args.rows:,} x {args.dim}, {torch.cuda.get_device_name(device)}")
    for name, rate in rates.items():
        share = rate / rates["product"]
        print(f"{name:22} {2 * args.dim * rate / 1e12:7.1f} TFLOP/s  {share:5.2f}")
    found = [agreement(one.ids, other.ids) for one, other in zip(fused, sorted_, strict=True)]
    print(f"the same candidates, fused or not: {found[0]:.4f} forward, {found[1]:.4f} backward")
    return 0


if __name__ == "__main__":
    sys.exit(main())
