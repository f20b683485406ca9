"""Language models of a made-up language, and what begins with them."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import torch

from encoder.bag.features import Features
from encoder.tokenizer import Tokens
from encoder.training.architectures import make_model
from encoder.training.data import TokenPairs
from encoder.training.evaluation import LOG, PROGRESS
from encoder.training.loop import Training
from encoder.training.options import training_options
from encoder.training.tasks import make_task
from encoder.training.tasks.language import (
    MASK,
    MASKED_SHARE,
    PREDICTED_SHARE,
    REPLACED_SHARE,
    mask_tokens,
)
from encoder.training.tasks.task import Setting
from pipelines.cli.train import train_encoder
from tests.encoder.training.language import made_up_pairs, write_pairs
from tests.encoder.training.stopping import stopped_after

V = 12
SMALL = ("--architecture", "transformer", "--dim", "32", "--layers", "1", "--held-out", "50")
COMMON = ("--vocabulary-size", "300", "--learning-rate", "0.01", "--quiet")


def slowly_masked(
    ids: list[list[int]], draw: list[list[float]], kind: list[list[float]], wrong: list[list[int]]
) -> tuple[list[list[int]], list[list[bool]]]:
    """Token by token: 15 % are asked for; of these 80 % hidden, 10 % wrong, 10 % as they are."""
    shown, asked = [], []
    for row, sentence in enumerate(ids):
        shown.append(list(sentence))
        asked.append([False] * len(sentence))
        for place, token in enumerate(sentence):
            if token == V or draw[row][place] > PREDICTED_SHARE:
                continue
            asked[row][place] = True
            if kind[row][place] < MASKED_SHARE:
                shown[row][place] = MASK
            elif kind[row][place] < MASKED_SHARE + REPLACED_SHARE:
                shown[row][place] = wrong[row][place]
    return shown, asked


def test_masking_is_that_of_the_slow_way() -> None:
    numbers = torch.Generator().manual_seed(2)
    ids = torch.randint(1, V, (40, 30), generator=numbers)
    ids[torch.arange(30) >= torch.randint(1, 30, (40, 1), generator=numbers)] = V
    shown, asked = mask_tokens(ids, end=V, generator=torch.Generator().manual_seed(1))
    again = torch.Generator().manual_seed(1)
    draw, kind = (torch.rand(ids.shape, generator=again) for _ in range(2))
    wrong = torch.randint(V, ids.shape, generator=again)
    expected = slowly_masked(*(each.tolist() for each in (ids, draw, kind, wrong)))
    assert shown.tolist() == expected[0]
    assert asked.tolist() == expected[1]


def test_shares_of_masking_and_what_is_never_asked_for() -> None:
    ids = torch.randint(1, V, (400, 200), generator=torch.Generator().manual_seed(1))
    shown, asked = mask_tokens(ids, end=V)
    assert asked.float().mean().item() == pytest.approx(PREDICTED_SHARE, abs=0.01)
    assert (shown[asked] == MASK).float().mean().item() == pytest.approx(0.8 + 0.1 / V, abs=0.01)
    assert torch.equal(shown[~asked], ids[~asked])
    ids = torch.tensor([[3, V, V]])
    for _ in range(20):
        assert mask_tokens(ids, end=V)[1].tolist() == [[True, False, False]]
    assert mask_tokens(torch.full((2, 1), V), end=V)[1].all()  # nothing else is there


def tokens(count: int, *, seed: int) -> Tokens:
    generator = np.random.default_rng(seed)
    return Tokens.of(generator.integers(1, V, generator.integers(1, 9)) for _ in range(count))


def setting(objective: str, **given: object) -> tuple[Setting, torch.nn.Module]:
    options = training_options(
        "transformer", objective, dim=32, layers=1, learning_rate=0.02, dropout=0.0, **given
    )
    torch.manual_seed(1)
    model = make_model(options, Features([f"p{number}" for number in range(V)], 0)).cpu()
    return Setting(options=options, vocabulary=V, texts=[]), model


@pytest.mark.parametrize("objective", ["mlm", "tlm", "clm"])
def test_the_loss_is_that_of_sentence_by_sentence(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In groups, padded, against each sentence (tlm: each pair) alone."""
    where, model = setting(objective)
    task = make_task(where, {}, [])
    monkeypatch.setattr(
        "encoder.training.tasks.language.mask_tokens",
        lambda ids, end, generator: (torch.where(ids % 3 == 1, MASK, ids), (ids % 3 == 1)),
    )
    sides = [tokens(70, seed=seed) for seed in (1, 2)]
    model.eval()
    logits, right = task._predict(model, sides)
    together = torch.nn.functional.cross_entropy(logits, right, reduction="sum").item()
    alone = 0.0
    for row in range(70):
        one = [side.take(np.array([row])) for side in sides]
        for each in [one] if objective == "tlm" else [[side] for side in one]:
            logits, right = make_task_alone(where, task, len(each))._predict(model, each)
            alone += torch.nn.functional.cross_entropy(logits, right, reduction="sum").item()
    assert together == pytest.approx(alone, rel=1e-4)


