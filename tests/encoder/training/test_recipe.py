"""From parallel text to an encoder on disk, by way of the command line train-encoder."""

import itertools
import json
import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import encoder.training.recipe
from encoder import load_encoder
from encoder.checkpoint import CONFIG, TOKENIZER, WEIGHTS
from encoder.training.evaluation import retrieval_error
from encoder.training.options import Recipe, training_options
from encoder.training.reading import ParallelText
from encoder.training.recipe import sample_sentences, train_encoder
from pipelines.cli.train import train_encoder as command
from tests.encoder.training.language import Alike, made_up_pairs, write_pairs

PAIRS = 1600
SMALL = (
    *("--vocabulary-size", "300", "--dim", "32", "--steps", "120", "--batch-size", "64"),
    *("--learning-rate", "0.03", "--held-out", "150", "--evaluate-every", "70"),
)


SENTENCES = [sentence for pair in made_up_pairs(400, seed=2) for sentence in pair]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two language pairs; the second has two corpora, one of them useless."""
    folder = tmp_path_factory.mktemp("data")
    write_pairs(folder / "xx-yy.tsv.xz", made_up_pairs(PAIRS, seed=1))
    write_pairs(folder / "zz-yy.tsv.xz", made_up_pairs(400, seed=2), corpus="other")
    (folder / "README").write_text("not data")
    return folder


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """What a command sets for its whole process is put back."""
    loggers = [logging.getLogger(n) for n in (None, "apache_beam", "encoder", "miner", "pipelines")]
    levels = [logger.level for logger in loggers]
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading at length fails the test."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(encoder.training.recipe, "read_text", refuse)


def run(*arguments: object) -> int:
    try:
        return command([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse's own refusal
        assert isinstance(stop.code, int)
        return stop.code


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("trained") / "enc"
    assert run(data, "-o", output, "--pairs", "xx-yy", "--quiet", *SMALL) == 0
    return output


def test_a_made_up_language_is_learnt(trained: Path) -> None:
    """Sentences never seen, none of the words' spelling shared: chance is 1 in 300."""
    encoder = load_encoder(str(trained))
    assert encoder.name.startswith("enc@") and encoder.dim == 32
    fresh = made_up_pairs(PAIRS + 300, seed=1)[PAIRS:]
    source, target = (encoder.encode(list(side)) for side in zip(*fresh, strict=True))
    cosines = source @ target.T
    for axis in (0, 1):
        assert (cosines.argmax(axis=axis) != np.arange(300)).mean() < 0.1


def test_what_the_encoder_tells_of_its_training(trained: Path) -> None:
    config = json.loads((trained / CONFIG).read_text(encoding="utf-8"))
    facts = config["facts"]
    assert (config["vocabulary"], config["dim"]) == (300, 32)
    assert facts["pairs"] == {"xx-yy": {"made-up": PAIRS - 150}}
    assert facts["steps"] == facts["options"]["steps"] == 120
    assert facts["options"]["learning_rate"] == 0.03
    assert 0 <= facts["held_out_error"]["xx-yy"] < 0.1


def test_without_a_learning_rate_it_keeps_the_first_weights(data: Path, tmp_path: Path) -> None:
    still = ("--learning-rate", "0", "--steps", "1", "--quiet")
    assert run(data, "-o", tmp_path / "enc", *SMALL, *still) == 0
    assert load_encoder(str(tmp_path / "enc")).dim == 32


def test_one_seed_gives_one_encoder(data: Path, tmp_path: Path) -> None:
    """A language pair that is named twice is still one."""
    weights, vocabularies = [], []
    for run_number, (seed, pairs) in enumerate([(1, "zz-yy"), (1, "zz-yy,zz-yy"), (2, "zz-yy")]):
        output = tmp_path / str(run_number)
        given = ("--pairs", pairs, "--seed", seed, "--steps", "15", "--quiet")
        assert run(data, "-o", output, *SMALL, *given) == 0
        weights.append((output / WEIGHTS).read_bytes())
        vocabularies.append((output / TOKENIZER).read_bytes())
    assert weights[0] == weights[1] != weights[2]
    assert vocabularies[0] == vocabularies[1] != vocabularies[2]


