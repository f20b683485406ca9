"""``adit bootstrap`` on made-up languages: rounds, their seals, what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from encoder import load_encoder
from pipelines.cli.train import rounds as command
from pipelines.cli.train import train_encoder
from pipelines.making_options import BootstrapOptions, RoundOptions
from pipelines.progress import Monitor
from pipelines.run import bootstrap as rounds
from pipelines.run.bootstrap import _keep, _recipe
from tests.encoder.training.language import made_up_pairs, write_pairs

PAIRS = made_up_pairs(2500, seed=1)
KNOWN = 250
SMALL = (
    *("--src-lang", "qax", "--tgt-lang", "qay", "--dim", "32", "--vocabulary-size", "200"),
    *("--ngram-rows", "0", "--batch-size", "64", "--steps", "200", "--learning-rate", "0.03"),
    *("--held-out", "50", "--quiet"),
)
FIRST = (
    *("--dim", "32", "--vocabulary-size", "200", "--batch-size", "64", "--learning-rate", "0.03"),
    *("--steps", "150", "--held-out", "50", "--quiet"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A weak encoder of a few known pairs, and two corpora."""
    folder = tmp_path_factory.mktemp("bootstrap")
    (folder / "known").mkdir()
    write_pairs(folder / "known" / "known.qax-qay.tsv.xz", PAIRS[:KNOWN])
    assert train_encoder([str(folder / "known"), "-o", str(folder / "first"), *FIRST]) == 0
    generator = np.random.default_rng(1)
    for side, name in enumerate(("qax", "qay")):
        lines = [pair[side] for pair in PAIRS[KNOWN:]]
        order = generator.permutation(len(lines))
        (folder / name).write_text("\n".join(lines[row] for row in order) + "\n")
    return folder


def call(place: Path, output: Path, *options: str) -> int:
    sides = [str(place / "qax"), str(place / "qay"), "-o", str(output)]
    given = ["--encoder", str(place / "first"), *SMALL, *options]
    return command([*sides, *given])


@pytest.fixture(scope="module")
def made(place: Path) -> Path:
    known = str(place / "known" / "known.qax-qay.tsv.xz")
    assert call(place, place / "made", "--known", known, "--rounds", "2") == 0
    return place / "made"


def right(encoder: str) -> float:
    source, target = (
        load_encoder(encoder).encode([pair[side] for pair in PAIRS[KNOWN:]]) for side in (0, 1)
    )
    return float(((source @ target.T).argmax(axis=1) == np.arange(len(source))).mean())


def test_the_encoder_is_better_than_the_first_one(place: Path, made: Path) -> None:
    assert right(str(made)) > right(str(place / "first")) + 0.1


def test_each_round_is_sealed_with_its_figures(made: Path) -> None:
    first, second = (
        json.loads((made / "rounds" / str(number) / "round.json").read_text()) for number in (1, 2)
    )
    assert set(first) == {"pairs", "kept by", "mutual"}
    assert first["pairs"] > 100
    assert first["mutual"] < second["mutual"]


def test_sealed_rounds_are_not_taken_again_and_a_cut_one_ends_in_the_same_bytes(
    place: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = str(place / "known" / "known.qax-qay.tsv.xz")
    before = (made / "weights.safetensors").read_bytes()
    stamp = (made / "rounds" / "1" / "round.json").stat().st_mtime_ns
    (made / "rounds" / "2" / "round.json").unlink()
    shutil.rmtree(made / "rounds" / "1" / "encoder")
    (made / "weights.safetensors").unlink()
    assert call(place, made, "--known", known, "--rounds", "2") == 0
    assert (made / "weights.safetensors").read_bytes() == before
    assert (made / "rounds" / "1" / "round.json").stat().st_mtime_ns == stamp
    assert "round 1\t" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mutual", "best"), [((307, 542, 541, 600), 2), ((307, 542, 500), 1), ((30, 40, 50, 60), 3)]
)
def test_rounds_end_where_no_more_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutual: tuple[int, ...], best: int
) -> None:
    figures = iter([{"pairs": 9, "kept by": "fdr", "mutual": count} for count in mutual])
    trained = iter(range(1, 9))

    def train(*_: object) -> str:
        folder = tmp_path / str(next(trained))
        folder.mkdir()
        for name in ("tokenizer.model", "weights.safetensors", "config.json"):
            (folder / name).write_text(folder.name)
        return str(folder)

    monkeypatch.setattr(rounds, "_begin", lambda *_: None)
    monkeypatch.setattr(rounds, "_mine_round", lambda *_: next(figures))
    monkeypatch.setattr(rounds, "_train_round", train)
    options = BootstrapOptions(
        source="qax",
        target="qay",
        output=tmp_path,
        encoder="first",
        languages=("qax", "qay"),
        each=RoundOptions(rounds=3),
    )
    rounds.bootstrap(options, Monitor())
    assert (tmp_path / "weights.safetensors").read_text() == str(best)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--steps", "70"), "contains a bootstrap with steps 200, but this one has 70"),
        (("--src-lang", "qaz"), "lacks the languages qaz-qay; rename it to known.qaz-qay.tsv.xz"),
        (("--known", "none"), "none: file not found"),
        (("--known", "qax"), "name lacks the languages qax-qay"),
        (("--fdr", "2"), "--fdr 2.0: expected 0.0001 to 0.5"),
        (("--encoder", "nothing"), "encoder 'nothing' is unknown"),
    ],
)
def test_what_does_not_fit_is_one_line(
    place: Path,
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(place)
    known = ("--known", "known/known.qax-qay.tsv.xz")
    assert call(place, made, *known, *options) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_rounds_of_other_corpora_are_refused(
    place: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (place / "qax").read_text()
    (place / "qax").write_text(text + "more\n")
    known = str(place / "known" / "known.qax-qay.tsv.xz")
    assert call(place, made, "--known", known) == 2
    assert "a bootstrap with corpora" in capsys.readouterr().err
    (place / "qax").write_text(text)


def test_too_few_pairs_to_train_on_are_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("qax", "qay"):
        lines = (place / name).read_text().splitlines()[:30]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "first").symlink_to(place / "first")
    assert call(tmp_path, tmp_path / "out") == 2
    assert "--held-out 50: " in capsys.readouterr().err


def test_a_round_that_mines_no_pair_says_so(tmp_path: Path) -> None:
    none = pa.table({name: pa.array([], pa.string()) for name in ("source_text", "target_text")})
    parquet.write_table(none, tmp_path / "mined.parquet")
    with pytest.raises(
        ValueError, match=r"mined.parquet: of the best 0 of 0 pairs, none usable.*; use other text"
    ):
        _keep(tmp_path / "mined.parquet", tmp_path / "kept.parquet", 1.0, "fdr 0.1")


def test_a_round_of_few_pairs_has_few_subwords(tmp_path: Path) -> None:
    """More than the text of a round allows were an error, and it is not known before."""
    options = BootstrapOptions(
        source=tmp_path,
        target=tmp_path,
        languages=("qax", "qay"),
        output=tmp_path,
        encoder="mini",
        each=RoundOptions(vocabulary_size=5000),
    )
    for pairs, size in ((700, 700), (6000, 5000)):
        assert _recipe(options, tmp_path, pairs).vocabulary_size == size
