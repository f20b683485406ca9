"""Adam of a table's rows against torch's own."""

import numpy as np
import pytest
import torch

from encoder.training.loop import RowAdam

BETAS = (0.9, 0.99)


def sparse(rows: list[int], values: torch.Tensor, count: int) -> torch.Tensor:
    size = (count, values.shape[1])
    return torch.sparse_coo_tensor(torch.tensor([rows]), values, size, check_invariants=True)


def test_it_is_sparse_adam() -> None:
    generator = torch.Generator().manual_seed(3)
    start = torch.randn(20, 5, generator=generator)
    one, other = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = RowAdam([one], betas=BETAS), torch.optim.SparseAdam([other], betas=BETAS)
    for step in range(30):
        rows = torch.randperm(19, generator=generator)[:7].tolist()
        values = torch.randn(7, 5, generator=generator) * 10.0 ** (step % 9 - 6)
        for table, optimizer in zip((one, other), optimizers, strict=True):
            table.grad = sparse(rows, values, 20)
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
            optimizer.step()
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    states = [optimizer.state_dict()["state"][0] for optimizer in optimizers]
    assert states[0].keys() == states[1].keys() and states[0]["step"] == states[1]["step"] == 30
    for name in ("exp_avg", "exp_avg_sq"):
        torch.testing.assert_close(states[0][name], states[1][name], rtol=1e-4, atol=1e-9)
    assert torch.equal(one[19], start[19])


def test_rows_that_are_there_twice_count_as_their_sum() -> None:
    one, other = (torch.nn.Parameter(torch.zeros(3, 2)) for _ in range(2))
    values = torch.tensor([[1.0, -3.0], [2.0, 3.0]])
    for table, gradient in (
        (one, sparse([1, 1], values, 3)),
        (other, sparse([1], values.sum(0, keepdim=True), 3)),
    ):
        optimizer = RowAdam([table], betas=BETAS)
        table.grad = gradient
        optimizer.param_groups[0]["lr"] = 0.1
        optimizer.step()
    assert torch.equal(one, other)
    assert one.detach()[1].tolist() == [pytest.approx(-0.1), 0]


def test_without_a_gradient_nothing_happens() -> None:
    table = torch.nn.Parameter(torch.ones(3, 2))
    optimizer = RowAdam([table], betas=BETAS)
    optimizer.step()
    assert np.array_equal(table.detach().numpy(), np.ones((3, 2))) and not optimizer.state
