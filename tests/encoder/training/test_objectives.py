"""Translation ranking against the sum that the paper writes down."""

import math

import pytest
import torch
from torch.nn import functional

from encoder.training.tasks.ranking import translation_ranking
from encoder.training.tasks.translation import perplexity

SCALE, MARGIN = 20.0, 0.2


def unit_rows(rows: int, dim: int, *, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(rows, dim, generator=generator))


def oracle(source: torch.Tensor, target: torch.Tensor, scale: float, margin: float) -> float:
    """Mean over both directions of -log(e^true / (e^true + sum of e^others)), in float64."""
    cosines = (source.double() @ target.double().T).tolist()
    size = len(cosines)
    loss = 0.0
    for i in range(size):
        true = math.exp(scale * (cosines[i][i] - margin))
        row = sum(math.exp(scale * cosines[i][j]) for j in range(size) if j != i)
        column = sum(math.exp(scale * cosines[j][i]) for j in range(size) if j != i)
        loss -= math.log(true / (true + row)) + math.log(true / (true + column))
    return loss / (2 * size)


def plain(source: torch.Tensor, target: torch.Tensor, scale: float, margin: float) -> torch.Tensor:
    """The same in torch's own words, for the gradient."""
    logits = scale * (source @ target.T - margin * torch.eye(len(source), dtype=source.dtype))
    labels = torch.arange(len(source))
    both = functional.cross_entropy(logits, labels) + functional.cross_entropy(logits.T, labels)
    return both / 2


@pytest.mark.parametrize("size", [1, 2, 7, 33])
@pytest.mark.parametrize(("scale", "margin"), [(20.0, 0.2), (1.0, 0.0), (40.0, 0.3)])
def test_it_is_the_papers_sum(size: int, scale: float, margin: float) -> None:
    source, target = unit_rows(size, 6, seed=1), unit_rows(size, 6, seed=2)
    loss = translation_ranking(source, target, scale=scale, margin=margin)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(oracle(source, target, scale, margin), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("scale", [20.0, 40.0])
def test_the_gradient_is_that_of_the_plain_form(scale: float) -> None:
    sides = [unit_rows(9, 6, seed=3).requires_grad_(), unit_rows(9, 6, seed=4).requires_grad_()]
    found = torch.autograd.grad(translation_ranking(*sides, scale=scale, margin=MARGIN), sides)
    exact = [side.detach().double().requires_grad_() for side in sides]
    expected = torch.autograd.grad(plain(*exact, scale, MARGIN), exact)
    for gradient, right in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, right.float(), atol=1e-5, rtol=1e-4)


def test_opposite_vectors_neither_overflow_nor_underflow() -> None:
    """The worst case: every translation points the other way, at the largest scale."""
    source = unit_rows(1, 6, seed=5).repeat(4, 1).requires_grad_()
    loss = translation_ranking(source, -source.detach(), scale=40.0, margin=MARGIN)
    (gradient,) = torch.autograd.grad(loss, source)
    assert loss.item() == pytest.approx(40 * MARGIN + math.log(3 + math.exp(-8)), rel=1e-4)
    assert gradient.isfinite().all()


def test_bfloat16_is_near() -> None:
    source, target = unit_rows(64, 32, seed=6), unit_rows(64, 32, seed=7)
    exact = oracle(source, target, SCALE, MARGIN)
    with torch.autocast("cpu", torch.bfloat16):
        coarse = translation_ranking(source, target, scale=SCALE, margin=MARGIN)
    assert coarse.dtype == torch.float32
    assert coarse.item() == pytest.approx(exact, abs=0.05)
    assert coarse.item() != pytest.approx(exact, abs=1e-6)


def test_the_arguments_are_left_alone() -> None:
    source, target = unit_rows(5, 4, seed=8), unit_rows(5, 4, seed=9)
    copies = source.clone(), target.clone()
    translation_ranking(source, target, scale=SCALE, margin=MARGIN)
    assert torch.equal(source, copies[0]) and torch.equal(target, copies[1])


def test_the_perplexity_stays_finite() -> None:
    """As the log of a training that diverges is read again."""
    predicted = [(torch.tensor([[0.0, 2000.0]]), torch.tensor([0]))]
    assert 1e300 < perplexity(predicted)["perplexity"] < float("inf")
