"""Tasks beside the objective: each learns, alone and mixed in, and goes on as if undisturbed."""

import json
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from encoder.tokenizer import Tokens
from encoder.training.architectures import make_model
from encoder.training.data import TokenPairs
from encoder.training.evaluation import LOG, PROGRESS, STATE
from encoder.training.loop import Training, train
from encoder.training.options import INFERENCE_LABELS, training_options
from encoder.training.reading import (
    ParallelText,
    find_files,
    read_labelled,
    read_sentences,
    read_successors,
)
from encoder.training.tasks import beside as beside_tasks
from encoder.training.tasks.beside import (
    Autoencoding,
    Inference,
    QuickThought,
    ResponsePrediction,
    SkipThought,
    in_batch_loss,
)
from encoder.training.tasks.task import Setting, Task
from pipelines.cli.train import train_encoder
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.test_tokenizer import tokens_of
from tests.encoder.training.language import made_up_pairs, write_pairs

WORDS = 40
ROWS = 1500
SHOWN = 1200


def sides_of(pairs: TokenPairs, rows: np.ndarray) -> list[Tokens]:
    return [pairs.source.take(rows), pairs.target.take(rows)]


def learned(
    name: str, pairs: TokenPairs, make: type, text: ParallelText, steps: int = 110
) -> tuple:
    """The model and the task after training on the first rows."""
    options = training_options(
        dim=24, batch_size=64, learning_rate=0.01, steps=steps, warmup_steps=10, token_dropout=0.0
    )
    torch.manual_seed(0)
    model = make_model(options, one_word_each(3 * WORDS))
    task = make(Setting(options=options, vocabulary=3 * WORDS, texts=[text]))
    shown = TokenPairs(
        name=name,
        source=pairs.source.take(np.arange(SHOWN)),
        target=pairs.target.take(np.arange(SHOWN)),
        weight=np.ones(SHOWN, dtype=np.float32),
    )
    train(Training(model, task, options), [shown], on_step=lambda loss: None)
    return model.eval(), task.eval()


def successions() -> TokenPairs:
    """What follows a sentence has words that belong to its own, by a rule to be learned."""
    random = np.random.default_rng(1)
    first = [random.integers(WORDS, size=4).tolist() for _ in range(ROWS)]
    second = [[WORDS + (7 * word + 3) % WORDS for word in one] for one in first]
    weight = np.ones(ROWS, dtype=np.float32)
    return TokenPairs(name="x", source=tokens_of(first), target=tokens_of(second), weight=weight)


def plain(labels: list[str]) -> ParallelText:
    return ParallelText(name="x", source=labels, target=labels, corpus=labels)


@pytest.mark.parametrize("make", [ResponsePrediction, QuickThought])
def test_successors_are_found(make: type) -> None:
    """Chance is 1 in 100 in each direction that is learned."""
    pairs = successions()
    model, task = learned("x", pairs, make, plain(["x"] * ROWS))
    rows = np.arange(SHOWN, SHOWN + 100)
    with torch.inference_mode():
        loss = task.loss(model, pairs, rows, sides_of(pairs, rows)).item()
        first, second = functional.normalize(model(pairs.source.take(rows))), None
        second = functional.normalize(model(pairs.target.take(rows)))
        if make is ResponsePrediction:
            compared = [(first, task.head(second))]
        else:
            heads = task.heads
            compared = [
                (heads["input"](first), heads["successor"](second)),
                (heads["input"](second), heads["predecessor"](first)),
            ]
    losses = []
    for one, other in compared:
        cosines = functional.normalize(one) @ functional.normalize(other).T
        found = cosines.argmax(dim=1) == torch.arange(100)
        assert found.float().mean() > 0.5
        chances = (20 * cosines).softmax(dim=1).diagonal()
        losses.append(-chances.log().mean().item())
    assert loss == pytest.approx(sum(losses), rel=1e-4)


def test_the_heads_are_those_of_the_paper() -> None:
    """Two layers of 320 and 512 with tanh each; of a response, as many at last as the vector."""
    options = training_options(dim=24)
    setting = Setting(options=options, vocabulary=9, texts=[])
    torch.manual_seed(0)
    heads = {"response": ResponsePrediction(setting).head}
    heads |= dict(QuickThought(setting).heads.items())
    assert list(heads) == ["response", "input", "successor", "predecessor"]
    vectors = torch.randn(5, 24)
    for name, head in heads.items():
        first, last = (one for one in head if isinstance(one, torch.nn.Linear))
        hidden = np.tanh(vectors.numpy() @ first.weight.T.detach().numpy() + first.bias.tolist())
        expected = np.tanh(hidden @ last.weight.T.detach().numpy() + last.bias.tolist())
        np.testing.assert_allclose(head(vectors).detach(), expected, atol=1e-5)
        assert hidden.shape[1] == 320 and expected.shape[1] == (24 if name == "response" else 512)


