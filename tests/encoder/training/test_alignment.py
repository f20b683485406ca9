"""Languages that are added by the alignment loss to an encoder, which stays as it is."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from encoder import MORE, load_encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import Features
from encoder.tokenizer import Tokenizer
from encoder.training.architectures.bag import Bag
from encoder.training.data import tokenize_pairs
from encoder.training.loop import Training
from encoder.training.options import training_options
from encoder.training.reading import ParallelText
from encoder.training.tasks import make_task
from encoder.training.tasks.task import Setting
from encoder.training.tasks.taught import alignment
from pipelines.cli.train import train_encoder
from tests.encoder.training.language import made_up_triples, write_pairs
from tests.encoder.training.test_objectives import unit_rows

TRIPLES = made_up_triples(900, words=60, seed=1)
TRAINED = 700  # of them; the others are never seen
SMALL = (
    *("--vocabulary-size", "75", "--dim", "32", "--batch-size", "64", "--learning-rate", "0.02"),
    *("--evaluate-every", "50", "--held-out", "100", "--dropout", "0", "--quiet"),
)


def slowly(x: np.ndarray, y: np.ndarray, negatives: float) -> float:
    """The thesis's L_align, pair by pair; what a pair's negatives are is the pair before it."""
    losses = []
    for row in range(len(x)):
        wrong = np.linalg.norm(x[row - 1] - y[row]) + np.linalg.norm(x[row] - y[row - 1])
        losses.append(np.linalg.norm(x[row] - y[row]) - negatives * wrong)
    return float(np.mean(losses))


@pytest.mark.parametrize("negatives", [0, 0.25])
def test_the_loss_is_that_of_the_thesis(negatives: float) -> None:
    x, y = unit_rows(7, 5, seed=1), unit_rows(7, 5, seed=2)
    expected = slowly(x.numpy(), y.numpy(), negatives)
    assert alignment(x, y, negatives=negatives).item() == pytest.approx(expected, abs=1e-6)


def test_where_vectors_are_equal_already_the_loss_has_a_slope() -> None:
    x = unit_rows(3, 4, seed=1)
    y = x.clone().requires_grad_()
    alignment(x, y, negatives=0.25).backward()
    assert y.grad is not None and torch.isfinite(y.grad).all()


def test_a_step_is_by_the_teachers_vectors_of_the_targets(tokenizer: Tokenizer) -> None:
    table = np.random.default_rng(1).standard_normal((len(tokenizer), 8), dtype=np.float32)
    base = BagEncoder(name="base", tokenizer=tokenizer, table=table)
    sides = [[triple[side] for triple in TRIPLES[:9]] for side in (2, 1)]
    text = ParallelText(name="zz-yy", source=sides[0], target=sides[1], corpus=["c"] * 9)
    options = training_options(objective="alignment", dim=8, token_dropout=0.0, batch_size=9)
    setting = Setting(options=options, vocabulary=len(tokenizer), texts=[text], teacher=base)
    model, task = Bag(Features(tokenizer.pieces()), 8), make_task(setting, {}, [])
    pairs = tokenize_pairs(text, tokenizer, {}, one_sided=True)
    with torch.no_grad():
        y = functional.normalize(model(tokenizer.encode(text.source))).numpy()
    expected = slowly(base.encode(text.target), y, 0.25)
    loss = Training(model, task, options).advance([(pairs, np.arange(9))])
    assert loss == pytest.approx(expected, abs=1e-3)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for name, sides in (("xx-yy", (0, 1)), ("zz-yy", (2, 1))):
        (folder / name).mkdir()
        pairs = [(triple[sides[0]], triple[sides[1]]) for triple in TRIPLES[:TRAINED]]
        write_pairs(folder / name / f"{name}.tsv.xz", pairs)
    (folder / "yy-yy").mkdir()
    same = [(triple[1], triple[1]) for triple in TRIPLES[:TRAINED]]
    write_pairs(folder / "yy-yy" / "yy-yy.tsv.xz", same)
    return folder


@pytest.mark.parametrize(
    ("architecture", "added", "steps"),
    [("bag", "bag", 150), ("bilstm", "bilstm", 60), ("bag", "gru-last", 60)],
)
def test_languages_are_added_one_by_one(
    texts: Path, tmp_path: Path, architecture: str, added: str, steps: int
) -> None:
    base = tmp_path / "base"
    small = [*SMALL, "--steps", str(steps)]
    command = [str(texts / "yy-yy"), "-o", str(base), *small, "--architecture", architecture]
    assert train_encoder(command) == 0
    alone = load_encoder(str(base))
    align = ("--objective", "alignment", "--architecture", added, "--teacher", str(base))
    for name in ("xx", "zz"):
        output = base / f"{MORE}-{name}"
        command = [str(texts / f"{name}-yy"), "-o", str(output), *small, *align]
        assert train_encoder(command) == 0
    whole = load_encoder(str(base))
    fresh = [[triple[side] for triple in TRIPLES[TRAINED:]] for side in range(3)]
    target = whole.for_language("yy").encode(fresh[1])
    assert target.tobytes() == alone.encode(fresh[1]).tobytes()
    for name, side in (("xx", 0), ("zz", 2)):
        own = whole.for_language(name)
        assert own.name.startswith(f"base/{MORE}-{name}@")
        cosines = own.encode(fresh[side]) @ target.T
        found = cosines.diagonal() >= cosines.max(axis=1) - 1e-6
        assert found.mean() > 0.5  # chance is 1 in 200


def test_who_can_be_no_teacher(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(texts / "zz-yy"), "-o", str(tmp_path / "more"), *SMALL]
    options = ("--objective", "alignment", "--teacher", "mini+mini")
    assert train_encoder([*command, *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert train_encoder([*command, *options[:2]]) == 2
    assert "--objective alignment requires --teacher ENCODER" in capsys.readouterr().err
    assert train_encoder([*command, "--objective", "ranking", *options[2:]]) == 2
    assert "--objective ranking has no teacher; omit --teacher" in capsys.readouterr().err
