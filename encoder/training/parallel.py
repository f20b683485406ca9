"""Training in several processes, which torchrun starts.

All processes have the same weights, draw the same batches, take the same steps, and embed a share
of each batch. A task's loss is that of a process's share, and the processes' mean is the batch's.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

T = TypeVar("T")
Context = Any  # the context of an autograd function

PATIENCE = timedelta(days=1)  # while the first process evaluates; torchrun stops lost ones


@contextmanager
def process_group() -> Iterator[None]:
    """Connect torchrun's processes, if any, on GPUs, if any, until all leave."""
    if not distributed.is_torchelastic_launched():
        yield
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    # If optimizers load it later, its functions keep the group, whose threads can abort a process
    # that ends while they hold tensors.
    import_module("torch.distributed.nn")
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
        distributed.barrier()  # because a process that leaves early aborts the others
    finally:
        distributed.destroy_process_group()


def processes() -> int:
    """Return the number of processes, 1 outside a connected ``process_group``."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """Return this process's number, from 0, or 0 outside ``process_group``."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def run_in_first(make: Callable[[], T]) -> T:
    """Return process 0's picklable ``make()`` or raise its ValueError, in all.

    All processes must call this. Other errors are raised in process 0 only, and the others wait.
    """
    if processes() == 1:
        return make()
    results: list[Any] = [None]
    if rank() == 0:
        try:
            results = [make()]
        except ValueError as error:
            results = [error]
    distributed.broadcast_object_list(results)
    if isinstance(results[0], ValueError):
        raise results[0]
    return results[0]


def sum_over_processes(value: float) -> float:
    """Return the sum of each process's ``value``, in all processes."""
    if processes() == 1:
        return value
    value_sum = torch.tensor(value, dtype=torch.float64)
    distributed.all_reduce(value_sum)
    return value_sum.item()


def gather(rows: Tensor) -> Tensor:
    """Join the rows of all processes, in the order of the processes.

    Each of P processes passes ``rows`` (B / P, ...), and gets (B, ...). If all compute the same
    loss from the result, gradients are correct after ``average_gradients``.
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
        # The gradient reaches a process's weights by its own rows only, and
        # ``average_gradients`` then divides it by the number of processes.
        return gradient.chunk(processes())[rank()] * processes()


def average_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Replace gradients, of the same parameters in all processes, by the mean."""
    if processes() == 1:
        return
    for parameter in parameters:
        if (gradient := parameter.grad) is None:  # of another task than the batch
            continue
        if gradient.is_sparse:  # NCCL has no sums of sparse tensors, gloo has
            gradient = gradient.coalesce().cpu()
        distributed.all_reduce(gradient)
        parameter.grad = (gradient / processes()).to(parameter.device)