def make_task_alone(where: Setting, task: torch.nn.Module, sides: int) -> torch.nn.Module:
    found = type(task)(where, sides=sides)
    found.load_state_dict(task.state_dict())
    return found


def test_no_token_of_a_causal_model_depends_on_later_ones() -> None:
    _, model = setting("clm")
    model.eval()
    ids = torch.randint(1, V, (1, 6), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[0, 4] = 0
    states = [model.network.states(each, None, causal=True) for each in (ids, changed)]
    assert torch.equal(states[0][:, :4], states[1][:, :4])
    assert not torch.equal(states[0][:, 4:], states[1][:, 4:])


@pytest.mark.parametrize("objective", ["mlm", "clm"])
def test_what_follows_is_learnt_far_above_chance(objective: str) -> None:
    """A language in which each token says the next one: perplexity 1, by chance 11."""
    where, model = setting(objective, steps=80, warmup_steps=10)
    chain = [[1 + (start + place) % 11 for place in range(8)] for start in range(11)] * 3
    text = TokenPairs(
        name="xx-yy", source=Tokens.of(chain), target=Tokens.of(chain), weight=np.ones(33)
    )
    training = Training(model, make_task(where, {}, []), where.options)
    for _ in range(80):
        training.advance([(text, np.arange(33))])
    assert training.task.figures(model, [text])["perplexity"] < 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_pairs(folder / "xx-yy.tsv.xz", made_up_pairs(400, seed=1))
    (folder / "text").mkdir()
    lines = [source for source, _ in made_up_pairs(300, seed=1)]
    (folder / "text" / "xx.txt").write_text("\n".join(lines) + "\n")
    return folder


def log(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / PROGRESS / LOG).open()]


def test_another_training_begins_with_a_language_model_and_both_go_on_to_the_same_bytes(
    data: Path, tmp_path: Path
) -> None:
    command = [str(data), *SMALL, *COMMON, "--objective", "tlm", "--batch-size", "600"]
    command += ["--steps", "30", "--evaluate-every", "10", "--task", f"mlm={data / 'text'}"]
    assert train_encoder([*command, "-o", str(tmp_path / "whole")]) == 0
    first = log(tmp_path / "whole")
    assert first[-1]["perplexity"] < first[0]["perplexity"]
    assert "mlm loss" in first[-1]

    with stopped_after(15):
        assert train_encoder([*command, "-o", str(tmp_path / "cut")]) != 0
    assert train_encoder([*command, "-o", str(tmp_path / "cut")]) == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]

    ranked = [str(data), *SMALL, *COMMON, "--batch-size", "64", "--steps", "2"]
    for name in ("one", "two"):
        assert (
            train_encoder([*ranked, "-o", str(tmp_path / name), "--start", str(tmp_path / "whole")])
            == 0
        )
    saved = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("one", "two")]
    assert saved[0] == saved[1]
    tokenizers = [(tmp_path / n / "tokenizer.model").read_bytes() for n in ("whole", "one")]
    assert tokenizers[0] == tokenizers[1]