@pytest.mark.parametrize("make", [Autoencoding, SkipThought])
def test_sentences_are_written_from_vectors(make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its own vector a sentence that was never seen is likelier than from another's."""
    monkeypatch.setattr(beside_tasks, "WIDTH", 128)
    pairs = successions()
    model, task = learned("x", pairs, make, plain(["x"] * ROWS))
    rows = np.arange(SHOWN, ROWS)
    losses = []
    for shift in (0, 1):
        own = sides_of(pairs, np.roll(rows, shift))
        with torch.inference_mode():
            losses.append(task.loss(model, pairs, rows, own).item())
    ways = 2 if make is SkipThought else 1
    assert losses[0] < 0.75 * math.log(WORDS) * ways  # what an even guess costs
    assert losses[0] + 0.5 * ways < losses[1]


def test_what_is_written() -> None:
    """Each way's loss is the mean cross entropy of its tokens, given that side's vectors."""
    pairs = successions()
    options = training_options(dim=24, dropout=0.0)
    setting = Setting(options=options, vocabulary=3 * WORDS, texts=[])
    torch.manual_seed(0)
    model = make_model(options, one_word_each(3 * WORDS)).eval()
    rows = np.array([5, 3, 8])
    sides = sides_of(pairs, rows)
    units = [functional.normalize(model(side)) for side in sides]

    def entropy(task: Task, vectors: torch.Tensor, tokens: Tokens, way: int) -> float:
        logits, right = task.decoder(vectors, tokens, way)
        chances = logits.double().softmax(dim=1)[torch.arange(len(right)), right]
        assert len(right) == 3 * (4 + 1)  # with each sentence's end
        return -chances.log().mean().item()

    task = Autoencoding(setting)
    expected = entropy(task, units[0], sides[0], 0)
    assert task.loss(model, pairs, rows, sides).item() == pytest.approx(expected, rel=1e-5)
    task = SkipThought(setting)
    expected = entropy(task, units[0], sides[1], 0) + entropy(task, units[1], sides[0], 1)
    assert task.loss(model, pairs, rows, sides).item() == pytest.approx(expected, rel=1e-5)


def test_inference_is_learned() -> None:
    """Entailed is the same with other words left out; contradicted is what has a word for no."""
    random = np.random.default_rng(1)
    first = [random.permutation(WORDS)[:4].tolist() for _ in range(ROWS)]
    labels = [INFERENCE_LABELS[row % 3] for row in range(ROWS)]
    second = []
    for row, one in enumerate(first):
        other = random.permutation(WORDS)[:2].tolist()
        second.append([one[:2], other, [*one[:2], 2 * WORDS]][row % 3])
    weight = np.ones(ROWS, dtype=np.float32)
    pairs = TokenPairs(name="x", source=tokens_of(first), target=tokens_of(second), weight=weight)
    model, task = learned("x", pairs, Inference, plain(labels), steps=250)
    rows = np.arange(SHOWN, ROWS)
    with torch.inference_mode():
        found = task.logits(model, sides_of(pairs, rows)).argmax(dim=1).numpy()
    assert (found == rows % 3).mean() > 0.8  # chance is 1 in 3


def test_ranking_in_a_batch() -> None:
    torch.manual_seed(1)
    inputs, answers = torch.randn(5, 8), torch.randn(5, 8)
    expected = 0.0
    for row in range(5):
        scores = [
            20 * functional.cosine_similarity(inputs[row], answers[j], dim=0) for j in range(5)
        ]
        expected -= torch.stack(scores).log_softmax(dim=0)[row].item() / 5
    assert in_batch_loss(inputs, answers).item() == pytest.approx(expected, rel=1e-5)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)


def test_reading_successors(tmp_path: Path) -> None:
    write(tmp_path / "a.txt.xz", "one\ntwo\nthree\n\nfour\ntwo\n")
    write(tmp_path / "b.txt", "five\nsix\n")
    text = read_successors("response", find_files(tmp_path, ".txt"))
    found = list(zip(text.source, text.target, strict=True))
    assert found == [("one", "two"), ("two", "three"), ("five", "six")]
    write(tmp_path / "c" / "a.txt", "one\n\ntwo\n")
    with pytest.raises(ValueError, match="no document has two different lines in a row; expected"):
        read_successors("response", find_files(tmp_path / "c", ".txt"))
    text = read_sentences("autoencoding", find_files(tmp_path, ".txt"))
    assert text.source == text.target == ["one", "two", "three", "four", "five", "six"]
    write(tmp_path / "d" / "a.txt", "\n\n")
    with pytest.raises(ValueError, match="contains no sentences"):
        read_sentences("autoencoding", find_files(tmp_path / "d", ".txt"))
    with pytest.raises(ValueError, match=r"no \.tsv file, compressed or not"):
        read_labelled("nli", find_files(tmp_path, ".tsv"))


LABELLED = "".join(f"{label}\ta {n}\tb {n}\n" for n, label in enumerate(INFERENCE_LABELS))