def test_all_pairs_are_trained_and_reported(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = ("--corpus-weight", "other=0.5", "--exclude", "absent", "--steps", "3")
    assert run(data, "-o", tmp_path / "enc", *SMALL, *given) == 0
    out, _ = capsys.readouterr()
    (told,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert told.getMessage() == (
        "--exclude absent: no pair is of that corpus, so nothing changes; pass one of made-up, "
        "other"
    )
    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[:2] for line in lines] == [
        ["xx-yy", "held_out_error"],
        ["zz-yy", "held_out_error"],
    ]
    assert all(re.fullmatch(r"\d+\.\d\d%", line[2]) for line in lines)
    facts = json.loads((tmp_path / "enc" / CONFIG).read_text(encoding="utf-8"))["facts"]
    assert facts["corpus_weights"] == {"other": 0.5}
    assert facts["excluded"] == ["absent"]
    assert facts["pairs"]["zz-yy"] == {"other": 250}


def test_an_interrupted_training_leaves_its_last_encoder(data: Path, tmp_path: Path) -> None:
    recipe = Recipe(
        files={"zz-yy": (data / "zz-yy.tsv.xz",)},
        vocabulary_size=300,
        held_out=50,
        evaluate_every=2,
        options=training_options(dim=8, steps=100, batch_size=16),
    )
    steps, begun = itertools.count(1), []

    def interrupt() -> None:
        if next(steps) in (6, 8):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_encoder(recipe, tmp_path / "enc", on_begin=begun.append, on_step=interrupt)
    assert begun == [0, 4]
    config = json.loads((tmp_path / "enc" / CONFIG).read_text(encoding="utf-8"))
    assert config["facts"]["steps"] == 4
    assert load_encoder(str(tmp_path / "enc")).dim == 8


def test_the_retrieval_error_is_the_mean_of_both_directions() -> None:
    vectors = {
        "a": (1.0, 0.0),
        "b": (0.0, 1.0),
        "c": (0.8, 0.6),
        "A": (1.0, 0.0),
        "B": (0.0, 1.0),
        "C": (0.5, 0.5),
    }

    class Fixed(Alike):
        def encode(self, sentences: list[str]) -> np.ndarray:
            return np.array([vectors[one] for one in sentences], dtype=np.float32)

    text = ParallelText(name="x", source=["a", "b", "c"], target=["A", "B", "C"], corpus=["x"] * 3)
    assert retrieval_error(Fixed(), text) == pytest.approx((1 / 3 + 0) / 2)  # c finds A, C finds c
    vectors["C"] = (-1.0, 0.0)
    assert retrieval_error(Fixed(), text) == pytest.approx((1 / 3 + 1 / 3) / 2)  # and C finds b
    vectors["C"] = (0.8, 0.6)
    assert retrieval_error(Fixed(), text) == 0


BAD_OPTIONS = [
    ("--steps 0", "--steps 0: expected 1 or more"),
    ("--batch-size 0", "--batch-size 0: expected 2 or more"),
    ("--dim 0", "--dim 0: expected 1 or more"),
    ("--dim x", "argument --dim: invalid int value: 'x'"),
    ("--token-dropout 1", "--token-dropout 1.0: expected 0 to 0.99"),
    ("--learning-rate nan", "--learning-rate nan: expected 0 to 1"),
    ("--scale 100", "--scale 100.0: expected 0 to 40"),
    ("--margin -1", "--margin -1.0: expected 0 to 1"),
    ("--language-exponent 2", "--language-exponent 2.0: expected 0 to 1"),
    ("--at-once 0", "--at-once 0: expected 1 or more"),
    ("--best-by f1", "argument --best-by: invalid choice: 'f1'"),
    ("--precision float8", "argument --precision: invalid choice: 'float8'"),
    ("--seed -1", "--seed -1: expected 0 to "),
    ("--vocabulary-size 0", "--vocabulary-size 0: expected 1 or more"),
    ("--held-out 0", "--held-out 0: expected 1 or more"),
    ("--evaluate-every 0", "--evaluate-every 0: expected 1 or more"),
    ("--corpus-weight a=2", "argument --corpus-weight: expected NAME=W with W from 0 to 1"),
    ("--corpus-weight a=nan", "argument --corpus-weight: expected NAME=W"),
    ("--corpus-weight a", "argument --corpus-weight: expected NAME=W"),
    ("--corpus-weight =1", "argument --corpus-weight: expected NAME=W"),
    ("--pairs xx-yy,aa-bb", "--pairs aa-bb: not in DATA; use xx-yy, zz-yy"),
    ("--pairs=", "--pairs : not in DATA; use xx-yy, zz-yy"),
    ("--architecture bilstm --dim 7", "--dim 7: --architecture bilstm requires a multiple of 2; "),
    ("--architecture transformer --dim 9", "--dim 9: --architecture transformer requires a mul"),
]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(("options", "line"), BAD_OPTIONS)
def test_bad_options_are_refused_at_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, line: str
) -> None:
    assert run(data, "-o", tmp_path / "enc", *options.split()) == 2
    assert last_line(capsys).startswith(line.replace("DATA", str(data)))
    assert not list(tmp_path.iterdir())


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of the error; only argparse writes its usage above it."""
    out, err = capsys.readouterr()
    *above, line = err.splitlines()
    assert out == ""
    assert not above or above[0].startswith("usage:") or "error" not in "".join(above)
    assert line.startswith("train-encoder: error: ")
    return line.removeprefix("train-encoder: error: ")


@pytest.mark.usefixtures("no_work")
def test_bad_places_are_refused_at_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, file = tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.write_text("")
    for folder, output, line in (
        (tmp_path / "no", empty, f"{tmp_path / 'no'}: folder not found; check its path"),
        (file, empty, f"{file}: is a file; pass its folder"),
        (
            empty,
            empty,
            f"{empty}: contains no parallel text; expected files XX-YY.tsv, .parquet, .jsonl or "
            ".tmx, or XX-YY.XX with XX-YY.YY",
        ),
        (data, file, f"-o {file}: is a file; name a folder"),
        (data, file / "b", f"-o {file}: is a file; name a folder"),
    ):
        assert run(folder, "-o", output) == 2
        assert last_line(capsys) == line
    assert sorted(tmp_path.iterdir()) == [empty, file]
    assert not list(empty.iterdir())


@pytest.mark.usefixtures("no_work")
def test_a_folder_that_may_not_be_written_is_refused_at_once(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forbidden: list[Path] = [tmp_path]
    monkeypatch.setattr("os.access", lambda path, mode: path not in forbidden)
    assert run(data, "-o", tmp_path / "enc") == 2
    assert last_line(capsys) == f"-o {tmp_path}: is not writable; check its permissions"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            "--held-out 201 --pairs zz-yy",
            "--held-out 201: zz-yy has too few pairs, 400, less than twice as many; lower it",
        ),
        ("--exclude other", "DATA/zz-yy.tsv.xz: --exclude other leaves no pair; exclude"),
        (
            "--corpus-weight other=0",
            "--corpus-weight: all training pairs of zz-yy are of corpora of weight 0;",
        ),
        (
            "--vocabulary-size 9000",
            "--vocabulary-size 9000: this text yields at most ",
        ),
    ],
)
def test_text_that_does_not_do_is_refused_before_training(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    line: str,
) -> None:
    monkeypatch.delattr(encoder.training.recipe, "train")
    assert run(data, "-o", tmp_path / "enc", *SMALL, *options.split()) == 2
    assert last_line(capsys).startswith(line.replace("DATA", str(data)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_recipe_checks_its_weights(weight: float) -> None:
    with pytest.raises(ValueError, match=f"^--corpus-weight c={weight}: expected 0 to 1$"):
        Recipe(files={}, corpus_weights={"c": weight})


@pytest.mark.parametrize("weight", [0.0, float("inf"), float("nan")])
def test_a_recipe_checks_its_rates(weight: float) -> None:
    with pytest.raises(ValueError, match=f"^--pair-weight a-b={weight}: expected a finite number"):
        Recipe(files={"a-b": ()}, pair_weights={"a-b": weight})


def test_a_recipe_names_the_pairs_that_can_be_weighted() -> None:
    with pytest.raises(
        ValueError, match=r"^--pair-weight b: the training has no such text; choose among a-b$"
    ):
        Recipe(files={"a-b": ()}, pair_weights={"b": 2})


def test_the_help_gives_the_most_common_default_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "attention; default: 1, transformer 3)" in told
    assert "(0 to 1; default: 0.001, bag 0.002, transformer 0.0005)" in told


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_sentences_of_the_vocabulary_are_drawn_by_a_power_of_their_number(exponent: float) -> None:
    sizes = 900, 100
    texts = [
        ParallelText(
            name=f"{name}-en",
            source=[f"{name} {n}" for n in range(size)],
            target=["en"] * size,
            corpus=["c"] * size,
        )
        for name, size in zip(("aa", "bb"), sizes, strict=True)
    ]
    recipe = Recipe(files={})
    drawn = [*sample_sentences(recipe, texts, 60, exponent=exponent)]
    parts = [size**exponent for size in sizes]
    for text, part in zip(texts, parts, strict=True):
        count = sum(one.startswith(text.name[:2]) for one in drawn)
        assert count == min(int(120 * part / sum(parts)), len(text))
    assert drawn.count("en") == sum(int(120 * part / sum(parts)) // 3 for part in parts)
