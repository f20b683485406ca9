"""What is measured on the way is what eval-encoder tells afterwards."""

import json
from pathlib import Path

import pytest

from encoder.training.evaluation import LOG, PROGRESS
from eval.cli.encoder import eval_encoder
from eval.tasks.while_training import bucc_f1, tatoeba_error
from pipelines.cli.train import train_encoder
from tests.encoder.training.language import made_up_pairs, write_pairs
from tests.eval.conftest import NumberEncoder, write_numbers, write_split

SMALL = (
    *("--vocabulary-size", "300", "--dim", "32", "--steps", "80", "--batch-size", "64"),
    *("--learning-rate", "0.05", "--held-out", "50", "--evaluate-every", "40"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs to train on and both evaluation sets, of one made-up language, xx."""
    made = tmp_path_factory.mktemp("sets")
    pairs = made_up_pairs(900, seed=1)
    for name in ("train", "tatoeba", "bucc"):
        (made / name).mkdir()
    write_pairs(made / "train" / "xx-en.tsv.xz", pairs[:600])
    for side, suffix in enumerate(("xx", "eng")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs[600:700])
        (made / "tatoeba" / f"tatoeba.xx-eng.{suffix}").write_text(lines)
    for split, first in (("sample", 700), ("training", 800)):
        some = list(enumerate(pairs[first : first + 100]))
        write_split(
            made / "bucc" / "xx-en",
            "xx-en",
            split,
            source="".join(f"xx-{row}\t{source}\n" for row, (source, _) in some[:70]),
            target="".join(f"en-{row}\t{target}\n" for row, (_, target) in some[30:]),
            gold="".join(f"xx-{row}\ten-{row}\n" for row in range(30, 70)),
        )
    return made


def test_a_training_is_measured_as_its_encoder_is(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = ("--tatoeba", str(folder / "tatoeba"), "--bucc", str(folder / "bucc"))
    command = [str(folder / "train"), "-o", str(tmp_path / "enc"), *SMALL, *sets, "--quiet"]
    assert train_encoder([*command, "--best-by", "bucc_f1"]) == 0
    told = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    log = [json.loads(line) for line in (tmp_path / "enc" / PROGRESS / LOG).open()]
    f1s = [entry["bucc_f1"] for entry in log]
    assert len(log) == 2 and f1s[0] < max(f1s)
    (best,) = [entry for entry in log if entry["best"]][-1:]
    assert best["bucc_f1"] == max(f1s)
    assert best["parts"].keys() == {"held_out_error", "tatoeba_error", "bucc_f1"}
    assert [line[:2] for line in told] == [
        ["xx-en", "held_out_error"],
        ["xx", "tatoeba_error"],
        ["xx-en", "bucc_f1"],
    ]
    # What is saved is rounded to int8, and so may part one sentence in a hundred from another.
    encoder = ("--encoder", str(tmp_path / "enc"), "--json")
    eval_encoder(["tatoeba", str(folder / "tatoeba"), "--lang", "xx", *encoder])
    record = json.loads(capsys.readouterr().out)
    rate = record["figures"]["xx"]["value"]
    assert rate == pytest.approx(best["tatoeba_error"], abs=0.02)
    eval_encoder(["bucc", str(folder / "bucc"), *encoder])
    record = json.loads(capsys.readouterr().out)
    assert record["pairs"]["xx-en"]["tune"]["f1"] == pytest.approx(best["bucc_f1"], abs=0.03)


def test_what_is_measured_of_numbers(tmp_path: Path) -> None:
    """Of languages that are trained only; the gold of one pair misses one of twelve."""
    for pair in ("de-en", "fr-en"):
        write_numbers(tmp_path / "bucc" / pair, pair, "training", first=0)
    measure = bucc_f1(tmp_path / "bucc", ["de-en", "es-en"])
    assert measure.parts == ["de-en"]
    assert measure.take(NumberEncoder()) == {"de-en": pytest.approx(2 * 11 / (12 + 11))}
    assert measure.best([0.1, 0.4, 0.4]) and not measure.best([0.4, 0.3])
    for code in ("deu", "fra"):
        (tmp_path / f"tatoeba.{code}-eng.{code}").write_text("eins 1\nzwei 2\ndrei 3\nvier 3\n")
        (tmp_path / f"tatoeba.{code}-eng.eng").write_text("one 1\ntwo 2\nthree 3\nfour\n")
    measure = tatoeba_error(tmp_path, ["de-en", "es-en"])
    assert measure.parts == ["de"]
    assert measure.take(NumberEncoder()) == {"de": pytest.approx((1 / 4 + 1 / 4) / 2)}
    assert measure.best([0.4, 0.1, 0.1]) and not measure.best([0.3, 0.4])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            "--tatoeba ROOT/tatoeba --pairs-of zz",
            "--tatoeba ROOT/tatoeba: no sentences of the languages of zz-yy",
        ),
        (
            "--bucc ROOT/bucc --pairs-of zz",
            "--bucc ROOT/bucc: no gold pairs of the languages of zz-yy",
        ),
        ("--bucc ROOT/no", "ROOT/no: folder not found"),
        ("--tatoeba ROOT/bucc", "ROOT/bucc: no Tatoeba data; expected "),
        ("--best-by bucc_f1", "--best-by bucc_f1 requires --bucc DIR"),
        (
            "--best-by tatoeba_error --bucc ROOT/bucc",
            "--best-by tatoeba_error requires --tatoeba DIR",
        ),
    ],
)
def test_sets_that_are_not_there(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, line: str
) -> None:
    data = folder / "train"
    if options.endswith(" --pairs-of zz"):
        options, data = options.removesuffix(" --pairs-of zz"), tmp_path / "other"
        data.mkdir()
        write_pairs(data / "zz-yy.tsv.xz", made_up_pairs(10, seed=1))
    given = options.replace("ROOT", str(folder)).split()
    assert train_encoder([str(data), "-o", str(tmp_path / "enc"), *given]) == 2
    expected = f"train-encoder: error: {line.replace('ROOT', str(folder))}"
    assert capsys.readouterr().err.startswith(expected)
    assert not (tmp_path / "enc").exists()


def test_languages_that_are_not_measured_are_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert tatoeba_error(folder / "tatoeba", ["xx-en"]).parts == ["xx"]
    assert not caplog.messages
    assert tatoeba_error(folder / "tatoeba", ["xx-en", "qq-en", "qp-xx"]).parts == ["xx"]
    assert (
        len(caplog.messages) == 1
        and " qp, qq, so errors in these are unknown" in caplog.messages[0]
    )
