"""--objective nli: inference of one language, learned without parallel text, and its head kept."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from encoder import load_encoder
from encoder.checkpoint import HEAD, load_head
from encoder.training.evaluation import LOG, PROGRESS
from encoder.training.options import INFERENCE_LABELS
from encoder.training.tasks.task import Mixture, Task
from eval.cli.encoder import eval_encoder
from pipelines.cli.train import train_encoder
from tests.encoder.training.stopping import stopped_after

Captured = pytest.CaptureFixture[str]
WORDS = "bal cor dim fen gup hak jol kem lin mos nar pid quv rax sel tob".split()
SMALL = (
    *("--objective", "nli", "--architecture", "bilstm", "--dim", "32", "--vocabulary-size", "40"),
    *("--held-out", "60", "--quiet", "--dropout", "0"),
)
STEPS = ("--steps", "150", "--evaluate-every", "50", "--learning-rate", "0.01")


def made_up(count: int, *, seed: int) -> list[tuple[str, str, str]]:
    """Entailed is a part; contradicted is a part with "no"; neutral are other words."""
    random = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        words = [WORDS[word] for word in random.permutation(16)[:6]]
        second = [words[:2], ["no", *words[:2]], words[4:]][n % 3]
        label = ("entailment", "contradiction", "neutral")[n % 3]
        rows.append((label, " ".join(words[:4]), " ".join(second)))
    return rows


def write(path: Path, rows: list[tuple[str, str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inference")
    write(folder / "pairs" / "a.tsv", made_up(900, seed=1))
    write(folder / "xnli" / "dev.en.tsv", made_up(90, seed=2))
    return folder


@pytest.fixture(scope="module")
def whole(data: Path) -> Path:
    output = data / "whole"
    assert train_encoder([str(data / "pairs"), "-o", str(output), *SMALL, *STEPS]) == 0
    return output


def log(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / PROGRESS / LOG).open()]


def test_accuracy_while_training_chooses_the_best(whole: Path) -> None:
    found = [entry["accuracy"] for entry in log(whole)]
    assert found[-1] > 0.6  # chance is a third
    best = [entry["best"] for entry in log(whole)]
    assert best == [value == max(found[: place + 1]) for place, value in enumerate(found)]


def test_the_head_that_was_kept_classifies(data: Path, whole: Path, capsys: Captured) -> None:
    arguments = ["nli", str(data / "xnli"), "--encoder", str(whole)]
    assert eval_encoder([*arguments, "--head", str(whole), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = made_up(90, seed=2)
    encoder, logits = load_encoder(str(whole)), load_head(whole)
    right = 0
    for label, premise, hypothesis in rows:
        u, v = (encoder.encode([text])[0] * 32**0.5 for text in (premise, hypothesis))
        row = np.concatenate([u, v, abs(u - v), u * v])
        right += INFERENCE_LABELS[int(logits(row[None])[0].argmax())] == label
    assert told["figures"]["en"]["value"] == pytest.approx(right / 90) and right > 54
    assert "|train:0|" in told["signature"]
    both = ["--head", str(whole), "--train", str(data / "pairs" / "a.tsv")]
    for options, line in (
        ([], "missing --train FILE; pass it, or an encoder with --head"),
        (both, "--head conflicts with --train; omit one of them"),
        ([*both[:2], "--encoder", "mini"], f"also pass --encoder {whole}"),
    ):
        assert eval_encoder([*arguments, *options]) == 2
        assert line in capsys.readouterr().err


def test_a_head_of_another_encoder_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no inference\.safetensors; pass"):
        load_head(tmp_path)
    for name in ("config.json", "tokenizer.model", "weights.safetensors", HEAD):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    load_head(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "sha256": "0"}))
    with pytest.raises(ValueError, match="belongs to another encoder"):
        load_head(tmp_path)
    for content in (b"no head", save({"0.weight": np.zeros((2, 2))})):
        (tmp_path / HEAD).write_bytes(content)
        with pytest.raises(ValueError, match=f"{HEAD}: is damaged"):
            load_head(tmp_path)


@pytest.mark.parametrize("schedule", ["adam", "sgd"])
def test_interrupted_it_gives_the_same_bytes(data: Path, tmp_path: Path, schedule: str) -> None:
    options = (*SMALL, "--schedule", schedule, "--steps", "20", "--evaluate-every", "5")
    for name in ("whole", "cut"):
        command = [str(data / "pairs"), "-o", str(tmp_path / name), *options]
        if name == "cut":
            with stopped_after(12):
                assert train_encoder(command) != 0
        assert train_encoder(command) == 0
    for name in ("weights.safetensors", HEAD):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()


def test_the_schedule_of_plain_gradients(data: Path, tmp_path: Path) -> None:
    """It ends when the rate is below 1e-5; evaluations and drops of accuracy lower it."""
    command = [str(data / "pairs"), "-o", str(tmp_path / "out"), *SMALL, "--schedule", "sgd"]
    options = ("--learning-rate", "0.00003", "--steps", "4000", "--evaluate-every", "1")
    assert train_encoder([*command, *options, "--batch-size", "8"]) == 0
    rate, before = 0.00003, 0.0
    entries = log(tmp_path / "out")
    for entry in entries:
        assert rate >= 1e-5
        rate *= 0.99 * (0.2 if entry["accuracy"] < before else 1)
        before = entry["accuracy"]
    assert rate < 1e-5 and len(entries) < 4000
    low = ("--learning-rate", "0.000001", "--steps", "9", "--evaluate-every", "3")
    assert train_encoder([*command[:2], str(tmp_path / "low"), *command[3:], *low]) == 0
    assert [entry["step"] for entry in log(tmp_path / "low")] == [3]  # ended after an evaluation


def test_auxiliary_tasks_keep_the_schedule() -> None:
    class Slowing(Task):
        def rate_factor(self, history: Sequence[Mapping[str, Any]]) -> float:
            return 0.5

    assert Mixture("nli", Slowing(), {"mlm": Task()}).rate_factor([]) == 0.5