@pytest.mark.parametrize("objective", ["mlm", "clm"])
def test_text_of_one_language_is_enough(data: Path, tmp_path: Path, objective: str) -> None:
    """As with parallel text whose other side nothing is asked of."""
    folder = tmp_path / "text"
    folder.mkdir()
    lines = [f"{a}\n" for a, _ in made_up_pairs(600, seed=1)]
    (folder / "news.xx.txt").write_text("".join(lines[:300]))
    (folder / "xx.txt.xz").write_bytes(lzma.compress("".join(lines[200:]).encode()))
    (folder / "yy.txt").write_text("".join(f"{b}\n" for _, b in made_up_pairs(600, seed=1)))
    (folder / "README.txt").write_text("nothing to learn from\n")
    command = [str(folder), *SMALL, *COMMON, "--objective", objective, "--batch-size", "600"]
    command += ["--steps", "30", "--evaluate-every", "10"]
    assert train_encoder([*command, "-o", str(tmp_path / "out")]) == 0
    found = log(tmp_path / "out")
    assert found[-1]["perplexity"] < found[0]["perplexity"]
    assert "held_out_error" not in found[0]
    facts = json.loads((tmp_path / "out" / "config.json").read_text())["facts"]
    sides = [{pair[side] for pair in made_up_pairs(600, seed=1)} for side in (0, 1)]
    sizes = {name: sum(each.values()) for name, each in facts["pairs"].items()}
    assert sizes == {"xx": len(sides[0]) - 50, "yy": len(sides[1]) - 50}


def test_translations_cannot_be_made_of_one_language(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "xx.txt").write_text("a\n")
    command = [str(tmp_path), *SMALL, "--objective", "tlm", "-o", str(tmp_path / "out")]
    assert train_encoder(command) == 2
    assert "contains no parallel text" in capsys.readouterr().err


def test_the_first_step_is_from_the_weights_begun_with(data: Path, tmp_path: Path) -> None:
    command = [str(data), *SMALL, "--vocabulary-size", "300", "--quiet", "--steps", "1"]
    assert train_encoder([*command, "-o", str(tmp_path / "a"), "--batch-size", "64"]) == 0
    again = [*command, "--start", str(tmp_path / "a"), "--learning-rate", "1e-9"]
    assert train_encoder([*again, "-o", str(tmp_path / "b"), "--batch-size", "64"]) == 0
    from safetensors.torch import load_file

    one, two = (load_file(tmp_path / name / "weights.safetensors") for name in "ab")
    assert all(torch.allclose(one[name], two[name], atol=1e-6) for name in one)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--objective", "mlm"), "use --architecture transformer"),
        (
            ("--architecture", "gated", "--objective", "clm"),
            "--architecture gated has no vectors of tokens",
        ),
        (
            ("--best-by", "perplexity"),
            "--best-by perplexity: this training does not measure it; choose one of held_out",
        ),
        (
            ("--architecture", "transformer", "--start", "mini"),
            "is not a network of 'adit train'; pass",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    expected: str,
) -> None:
    command = [str(data), "-o", str(tmp_path / "out"), "--held-out", "50", "--quiet"]
    assert train_encoder([*command, "--vocabulary-size", "300", *options]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_networks_of_other_sizes_are_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(data), *SMALL, *COMMON, "--batch-size", "64", "--steps", "1"]
    assert train_encoder([*command, "-o", str(tmp_path / "a")]) == 0
    start = ["--start", str(tmp_path / "a"), "-o", str(tmp_path / "b")]
    assert train_encoder([*command, *start, "--layers", "2"]) == 2
    assert "has other layers than the new encoder" in capsys.readouterr().err
