"""The parts of the training loop against what they abbreviate."""

import math
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from encoder.training.architectures.bag import Bag
from encoder.training.architectures.model import Model
from encoder.training.data import TokenPairs, sample_batches
from encoder.training.loop import Training, train
from encoder.training.options import TrainingOptions, training_options
from encoder.training.tasks.ranking import Ranking
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.test_tokenizer import lists_of, tokens_of
from tests.encoder.training.language import setting_of
from tests.encoder.training.test_objectives import plain


def test_the_learning_rate_rises_and_falls() -> None:
    options = training_options(steps=1000, warmup_steps=100, learning_rate=0.5)
    rates = [options.learning_rate_at(step) for step in range(1000)]
    assert rates[0] == pytest.approx(0.5 / 100)
    assert rates[49] == pytest.approx(0.5 * 0.5 * (1 - 49 / 1000))
    assert np.argmax(rates) == 99
    assert rates[99] == pytest.approx(0.5 * (1 - 99 / 1000))
    np.testing.assert_allclose(np.diff(rates[99:]), -0.5 / 1000, rtol=1e-9)
    assert rates[-1] == pytest.approx(0.5 / 1000)


@given(
    lists=st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=6),
    rate=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_dropping_keeps_the_order_within_each_sentence(lists: list[list[int]], rate: float) -> None:
    """The oracle draws from an equal generator, token by token."""
    left = Model().drop(tokens_of(lists), rate, np.random.default_rng(3))
    generator = np.random.default_rng(3)
    assert lists_of(left) == [[t for t in tokens if generator.random() >= rate] for tokens in lists]
    assert (left.ids.dtype, left.offsets.dtype) == (np.int32, np.int64)


def test_the_share_that_is_dropped() -> None:
    tokens = tokens_of([[1] * 10] * 2000)
    left = Model().drop(tokens, 0.25, np.random.default_rng(0))
    assert len(left.ids) / len(tokens.ids) == pytest.approx(0.75, abs=0.02)


# Which architecture or objective an option is of, if not of all.
KINDS = {"layers": {"architecture": "bilstm"}, "decoder_dim": {"objective": "translation"}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 0),
        ("steps", 0),
        ("layers", 0),
        ("layers", 6),
        ("accumulate", 0),
        ("at_once", 0),
        ("hard_negatives", -1),
        ("decoder_dim", 0),
        ("dropout", 1.0),
        ("architecture", "cnn"),
        ("objective", "masking"),
        ("batch_size", 0),
        ("batch_size", 1),
        ("warmup_steps", 0),
        ("learning_rate", -0.1),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("scale", -1.0),
        ("scale", 41.0),
        ("margin", -0.1),
        ("margin", math.nan),
        ("language_exponent", 1.5),
        ("token_dropout", -0.1),
        ("token_dropout", 1.0),
        ("seed", -1),
        ("seed", 2**63),
        ("precision", "float8"),
    ],
)
def test_options_out_of_range(name: str, value: object) -> None:
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(ValueError, match=rf"^{flag} {value}: (expected|choose one of) ") as caught:
        training_options(**(KINDS.get(name, {}) | {name: value}))
    assert "inf" not in str(caught.value).partition(":")[2]


def bijection(seed: int) -> TokenPairs:
    """Sentences of the ids 0 to 19, and the same of 20 to 39; a few are empty."""
    generator = np.random.default_rng(seed)
    lists = [generator.integers(20, size=generator.integers(0, 6)).tolist() for _ in range(64)]
    target = [[token + 20 for token in tokens] for tokens in lists]
    weight = np.ones(len(lists), dtype=np.float32)
    return TokenPairs(
        name="xx-yy", source=tokens_of(lists), target=tokens_of(target), weight=weight
    )


GIVEN = {"dim": 16, "steps": 60, "batch_size": 16, "learning_rate": 0.05, "warmup_steps": 5}


def begun(options: TrainingOptions) -> Training:
    torch.manual_seed(options.seed)
    return Training(
        Bag(one_word_each(45), options.architecture.dim), Ranking(setting_of(options)), options
    )


def trained(**changes: object) -> tuple[np.ndarray, list[float]]:
    losses: list[float] = []
    options = training_options(**(GIVEN | changes))
    training = begun(options)
    train(training, [bijection(1), bijection(2)], on_step=losses.append)
    return training.model.table.detach().numpy(), losses


def test_training_lowers_the_loss_and_moves_only_what_it_saw() -> None:
    table, losses = trained()
    assert (table.shape, table.dtype, len(losses)) == ((45, 16), np.float32, 60)
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])
    torch.manual_seed(1)
    start = torch.randn(45, 16).numpy() / math.sqrt(16)
    moved = (np.abs(table - start) > 1e-6).any(axis=1)
    assert moved[:40].all() and not moved[40:].any()


