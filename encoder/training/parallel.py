"""Training in several processes, as torchrun starts them: each embeds its share of every batch.

All of them hold the same weights, draw the same batches and take the same steps. A task's loss is
that of a process's share, such that the mean over the processes is the loss of the whole batch.
One process alone is a group of one, for which nothing here does anything.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

T = TypeVar("T")
Context = Any  # of an autograd function

PATIENCE = timedelta(days=1)  # the others wait while the first evaluates; torchrun ends lost ones


@contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that torchrun started with this one, if it did."""
    if not distributed.is_torchelastic_launched():
        yield
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    # Loaded later, as optimizers do, its functions would keep the group, whose threads then abort
    # a process that ends before they let go of the last tensors.
    import_module("torch.distributed.nn")
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
        distributed.barrier()  # one that leaves before the others are done aborts them
    finally:
        distributed.destroy_process_group()


def processes() -> int:
    """Return the number of processes."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0; the first logs and writes."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def share(count: int) -> NDArray[np.int64]:
    """Return this process's rows of a batch of ``count``; equal shares, if possible."""
    return np.array_split(np.arange(count), processes())[rank()]


def from_first(make: Callable[[], T]) -> T:
    """Return in all processes what ``make`` returns in the first, or raise its ValueError."""
    if processes() == 1:
        return make()
    made: list[Any] = [None]
    if rank() == 0:
        try:
            made = [make()]
        except ValueError as error:
            made = [error]
    distributed.broadcast_object_list(made)
    if isinstance(made[0], ValueError):
        raise made[0]
    return made[0]


def total(value: float) -> float:
    """Return the sum over all processes."""
    if processes() == 1:
        return value
    summed = torch.tensor(value, dtype=torch.float64)
    distributed.all_reduce(summed)
    return summed.item()


def gather(rows: Tensor) -> Tensor:
    """Return the rows (B / P, ...) of all P processes in their order: (B, ...), differentiable.

    All processes must compute the same loss from what they have gathered.
    """
    return rows if processes() == 1 else _Gather.apply(rows)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(processes())]
        distributed.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> Tensor:
        # The gradient of the same loss reaches a process's weights by its own rows only, and is
        # then divided by the number of processes in ``average_gradients``.
        return gradient.chunk(processes())[rank()] * processes()


def average_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Replace the gradient of each by its mean over the processes."""
    if processes() == 1:
        return
    for parameter in parameters:
        if (gradient := parameter.grad) is None:  # of another task than this batch, in all
            continue
        if gradient.is_sparse:  # NCCL has no sums of sparse tensors, gloo has
            gradient = gradient.coalesce().cpu()
        distributed.all_reduce(gradient)
        parameter.grad = (gradient / processes()).to(parameter.device)
