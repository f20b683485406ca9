"""The training loop: draw batches, take the loss, update; the same for models and objectives."""

import logging
import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from encoder import torch_private
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import (
    LONGEST,
    TokenPairs,
    count_pairs,
    count_tokens,
    sample_batches,
)
from encoder.training.options import TrainingOptions
from encoder.training.rowadam import RowAdam
from encoder.training.tasks.task import Task

LOWEST_RATE = 1e-5  # below which a schedule of plain gradients ends

logger = logging.getLogger(__name__)


class Training:
    """A model and a task in training, after ``step`` steps.

    A step depends on the weights, the optimisers' moments, the seed and its number alone. The task
    is a module, for it may have weights of its own.
    """

    def __init__(self, model: Model, task: Task, options: TrainingOptions) -> None:
        self.step = 0
        self.slower = 1.0  # a factor of the learning rate
        self.model = model
        self.task = task
        self._options = options
        device = next(model.parameters()).device
        if self._bfloat16 and device.type == "cpu" and not torch_private.has_bfloat16_products():
            logger.warning(
                "precision bfloat16: this processor has no AVX-512 BF16; float32 is likely faster"
            )
        self._modules = nn.ModuleDict()
        self._modules.update({"model": model, "task": task.to(device)})
        self._by_sgd = options.objective.schedule == "sgd"
        plain = [torch.optim.SGD(self._modules.parameters())] if self._by_sgd else None
        self._optimizers = plain or _optimizers(self._modules)

    def advance(self, batches: list[tuple[TokenPairs, NDArray[np.int64]]]) -> float:
        """Take one step on the mean loss of the batches; that loss.

        Raises:
            ValueError: it is not finite.
        """
        options = self._options
        generator = np.random.default_rng([options.seed, self.step])
        torch.manual_seed(int(generator.integers(2**63)) + parallel.rank())
        self._modules.train()
        total = 0.0
        for pairs, rows in batches:
            sides = [
                self.model.drop(side.take(rows), options.architecture.token_dropout, generator)
                for side in (pairs.source, pairs.target)
            ]
            own = parallel.share(len(rows))
            sides = [side.take(own) for side in sides]
            with self.autocast():
                loss = self.task.loss(self.model, pairs, rows[own], sides) / len(batches)
            loss.backward()
            total += loss.item()
        parallel.average_gradients(self._modules.parameters())
        if options.objective.clip:
            nn.utils.clip_grad_norm_(self._modules.parameters(), options.objective.clip)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        mean = parallel.total(total) / parallel.processes()
        if not math.isfinite(mean):
            raise ValueError(
                f"step {self.step}: the loss is {mean}, and training cannot go on; begin anew with "
                f"a learning rate below {options.architecture.learning_rate}, or in float32"
            )
        return mean

    @property
    def rate(self) -> float:
        """The learning rate of the next step, 0 where a schedule of plain gradients has ended."""
        rate = self._options.learning_rate_at(self.step) * self.slower
        return 0.0 if self._by_sgd and rate < LOWEST_RATE else rate

    def autocast(self) -> torch.autocast:
        """Compute products in bfloat16, if that is the precision."""
        device = next(self._modules.parameters()).device.type
        return torch.autocast(device, torch.bfloat16, enabled=self._bfloat16)

    @property
    def _bfloat16(self) -> bool:
        return self._options.precision == "bfloat16"

    def tensors(self) -> dict[str, Tensor]:
        """Return all that the next steps depend on, but their numbers."""
        found = {name: tensor.detach() for name, tensor in self._modules.state_dict().items()}
        for number, optimizer in enumerate(self._optimizers):
            for index, moments in optimizer.state_dict()["state"].items():
                for name, value in moments.items():
                    found[f"optimizer.{number}.{index}.{name}"] = torch.as_tensor(value)
        return found

    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Go on from what ``tensors`` gave after ``step`` steps.

        Raises:
            ValueError: they are another model's.
        """
        expected = self._modules.state_dict().keys()
        try:
            self._modules.load_state_dict({name: tensors[name] for name in expected})
        except (KeyError, RuntimeError) as error:
            raise ValueError("the state is that of another model") from error
        for number, optimizer in enumerate(self._optimizers):
            moments: dict[int, dict[str, Any]] = {}
            for name, tensor in tensors.items():
                kind, *parts = name.split(".")
                if kind == "optimizer" and int(parts[0]) == number:
                    # SparseAdam counts steps in a Python number, Adam in a float tensor.
                    value = tensor if tensor.is_floating_point() else tensor.item()
                    moments.setdefault(int(parts[1]), {})[parts[2]] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.step = step


def _optimizers(modules: nn.Module) -> list[torch.optim.Optimizer]:
    """Make Adam (Kingma & Ba 2015); of a bag's table, it updates only the rows of a batch."""
    named = dict(modules.named_parameters())
    sparse = [parameter for name, parameter in named.items() if name == "model.table"]
    dense = [parameter for name, parameter in named.items() if name != "model.table"]
    optimizers: list[torch.optim.Optimizer] = []
    if sparse:
        on_cpu = sparse[0].device.type == "cpu"
        kind = RowAdam if on_cpu else torch.optim.SparseAdam
        optimizers.append(kind(sparse, betas=(0.9, 0.99)))
    if dense:
        optimizers.append(torch.optim.Adam(dense))
    return optimizers


def train(
    training: Training,
    pairs: list[TokenPairs],
    options: TrainingOptions,
    *,
    on_step: Callable[[float], None],
) -> None:
    """Train up to the last step; ``on_step(loss)`` is called after each."""
    batches = sample_batches(
        pairs,
        batch_size=options.objective.batch_size,
        count=count_tokens if options.objective.in_tokens else count_pairs,
        exponent=options.language_exponent,
        seed=options.seed,
    )
    done = training.step * options.accumulate
    batches = islice(batches, done, None)
    while training.step < options.steps and training.rate:
        on_step(training.advance(list(islice(batches, options.accumulate))))


def check_shares(options: TrainingOptions) -> None:
    """See that a batch can be shared among the processes.

    Raises:
        ValueError: it cannot.
    """
    count, size = parallel.processes(), options.objective.batch_size
    if options.objective.in_tokens and size < count * (1 + LONGEST):
        raise ValueError(
            f"batch_size {size}: {count} processes need {count * (1 + LONGEST)} tokens or more"
        )
    if not options.objective.in_tokens and size % count:
        raise ValueError(f"batch_size {size}: expected a multiple of the {count} processes")
