"""A training that is killed and started again, against one that nothing disturbed."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from encoder.checkpoint import WEIGHTS
from encoder.training import curves
from encoder.training.architectures.bag import Bag
from encoder.training.evaluation import CURVES, LOG, PROGRESS, STATE, Keeper, held_out_error
from encoder.training.loop import Training
from encoder.training.options import Recipe, training_options
from encoder.training.reading import ParallelText, find_parallel_text
from encoder.training.recipe import train_encoder
from encoder.training.state import State, load_state, save_state
from encoder.training.tasks.ranking import Ranking
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.training.language import Alike, made_up_pairs, setting_of, write_pairs

DRAW = curves.draw_curves
STEPS, EVERY = 80, 20
SMALL = {"dim": 32, "steps": STEPS, "batch_size": 64, "learning_rate": 0.03, "ngram_rows": 200}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_pairs(folder / "xx-yy.tsv.xz", made_up_pairs(500, seed=1))
    write_pairs(folder / "zz-yy.tsv.xz", made_up_pairs(300, seed=2))
    return folder


def recipe(data: Path) -> Recipe:
    return Recipe(
        files=find_parallel_text(data),
        vocabulary_size=300,
        held_out=50,
        evaluate_every=EVERY,
        options=training_options(**SMALL),
    )


def train_and_be_killed(data: Path, output: Path) -> None:
    """Die as the second state is about to get its name, after the encoder of that step got its."""
    states, rename = count(1), os.replace

    def rename_or_die(source: Path, target: Path) -> None:
        if target.name == STATE and next(states) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)

    os.replace = rename_or_die
    sys.modules["matplotlib"] = None  # not loaded: a second less
    train_encoder(recipe(data), output)


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("whole") / "enc"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curves, "draw_curves", DRAW)
        train_encoder(recipe(data), output)
    return output


@pytest.mark.slow
def test_killed_and_interrupted_it_gives_the_same_weights(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    output = tmp_path / "enc"
    killed = subprocess.run(
        [sys.executable, "-m", "tests.encoder.training.test_resuming", data, output],
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(output.glob(f"{PROGRESS}/.draft-*"))
    begun, steps = [], count(EVERY + 1)

    def interrupt() -> None:
        if next(steps) == 3 * EVERY + 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(recipe(data), output, on_begin=begun.append, on_step=interrupt)
    train_encoder(recipe(data), output, on_begin=begun.append)
    assert begun == [EVERY, 3 * EVERY]
    for name in (WEIGHTS, f"{PROGRESS}/{STATE}"):
        expected, found = load_file(whole / name), load_file(output / name)
        assert expected.keys() == found.keys()
        for tensor in expected:
            assert torch.equal(expected[tensor], found[tensor]), tensor
    assert figures(output) == figures(whole)
    assert not list(output.glob("**/.draft-*"))


def figures(output: Path) -> list[dict[str, object]]:
    entries = [json.loads(line) for line in (output / PROGRESS / LOG).read_text().splitlines()]
    return [{name: entry[name] for name in entry if name != "seconds"} for entry in entries]


def test_the_log_and_the_curves(whole: Path) -> None:
    entries = figures(whole)
    assert [entry["step"] for entry in entries] == list(range(EVERY, STEPS + 1, EVERY))
    for name in ("loss", "held_out_error"):
        assert entries[-1][name] < 0.8 * entries[0][name]
    assert entries[0]["parts"]["held_out_error"].keys() == {"xx-yy", "zz-yy"}
    assert np.mean(list(entries[1]["parts"]["held_out_error"].values())) == pytest.approx(
        entries[1]["held_out_error"]
    )
    drawn = (whole / PROGRESS / CURVES).read_text()
    assert drawn.count("<svg") == 1 and "held-out error" in drawn


def test_without_matplotlib_there_are_no_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(curves, "draw_curves", DRAW)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    options = training_options(dim=2)
    training = Training(Bag(one_word_each(4), 2), Ranking(setting_of(options)), options)
    measure = held_out_error([ParallelText(name="x", source=["a"], target=["A"], corpus=["c"])])
    keeper = Keeper(
        tmp_path,
        state(),
        measures=[measure],
        best_by=measure,
        finish=lambda: (Ones(), lambda folder, facts: None),
        facts={},
    )
    with caplog.at_level("INFO"):
        keeper.keep(training, {"loss": 1.0})
        keeper.keep(training, {"loss": 1.0})
    assert not (tmp_path / PROGRESS / CURVES).exists()
    assert len((tmp_path / PROGRESS / LOG).read_text().splitlines()) == 2
    assert caplog.text.count("pip install 'bitext-adit[plot]'") == 1


class Ones(Alike):
    def encode(self, sentences: list[str]) -> np.ndarray:
        return np.ones((len(sentences), 2), dtype=np.float32)


def test_what_is_finished_is_not_trained_again(data: Path, whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    train_encoder(recipe(data), whole)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()} == before


def test_another_training_is_refused(data: Path, whole: Path) -> None:
    own = recipe(data)
    for other, told in (
        (
            replace(own, options=training_options(**SMALL, margin=0.1)),
            "with margin 0.2, but this one has 0.1;",
        ),
        (
            replace(own, exclude=frozenset("ba")),
            "with exclude [], but this one has ['a', 'b'];",
        ),
        (replace(own, files={"xx-yy": own.files["xx-yy"]}), "with text {'xx-yy': '"),
    ):
        with pytest.raises(
            ValueError, match=f"^{whole / PROGRESS}: contains a training {re.escape(told)}"
        ):
            train_encoder(other, whole)


def state(**changes: object) -> State:
    given = {"identity": {"a": 1, "b": [2]}, "tokenizer_model": b"model", "step": 3}
    return State(**(given | changes))


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    tensors = {"x": np.arange(6.0).reshape(2, 3), "optimizer.0.0.step": np.array(7)}
    written = state(tensors=tensors, seconds=1.5, history=[{"step": 1, "error": 0.25}])
    save_state(tmp_path / STATE, written)
    found = load_state(tmp_path / STATE, {"a": 1, "b": (2,)})
    assert {name: tensor.tolist() for name, tensor in found.tensors.items()} == {
        name: tensor.tolist() for name, tensor in tensors.items()
    }
    written.tensors, found.tensors = {}, {}
    assert found == written


@pytest.mark.parametrize("cut", [0, 5, 60, -1])
def test_a_damaged_state_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / STATE
    save_state(path, state())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(
        ValueError, match=r"is not a checkpoint of a training, or is damaged .*; delete it"
    ):
        load_state(path, state().identity)


def test_a_failed_write_keeps_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / STATE
    save_state(path, state())

    def fail(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space") as caught:
        save_state(path, state(step=4))
    assert caught.value.filename == str(path)
    assert load_state(path, state().identity).step == 3
    assert list(tmp_path.iterdir()) == [path]


def test_the_best_encoder_is_kept_beside_the_last_state(tmp_path: Path) -> None:
    """Errors of 1/2, 0, 1/2, 0: the second and, of equal ones, the later is saved."""
    options = training_options(dim=2)
    training = Training(Bag(one_word_each(4), 2), Ranking(setting_of(options)), options)
    saved: list[int] = []

    class Fixed(Alike):
        def encode(self, sentences: list[str]) -> np.ndarray:
            good = training.step % 2 == 0
            angles = {"a": 0.0, "b": 1.5, "A": 0.0, "B": 1.5 if good else -9.0}
            return np.array([[np.cos(angles[s]), np.sin(angles[s])] for s in sentences])

    text = ParallelText(name="x", source=["a", "b"], target=["A", "B"], corpus=["c"] * 2)
    measure = held_out_error([text])
    keeper = Keeper(
        tmp_path,
        state(),
        measures=[measure],
        best_by=measure,
        finish=lambda: (Fixed(), lambda folder, facts: saved.append(facts["steps"])),
        facts={},
    )
    for step in (1, 2, 3, 4):
        training.step = step
        keeper.keep(training, {"loss": 1.0})
    assert saved == [1, 2, 4]
    assert keeper.best() == {"held_out_error": {"x": 0.0}}
    assert load_state(tmp_path / PROGRESS / STATE, state().identity).step == 4


if __name__ == "__main__":
    train_and_be_killed(*map(Path, sys.argv[1:]))