def test_reading_labelled_pairs(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", LABELLED)
    write(tmp_path / "b.tsv.xz", "sentence1\tsentence2\tgold_label\nc\td\tneutral\n")
    text = read_labelled("nli", find_files(tmp_path, ".tsv"))
    assert text.corpus == [*INFERENCE_LABELS, "neutral"]
    assert (text.source[-1], text.target[-1]) == ("c", "d")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{LABELLED}maybe\ta\tb\n", r"a\.tsv:4: unknown label 'maybe'; expected entailment"),
        (
            f"{LABELLED}neutral\ta\n",
            r"a\.tsv:4: the number of columns is 2; expected .* in columns 1, 2, 3",
        ),
        ("neutral\ta\tb\n", "its labels are neutral; add pairs so that each of entail"),
        ("-\ta\tb\n", "its labels are none; add pairs"),
    ],
)
def test_malformed_pairs(tmp_path: Path, content: str, message: str) -> None:
    write(tmp_path / "a.tsv", content)
    with pytest.raises(ValueError, match=message):
        read_labelled("nli", find_files(tmp_path, ".tsv"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    pairs = made_up_pairs(600, seed=1)
    (tmp_path / "data").mkdir()
    write_pairs(tmp_path / "data" / "xx-yy.tsv.xz", pairs)
    write(tmp_path / "dialogues" / "a.txt", "".join(f"{a}\n{b}\n\n" for a, b in pairs[:200]))
    write(tmp_path / "others" / "a.txt", "".join(f"{b}\n{a}\n\n" for a, b in pairs[:300]))
    lines = [f"{INFERENCE_LABELS[n % 3]}\t{a}\t{a}\n" for n, (a, _) in enumerate(pairs[:200])]
    write(tmp_path / "nli" / "a.tsv", "".join(lines))
    return tmp_path


def beside(data: Path, *names: str) -> list[str]:
    folders = {"nli": f"{data / 'nli'}:0.5", "quick-thought-2": data / "others"}
    tasks = [f"{name.removesuffix('-2')}={folders.get(name, data / 'dialogues')}" for name in names]
    return [word for task in tasks for word in ("--task", task)]


def command(data: Path, output: str, *options: str) -> list[str]:
    given = () if "--task" in options else beside(data, "nli", "response")
    return [
        *(str(data / "data"), "-o", str(data / output), "--vocabulary-size", "300"),
        *("--held-out", "50", "--quiet", "--dim", "16", "--batch-size", "32"),
        *given,
        *("--evaluate-every", "10", "--steps", "30", "--learning-rate", "0.01", *options),
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("response", "nli"),
        ("quick-thought", "skip-thought", "autoencoding"),
        ("quick-thought", "quick-thought-2"),
    ],
)
def test_a_mixture_goes_on_as_if_undisturbed(
    data: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(beside_tasks, "WIDTH", 64)
    tasks = beside(data, *names)
    assert train_encoder(command(data, "whole", *tasks)) == 0
    log = [json.loads(line) for line in (data / "whole" / PROGRESS / LOG).open()]
    for name in ("ranking", *names):
        assert all(entry[f"{name} loss"] > 0 for entry in log)
    for name in ("ranking", names[0]):
        assert log[-1][f"{name} loss"] < log[0][f"{name} loss"]

    steps = [0]
    advance = Training.advance

    def killed(self: Training, batches: list) -> float:
        steps[0] += 1
        if steps[0] == 16:
            raise KeyboardInterrupt
        return advance(self, batches)

    monkeypatch.setattr(Training, "advance", killed)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(train_encoder(command(data, "halves", *tasks)))
    monkeypatch.setattr(Training, "advance", advance)
    assert train_encoder(command(data, "halves", *tasks)) == 0
    for name in ("weights.safetensors", "tokenizer.model"):
        assert (data / "halves" / name).read_bytes() == (data / "whole" / name).read_bytes()
    logs = [
        [{**json.loads(line), "seconds": 0} for line in (data / run / PROGRESS / LOG).open()]
        for run in ("whole", "halves")
    ]
    assert logs[0] == logs[1]
    assert (data / "whole" / PROGRESS / STATE).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--task", "naming=x"),
            "--task naming: is unknown; choose one of response, ",
        ),
        (("--task", "nli=x:0"), "--task nli: the weight is 0.0; expected a finite number above 0"),
        (("--task", "quick-thought=/nowhere"), "/nowhere: folder not found"),
    ],
)
def test_tasks_that_cannot_be(
    data: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert train_encoder(command(data, "out", *options)) == 2
    assert message in capsys.readouterr().err


def test_tasks_are_drawn_by_their_weights(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    advance = Training.advance

    def noted(self: Training, batches: list) -> float:
        drawn.extend(pairs.name for pairs, _ in batches)
        return advance(self, batches)

    monkeypatch.setattr(Training, "advance", noted)
    assert train_encoder(command(data, "out", "--steps", "500", "--evaluate-every", "500")) == 0
    shares = [drawn.count(name) / len(drawn) for name in ("xx-yy", "response", "nli")]
    assert shares == pytest.approx([0.4, 0.4, 0.2], abs=0.07)
