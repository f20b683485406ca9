"""Two processes that train together, against one alone."""

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import encoder.training.recipe
from encoder.training import parallel
from encoder.training.evaluation import LOG, PROGRESS, STATE
from encoder.training.loop import Training, check_shares, train
from encoder.training.options import (
    PathsOptions,
    Recipe,
    TrainingOptions,
    TranslationOptions,
    training_options,
)
from encoder.training.reading import ParallelText, find_parallel_text
from encoder.training.recipe import train_encoder
from encoder.training.tasks.paths import Paths
from encoder.training.tasks.ranking import Ranking
from encoder.training.tasks.task import Task
from encoder.training.tasks.taught import Distillation
from encoder.training.tasks.translation import Translation
from pipelines.cli.train import train_encoder as command
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.training.language import made_up_pairs, setting_of, write_pairs
from tests.encoder.training.test_tasks import token_pairs

TOGETHER = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
COMMON = {"dim": 16, "steps": 5, "warmup_steps": 1, "learning_rate": 0.01, "dropout": 0.0}
TRAININGS = {
    "bag": training_options(batch_size=12, accumulate=2, hard_negatives=2, **COMMON),
    "transformer": training_options(
        architecture="transformer", layers=1, batch_size=12, at_once=2, **COMMON
    ),
    "translation": training_options(
        architecture="bilstm",
        objective="translation",
        targets=("xx", "yy"),
        decoder_dim=8,
        batch_size=300,
        **COMMON,
    ),
    "distillation": training_options(objective="distillation", batch_size=12, **COMMON),
    "paths": training_options(
        architecture="bilstm",
        objective="paths",
        targets=("xx", "yy"),
        decoder_dim=8,
        batch_size=12,
        **COMMON,
    ),
}
# A training through the command, and the same as a recipe.
OPTIONS = (
    *("--vocabulary-size", "300", "--held-out", "50", "--evaluate-every", "5", "--dim", "16"),
    *("--steps", "15", "--batch-size", "32", "--learning-rate", "0.01"),
)
# Sentences of one, two or three tokens.
PAIRS = token_pairs([[1, 2], [3], [4, 5, 6]] * 70, [[7], [8, 1, 2], [3, 4]] * 70)
TEXT = ParallelText(name="xx-yy", source=["a"] * 210, target=["bc"] * 210, corpus=[""] * 210)


class Teacher:
    """Some vectors."""

    dim = 16

    def encode(self, sentences: list[str]) -> object:
        generator = torch.Generator().manual_seed(len(sentences[0]))
        return torch.nn.functional.normalize(
            torch.randn(len(sentences), 16, generator=generator)
        ).numpy()


def task_of(options: TrainingOptions) -> Task:
    if isinstance(options.objective, TranslationOptions):
        return Translation(setting_of(options, "xx-yy"))
    if options.objective.name == "distillation":
        return Distillation(setting_of(options, texts=[TEXT], teacher=Teacher()))
    if isinstance(options.objective, PathsOptions):
        return Paths(setting_of(options, texts=[TEXT]))
    return Ranking(setting_of(options))


def trained(options: TrainingOptions) -> tuple[dict[str, torch.Tensor], list[float]]:
    torch.manual_seed(0)
    task = task_of(options)
    model = task.model(options, one_word_each(10), [TEXT])
    task.prepare(model, [PAIRS])
    training = Training(model, task, options)
    losses: list[float] = []
    train(training, [*task.batch_pairs([PAIRS])], on_step=losses.append)
    return training.tensors(), losses


def recipe(folder: Path) -> Recipe:
    return Recipe(
        files=find_parallel_text(folder),
        vocabulary_size=300,
        held_out=50,
        evaluate_every=5,
        options=training_options(dim=16, steps=15, batch_size=32, learning_rate=0.01),
    )


def nothing() -> None:
    """Fails in the first process; the other does not call it."""
    assert parallel.rank() == 0
    raise ValueError("nothing to begin with")


def train_all(folder: Path) -> None:
    """What both processes run; the first writes the weights and losses."""
    assert parallel.processes() == 2
    with pytest.raises(ValueError, match=r"^nothing to begin with$"):
        parallel.run_in_first(nothing)
    for name, options in TRAININGS.items():
        tensors, losses = trained(options)
        if parallel.rank() == 0:
            save_file({**tensors, "losses": torch.tensor(losses)}, folder / name)


def main(folder: Path) -> int:
    """Train all within the group of processes that the command opens, before it trains itself."""

    def train_all_first(recipe: Recipe, output: Path, **given: Any) -> object:
        train_all(folder)
        return train_encoder(recipe, output, **given)

    encoder.training.recipe.train_encoder = train_all_first
    sys.modules["matplotlib"] = None  # type: ignore[assignment]  # not loaded: a second less
    status = command([str(folder), "-o", str(folder / "parts"), *OPTIONS, "--quiet"])
    # Threads of the group that outlive it abort the process now and then. The kernel lists a thread
    # for a moment after it has been joined.
    deadline = time.monotonic() + 10
    while (names := [*thread_names()]) and any("gloo" in name for name in names):
        assert time.monotonic() < deadline, names
        time.sleep(0.01)
    return status


def thread_names() -> Iterator[str]:
    for thread in Path("/proc/self/task").glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            yield thread.read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes made; of the training in ``parts``, one alone made the first half."""
    made = tmp_path_factory.mktemp("together")
    write_pairs(made / "xx-yy.tsv.xz", made_up_pairs(300, seed=1))
    steps = itertools.count(1)

    def interrupt() -> None:
        if next(steps) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(recipe(made), made / "parts", on_step=interrupt)
    module = "tests.encoder.training.test_parallel"
    subprocess.run([sys.executable, *TOGETHER, "-m", module, made], check=True, timeout=120)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_train_what_one_does(folder: Path, name: str) -> None:
    found = load_file(folder / name)
    expected, losses = trained(TRAININGS[name])
    torch.testing.assert_close(found.pop("losses").tolist(), losses, atol=1e-4, rtol=1e-4)
    assert found.keys() == expected.keys()
    # Attention does not depend on the keys' bias: its gradient is rounding, which Adam enlarges.
    other = {"model.network.layers.0.self_attn.k_proj.bias"}
    for tensor in expected.keys() - other:
        torch.testing.assert_close(found[tensor], expected[tensor], atol=1e-4, rtol=1e-3)


def test_what_one_process_began_two_go_on_with(folder: Path) -> None:
    """Through the command; only one of the two writes."""
    train_encoder(recipe(folder), folder / "whole")
    whole, parts = (load_file(folder / one / PROGRESS / STATE) for one in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, atol=1e-4, rtol=1e-3, msg=name)
    assert len((folder / "parts" / PROGRESS / LOG).read_text().splitlines()) == 3


def test_a_batch_that_cannot_be_shared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "processes", lambda: 3)
    check_shares(training_options(batch_size=12))
    with pytest.raises(ValueError, match=r"^--batch-size 1024: expected a multiple of the 3 proc"):
        check_shares(training_options())
    with pytest.raises(
        ValueError, match=r"^--batch-size 300: is in tokens for this objective; pass 387 or"
    ):
        check_shares(TRAININGS["translation"])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
