"""The training loop, with the same batches and updates in all processes."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from encoder import torch_private
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import LONGEST, Batch, TokenPairs, sample_batches
from encoder.training.options import TrainingOptions
from encoder.training.tasks.task import Task
from miner.compiling import compiled

LOWEST_RATE = 1e-5  # at lower rates, training with plain gradients ends
Array = Any  # an argument of a compiled function, whose type Numba infers

logger = logging.getLogger(__name__)


class RowAdam(torch.optim.Optimizer):
    """An Adam optimiser for float32 tables with sparse gradients, on a CPU.

    It updates only rows that have a gradient, like ``torch.optim.SparseAdam``, with the same names
    in its state. ``betas`` are decay rates. The learning rate is 0 unless ``param_groups`` sets it.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, betas: tuple[float, float]) -> None:
        super().__init__(parameters, {"lr": 0.0, "betas": betas, "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update parameters with a sparse gradient in place, ignoring ``closure``."""
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    self._update(table, group)

    def _update(self, table: Tensor, group: dict[str, Any]) -> None:
        state = self.state[table]
        if not state:
            moments = {name: torch.zeros_like(table) for name in ("exp_avg", "exp_avg_sq")}
            state.update(step=0, **moments)
        state["step"] += 1
        gradient = table.grad
        assert gradient is not None
        rows, values = torch_private.sparse_parts(gradient)
        # The gradient of one batch has sorted, distinct rows, but autograd doesn't record this.
        # Sorting it again would take a tenth of a step.
        if not (rows[1:] > rows[:-1]).all():
            rows, values = torch_private.sparse_parts(gradient.coalesce())
        (first, second), step = group["betas"], state["step"]
        parts = table, state["exp_avg"], state["exp_avg_sq"], rows, values
        rate = group["lr"] * math.sqrt(1 - second**step) / (1 - first**step)
        factors = np.array([first, second, group["eps"], rate], dtype=np.float32)
        _update_rows(*(part.numpy() for part in parts), factors)


@compiled(fastmath={"nnan", "nsz", "contract", "reassoc"})
def _update_rows(
    table: Array, means: Array, squares: Array, rows: Array, slopes: Array, factors: Array
) -> None:
    # As in the last paragraph of section 2 of Kingma & Ba 2015.
    first, second, epsilon, rate = factors
    one = np.float32(1)
    for number in range(len(rows)):
        row = rows[number]
        for column in range(table.shape[1]):
            slope = slopes[number, column]
            mean = first * means[row, column] + (one - first) * slope
            square = second * squares[row, column] + (one - second) * slope * slope
            means[row, column] = mean
            squares[row, column] = square
            table[row, column] -= rate * mean / (math.sqrt(square) + epsilon)


class Training:
    """A model and a task in training, after ``step`` steps.

    A step seeds torch. Its random numbers depend only on its number, the seed and the process.
    ``rate_factor``, 1 at first, scales the learning rate. The task is moved to the model's device.
    """

    def __init__(self, model: Model, task: Task, options: TrainingOptions) -> None:
        self.step = 0
        self.rate_factor = 1.0
        self.model = model
        self.task = task
        self.options = options
        self._device = next(model.parameters()).device
        self._bfloat16, on_cpu = options.precision == "bfloat16", self._device.type == "cpu"
        if self._bfloat16 and on_cpu and not torch_private.has_bfloat16_products():
            logger.warning(
                "--precision bfloat16: this CPU has no instructions for it, so training is slow; "
                "use float32"
            )
        self._modules = nn.ModuleDict({"model": model, "task": task.to(self._device)})
        self._by_sgd = options.objective.schedule == "sgd"
        plain = [torch.optim.SGD(self._modules.parameters())] if self._by_sgd else None
        self._optimizers = plain or _optimizers(self._modules)

    def advance(self, batches: list[Batch]) -> float:
        """Train for one step in training mode, and return the batches' mean loss.

        All processes pass the same whole ``batches``, and each trains on its share of their rows.

        Raises:
            ValueError: After the step, its loss is not finite, because training diverged.
        """
        options = self.options
        generator = np.random.default_rng([options.seed, self.step])
        torch.manual_seed(int(generator.integers(2**63)) + parallel.rank())
        self._modules.train()
        total = 0.0
        for pairs, rows in batches:
            sides = [
                self.model.drop(side.take(rows), options.architecture.token_dropout, generator)
                for side in (pairs.source, pairs.target)
            ]
            local_rows = np.array_split(np.arange(len(rows)), parallel.processes())[parallel.rank()]
            sides = [side.take(local_rows) for side in sides]
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bfloat16):
                loss = self.task.loss(self.model, pairs, rows[local_rows], sides) / len(batches)
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
        mean = parallel.sum_over_processes(total) / parallel.processes()
        if not math.isfinite(mean):
            raise ValueError(
                f"step {self.step}: the loss is {mean}, because training diverged; restart with "
                f"--learning-rate below {options.architecture.learning_rate}"
                f"{', or with --precision float32' if self._bfloat16 else ''}"
            )
        return mean

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return self.options.learning_rate_at(self.step) * self.rate_factor

    @property
    def has_ended(self) -> bool:
        """Whether the schedule ``sgd`` has lowered the rate below 1e-5."""
        return self._by_sgd and self.rate_factor < 1 and self.rate < LOWEST_RATE

    def tensors(self) -> dict[str, Tensor]:
        """Return weights and the optimisers' state by name, detached, not copied."""
        tensors = {name: tensor.detach() for name, tensor in self._modules.state_dict().items()}
        for number, optimizer in enumerate(self._optimizers):
            for index, moments in optimizer.state_dict()["state"].items():
                for name, value in moments.items():
                    tensors[f"optimizer.{number}.{index}.{name}"] = torch.as_tensor(value)
        return tensors

    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Set ``tensors()``, maybe not copied, and ``step``, not ``rate_factor``.

        Raises:
            ValueError: Tensors of the model or the task are missing or of other shapes.
        """
        expected = self._modules.state_dict().keys()
        try:
            self._modules.load_state_dict({name: tensors[name] for name in expected})
        except (KeyError, RuntimeError) as error:
            raise ValueError("is the checkpoint of another network") from error
        for number, optimizer in enumerate(self._optimizers):
            moments: dict[int, dict[str, Any]] = {}
            for full_name, tensor in tensors.items():
                if full_name.startswith(f"optimizer.{number}."):
                    index, name = full_name.split(".")[2:]
                    # SparseAdam counts steps in a Python number, Adam in a float tensor.
                    value = tensor if tensor.is_floating_point() else tensor.item()
                    moments.setdefault(int(index), {})[name] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.step = step


def _optimizers(modules: nn.Module) -> list[torch.optim.Optimizer]:
    dense = dict(modules.named_parameters())
    optimizers: list[torch.optim.Optimizer] = []
    if (table := dense.pop("model.table", None)) is not None:
        kind = RowAdam if table.device.type == "cpu" else torch.optim.SparseAdam
        optimizers.append(kind([table], betas=(0.9, 0.99)))
    if dense:
        optimizers.append(torch.optim.Adam(dense.values()))
    return optimizers


def train(training: Training, pairs: list[TokenPairs], on_step: Callable[[float], None]) -> None:
    """Train until the last step of the options, or until it ``has_ended``.

    ``pairs`` are as in ``sample_batches``, whose batches of earlier steps are skipped. ``on_step``
    is called with each step's loss. Errors of ``Training.advance`` are raised.
    """
    options = training.options
    batches = sample_batches(
        pairs,
        batch_size=options.objective.batch_size,
        in_tokens=options.objective.in_tokens,
        exponent=options.language_exponent,
        seed=options.seed,
    )
    batches = islice(batches, training.step * options.accumulate, None)
    while training.step < options.steps and not training.has_ended:
        on_step(training.advance(list(islice(batches, options.accumulate))))


def check_shares(options: TrainingOptions) -> None:
    """Check that the processes can share a batch.

    Raises:
        ValueError: A batch is below 129 tokens per process, or its pairs cannot be shared equally.
    """
    count, size = parallel.processes(), options.objective.batch_size
    if options.objective.in_tokens and size < count * (1 + LONGEST):
        raise ValueError(
            f"--batch-size {size}: is in tokens for this objective; pass "
            f"{count * (1 + LONGEST)} or more, {1 + LONGEST} per process"
        )
    if not options.objective.in_tokens and size % count:
        raise ValueError(f"--batch-size {size}: expected a multiple of the {count} processes")
