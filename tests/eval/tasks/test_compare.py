"""eval-encoder compare: the figures are those of the tasks, the differences are paired."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from eval.cli.encoder import eval_encoder
from eval.metrics.bootstrap import RESAMPLES
from tests.eval.conftest import NumberEncoder, use_encoder, write_numbers
from tests.eval.tasks.test_suites import THIRDS, labelled, split, write

Captured = pytest.CaptureFixture[str]


class Forgetful(NumberEncoder):
    """Knows no number that 3 divides."""

    name = "forgetful"

    def _embed(self, sentences: list[str], *, normalize: bool) -> NDArray[np.float32]:
        return super()._embed(
            [
                " ".join(w for w in sentence.split() if not (w.isdecimal() and int(w) % 3 == 0))
                for sentence in sentences
            ],
            normalize=normalize,
        )


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    encoders = {"one": NumberEncoder(), "two": Forgetful(), "same": NumberEncoder()}
    use_encoder(monkeypatch, lambda spec: encoders[spec])
    folder = tmp_path / "data"
    for side, suffix in (("Satz", "deu"), ("phrase", "eng")):
        lines = [(f"{side} {n} {n // 2}",) for n in range(30)]
        write(folder / "tatoeba" / f"tatoeba.deu-eng.{suffix}", lines)
    for name in ("en", "de"):
        write(folder / "ntrex" / f"{name}.txt", [(f"{n} {n // 2}",) for n in range(1000)])
    write_numbers(folder / "bucc-style" / "de-en", "de-en", "training", first=0)
    write_numbers(folder / "bucc-style" / "de-en", "de-en", "sample", first=100)
    rows = split([(x, f"{3 + x} {n}") for n, (x, _) in enumerate(labelled(80))], *THIRDS)
    write(folder / "senteval" / "SST2.tsv", rows)
    (folder / "sick").mkdir()
    return folder


def compared(capsys: Captured, data: Path, *arguments: str | Path) -> dict:
    arguments = ("compare", "one", "two", "--data", data, "--lang", "de", "--json", *arguments)
    assert eval_encoder([str(one) for one in arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_figures_are_those_of_the_tasks(
    data: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compared(capsys, data, "--suite", "tatoeba", "mining", "senteval")["suites"]
    assert list(found) == ["tatoeba", "mining", "senteval"]
    for spec in ("one", "two"):
        told = {}
        for suite, arguments in (
            ("tatoeba", ["tatoeba", "--lang", "de"]),
            ("mining", ["bucc-style"]),
            ("senteval", ["senteval"]),
        ):
            task = {"mining": "bucc"}.get(suite, suite)
            command = [task, str(data / arguments[0]), *arguments[1:], "--encoder", spec, "--json"]
            assert eval_encoder(command) == 0
            told[suite] = json.loads(capsys.readouterr().out)
        name = next(iter(found["tatoeba"]["figures"]))
        for ours, theirs in (
            (found["tatoeba"]["figures"][name], told["tatoeba"]["figures"]["de"]["value"]),
            (found["mining"]["figures"]["de-en"], told["mining"]["pairs"]["de-en"]["test"]["f1"]),
            (found["senteval"]["figures"]["SST2"], told["senteval"]["figures"]["SST2"]["value"]),
        ):
            assert ours["figures"][spec]["value"] == pytest.approx(theirs)
    assert found["tatoeba"]["figures"][name]["lower_is_better"]


def test_differences_are_of_the_same_sentences(data: Path, capsys: Captured) -> None:
    """Against resampling whether each sentence is found by both, by one or by none."""
    figure = compared(capsys, data, "--suite", "xsim")["suites"]["xsim"]["figures"]["de"]
    (difference,) = figure["differences"]
    one, two = (
        np.array([n % 3 != 2 or encoder is not Forgetful for n in range(1000)])
        for encoder in (NumberEncoder, Forgetful)
    )
    assert one.all() and not two.all()
    assert difference["of"] == ["two", "one"] and difference["beyond_chance"]
    values = [figure["figures"][spec]["value"] for spec in ("one", "two")]
    assert difference["value"] == pytest.approx(values[1] - values[0])
    low, high = difference["interval"]
    assert low < difference["value"] < high
    if values[0] == 0:  # then the difference varies as the second figure does
        assert difference["interval"] == pytest.approx(figure["figures"]["two"]["interval"])
    assert RESAMPLES == 1000


def test_the_same_encoder_twice_differs_nowhere(data: Path, capsys: Captured) -> None:
    command = ["compare", "one", "same", "--data", str(data), "--suite", "tatoeba", "senteval"]
    assert eval_encoder([*command, "--lang", "de", "--json"]) == 0
    for suite in json.loads(capsys.readouterr().out)["suites"].values():
        for figure in suite["figures"].values():
            (difference,) = figure["differences"]
            assert difference["interval"] == [0, 0] and not difference["beyond_chance"]


def test_table_and_figure(data: Path, tmp_path: Path, capsys: Captured) -> None:
    drawn = tmp_path / "means.svg"
    command = ["compare", "one", "two", "same", "--data", str(data), "--suite", "xsim", "tatoeba"]
    assert eval_encoder([*command, "--lang", "de", "--figure", str(drawn)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        *("xsim", "one", "95%", "interval", "two", "95%", "interval", "same", "95%", "interval"),
        *("two", "-", "one", "same", "-", "one", "same", "-", "two"),
    ]
    assert lines[1].startswith("de ") and lines[1].count("*") == 2
    assert lines[-1].startswith("compare|encoders:numbers,forgetful,numbers|interval:paired-")
    root = ElementTree.fromstring(drawn.read_text(encoding="utf-8"))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"one", "two", "same", "xsim (error)", "tatoeba (error)"} <= set(texts)
    dots = [one for one in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(dots) == 3 + 2 * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one"], "pass 2 or more encoders, each once"),
        (["one", "one"], "pass 2 or more encoders, each once"),
        (
            ["one", "two", "--suite", "probe"],
            "en: file or folder not found; add it, or omit the suite probe",
        ),
    ],
)
def test_what_cannot_be_compared(
    data: Path, capsys: Captured, arguments: list[str], message: str
) -> None:
    assert eval_encoder(["compare", *arguments, "--data", str(data)]) == 2
    assert message in capsys.readouterr().err


def test_encoders_are_named_by_position_alone(data: Path, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        eval_encoder(["compare", "one", "two", "--data", str(data), "--encoder", "one"])
    assert "unrecognized arguments: --encoder one" in capsys.readouterr().err


def test_all_suites_that_are_there(tmp_path: Path, data: Path, capsys: Captured) -> None:
    for name in ("ntrex", "tatoeba", "senteval"):
        for path in (data / name).iterdir():
            path.unlink()
        (data / name).rmdir()
    assert list(compared(capsys, data)["suites"]) == ["mining"]
    assert eval_encoder(["compare", "one", "two", "--data", str(tmp_path)]) == 2
    assert "lacks the folders of every suite" in capsys.readouterr().err