def test_training_is_dense_autograd_with_adam() -> None:
    """The same batches through the whole table, torch's own loss and torch's own optimiser."""
    options = training_options(
        dim=8, steps=12, batch_size=10, learning_rate=0.05, warmup_steps=3, token_dropout=0
    )
    pairs = [bijection(1), bijection(2)]
    training = begun(options)
    table = torch.nn.Parameter(training.model.table.detach().clone())
    train(training, pairs, on_step=lambda loss: None)
    found = training.model.table.detach().numpy()
    optimizer = torch.optim.SparseAdam([table], betas=(0.9, 0.99))
    batches = sample_batches(pairs, batch_size=10, exponent=0.5, seed=options.seed)
    for step, (pair, rows) in enumerate(islice(batches, 12)):
        sides = [lists_of(pair.source.take(rows)), lists_of(pair.target.take(rows))]
        vectors = [torch.stack([table[tokens].sum(dim=0) for tokens in side]) for side in sides]
        loss = plain(
            *map(functional.normalize, vectors), options.objective.scale, options.objective.margin
        )
        (gradient,) = torch.autograd.grad(loss, table)
        touched = sorted({token for side in sides for tokens in side for token in tokens})
        table.grad = torch.sparse_coo_tensor(
            torch.tensor([touched]), gradient[touched], table.shape, check_invariants=True
        )
        optimizer.param_groups[0]["lr"] = options.learning_rate_at(step)
        optimizer.step()
    np.testing.assert_allclose(found, table.detach().numpy(), atol=1e-4)


def test_the_seed_and_the_options_decide_the_table() -> None:
    table = trained()[0]
    assert trained()[0].tobytes() == table.tobytes()
    for name, value in (("seed", 2), ("token_dropout", 0.5), ("margin", 0.0), ("scale", 10.0)):
        assert training_options().flat()[name] != value
        assert not np.array_equal(trained(**{name: value})[0], table)


def test_bfloat16_trains_too() -> None:
    losses = trained(precision="bfloat16")[1]
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])


@pytest.mark.parametrize("fast", [True, False])
def test_of_bfloat16_without_instructions_for_it_there_is_a_warning(
    fast: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("encoder.torch_private.has_bfloat16_products", lambda: fast)
    begun(training_options(**GIVEN, precision="bfloat16"))
    assert ("so training is slow; use float32" in caplog.text) is not fast
    caplog.clear()
    begun(training_options(**GIVEN))
    assert not caplog.text


def test_a_loss_that_is_not_finite_ends_the_training() -> None:
    training = begun(training_options(**GIVEN))
    with torch.no_grad():
        training.model.table.fill_(torch.nan)
    batch = next(sample_batches([bijection(1)], batch_size=16, exponent=1, seed=1))
    with pytest.raises(
        ValueError, match=r"^step 1: the loss is nan, .* --learning-rate below 0\.05$"
    ):
        training.advance([batch])


def test_sentences_of_which_nothing_is_left() -> None:
    table, _ = trained(token_dropout=0.99)
    assert np.isfinite(table).all()


def test_accumulated_batches_count_like_one_mean() -> None:
    """A step on two batches is dense autograd on the mean of their losses."""
    options = training_options(
        dim=8, steps=5, batch_size=10, accumulate=2, learning_rate=0.05, token_dropout=0
    )
    pairs = [bijection(1), bijection(2)]
    training = begun(options)
    table = torch.nn.Parameter(training.model.table.detach().clone())
    drawn = list(islice(sample_batches(pairs, batch_size=10, exponent=0.5, seed=1), 2))
    loss = training.advance(drawn)
    losses = []
    for pair, rows in drawn:
        sides = [lists_of(side.take(rows)) for side in (pair.source, pair.target)]
        vectors = [torch.stack([table[tokens].sum(dim=0) for tokens in side]) for side in sides]
        losses.append(
            plain(
                *map(functional.normalize, vectors),
                options.objective.scale,
                options.objective.margin,
            )
        )
    mean = torch.stack(losses).mean()
    mean.backward()
    assert loss == pytest.approx(mean.item(), rel=1e-5)
    rate = options.learning_rate_at(0)
    moved = training.model.table.detach() - table.detach()
    expected = -rate * table.grad.sign()  # Adam's first step
    clear = table.grad.abs() > 1e-6
    torch.testing.assert_close(moved[clear], expected[clear], atol=rate * 0.02, rtol=0)


@pytest.mark.parametrize("step", [1, 7, 59])
def test_what_is_restored_goes_on_as_if_undisturbed(step: int) -> None:
    options = training_options(**GIVEN)
    pairs = [bijection(1), bijection(2)]
    whole, _ = trained()
    first = begun(options)

    def stop(loss: float) -> None:
        if first.step == step:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(first, pairs, on_step=stop)
    saved = {name: tensor.clone() for name, tensor in first.tensors().items()}
    torch.manual_seed(99)
    second = Training(
        Bag(one_word_each(45), options.architecture.dim), Ranking(setting_of(options)), options
    )
    second.restore(saved, step)
    train(second, pairs, on_step=lambda loss: None)
    assert second.model.table.detach().numpy().tobytes() == whole.tobytes()


def test_another_models_state_is_refused() -> None:
    options = training_options(**GIVEN)
    training = begun(options)
    other = Training(
        Bag(one_word_each(44), options.architecture.dim), Ranking(setting_of(options)), options
    )
    for tensors in (other.tensors(), {}):
        with pytest.raises(ValueError, match=r"^is the checkpoint of another network$"):
            training.restore(tensors, 1)
