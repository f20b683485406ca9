"""Languages that are added to an encoder, which stays as it is."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from encoder import MORE, load_encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import Features
from encoder.checkpoint import CONFIG, TOKENIZER, WEIGHTS, read_config
from encoder.coverage import Coverage, read_coverage
from encoder.tokenizer import Tokenizer
from encoder.training.architectures.bag import Bag
from encoder.training.data import tokenize_pairs
from encoder.training.evaluation import PROGRESS
from encoder.training.loop import Training
from encoder.training.options import training_options
from encoder.training.reading import ParallelText
from encoder.training.tasks import make_task
from encoder.training.tasks.ranking import translation_ranking
from encoder.training.tasks.task import Setting
from pipelines.cli.train import train_encoder
from tests.encoder.training.language import made_up_triples, write_pairs

TRIPLES = made_up_triples(900, words=100, seed=1)
TRAINED = 700  # of them; the others are never seen
SMALL = (
    *("--vocabulary-size", "200", "--dim", "32", "--batch-size", "64", "--learning-rate", "0.03"),
    *("--steps", "100", "--evaluate-every", "50", "--held-out", "100", "--quiet"),
)
ADD = ("--objective", "addition", "--vocabulary-size", "100", "--ngram-rows", "300")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Encoder ``base`` of xx and yy, and text of zz and yy."""
    folder = tmp_path_factory.mktemp("place")
    for name, side in (("xx-yy", 0), ("zz-yy", 2)):
        (folder / name).mkdir()
        pairs = [(triple[side], triple[1]) for triple in TRIPLES[:TRAINED]]
        write_pairs(folder / name / f"{name}.tsv.xz", pairs)
    assert train_encoder([str(folder / "xx-yy"), "-o", str(folder / "base"), *SMALL]) == 0
    return folder


def add(place: Path, base: Path, *options: str) -> int:
    command = [str(place / "zz-yy"), "-o", str(base / MORE), "--teacher", str(base), *SMALL, *ADD]
    return train_encoder([*command, *options])


@pytest.fixture(scope="module")
def both(place: Path) -> Path:
    shutil.copytree(place / "base", place / "both")
    assert add(place, place / "both") == 0
    return place / "both"


def fresh(side: int) -> list[str]:
    return [triple[side] for triple in TRIPLES[TRAINED:]]


def found(source: np.ndarray, target: np.ndarray) -> float:
    """The share of vectors whose own one is nearest, or equally near; chance is 1 in 200."""
    cosines = source @ target.T
    return float((cosines.diagonal() >= cosines.max(axis=1) - 1e-6).mean())


def test_what_is_added_finds_translations_in_both_languages(both: Path) -> None:
    encoder = load_encoder(str(both))
    added = encoder.for_language("zz")
    vectors = added.encode(fresh(2))
    assert found(vectors, encoder.for_language("yy").encode(fresh(1))) > 0.9
    assert found(vectors, encoder.for_language("xx").encode(fresh(0))) > 0.8
    assert found(encoder.encode(fresh(2)), encoder.encode(fresh(1))) < 0.1
    assert isinstance(added, BagEncoder)
    words = added.words(fresh(2)[:1])
    summed = functional.normalize(torch.from_numpy(words.weights @ words.vectors), dim=0)
    np.testing.assert_allclose(summed, vectors[0], atol=1e-5)


def test_the_encoder_itself_stays_as_it_is(place: Path, both: Path) -> None:
    before, after = load_encoder(str(place / "base")), load_encoder(str(both))
    for language in (None, "xx", "yy", "tlh"):
        same = after.for_language(language)
        assert same.name.partition("@")[2] == before.name.partition("@")[2]
        assert same.encode(fresh(1)).tobytes() == before.encode(fresh(1)).tobytes()
    added = after.for_language("zz")
    assert added.name.startswith("both/more@") and added.name != after.name
    assert added is after.for_language("zz")


@pytest.mark.parametrize("trained_with", [True, False])
def test_names_have_the_encoders_vectors_too(
    both: Path, tmp_path: Path, *, trained_with: bool
) -> None:
    base = tmp_path / "both"
    shutil.copytree(both, base)
    config = json.loads((base / MORE / CONFIG).read_text())
    assert config["facts"].pop("names") is True
    if not trained_with:  # as before names were
        (base / MORE / CONFIG).write_text(json.dumps(config))
    encoder = load_encoder(str(base))
    assert isinstance(encoder, BagEncoder)
    text, name = fresh(2)[0], fresh(0)[0].split()[0].title()
    plain, named = encoder.for_language("zz").encode([text, f"{text} {name}"], normalize=False)
    alone = load_encoder(str(base / MORE)).encode([f"{text} {name}"], normalize=False)[0]
    beside = encoder.encode([name], normalize=False)[0] if trained_with else 0
    np.testing.assert_allclose(named, alone + beside, atol=1e-5)
    assert not np.allclose(named, plain)


def test_nothing_is_read_of_it_until_it_is_needed(both: Path, tmp_path: Path) -> None:
    shutil.copytree(both, tmp_path / "both")
    (tmp_path / "both" / MORE / WEIGHTS).unlink()
    encoder = load_encoder(str(tmp_path / "both"))
    encoder.for_language("yy").encode(["a"])
    with pytest.raises(ValueError, match=f"{MORE}: {WEIGHTS} is missing"):
        encoder.for_language("zz")


def test_it_is_not_added_to_another_encoder(place: Path, both: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert train_encoder([str(place / "xx-yy"), "-o", str(other), *SMALL, "--seed", "2"]) == 0
    shutil.copytree(both / MORE, other / MORE)
    with pytest.raises(ValueError, match=r"other/more: adds languages to both@\w+, but it is in"):
        load_encoder(str(other))


def test_interrupted_it_gives_the_same_weights(place: Path, both: Path, tmp_path: Path) -> None:
    base = tmp_path / "both"  # of the same name, which is the teacher's
    shutil.copytree(place / "base", base)
    rename = os.replace

    def interrupt(source: Path, target: Path) -> None:
        rename(source, target)
        if target.parent.name == PROGRESS:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.replace", interrupt)
        assert add(place, base) != 0
    assert (base / MORE / PROGRESS).is_dir()
    assert add(place, base) == 0
    for name in (WEIGHTS, TOKENIZER):
        assert (base / MORE / name).read_bytes() == (both / MORE / name).read_bytes()


def test_a_language_that_the_encoder_has_stays_its_own(both: Path, tmp_path: Path) -> None:
    shutil.copytree(both, tmp_path / "both")
    path = tmp_path / "both" / CONFIG
    known = {"zz": {"error": 0.0, "measured": "ntrex"}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "languages": known}))
    encoder = load_encoder(str(tmp_path / "both"))
    assert encoder.for_language("zz") is encoder


def test_training_begins_with_the_rows_of_another_bag(place: Path, both: Path) -> None:
    base = place / "begun" / "both"
    shutil.copytree(place / "base", base)
    # At this rate weights stay, but for the rounding that both have had.
    still = ("--start", str(both / MORE), "--learning-rate", "1e-12", "--steps", "1")
    assert add(place, base, *still) == 0
    before, after = load_encoder(str(both / MORE)), load_encoder(str(base / MORE))
    assert isinstance(before, BagEncoder) and isinstance(after, BagEncoder)
    np.testing.assert_allclose(after.rows(), before.rows(), atol=1e-6)
    assert after.tokenizer_model == before.tokenizer_model
    assert read_config(base / MORE)["facts"]["start"] == before.name


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--ngram-rows", "299"),
            "other dimensions or n-gram rows than this training; pass --dim 32 --ngram-rows 300",
        ),
        (
            ("--architecture", "bilstm", "--objective", "ranking"),
            "is not a network of 'adit train'; pass",
        ),
    ],
)
def test_what_training_cannot_begin_with(
    place: Path,
    both: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    told: str,
) -> None:
    objective = () if "ranking" in options else (*ADD, "--teacher", str(place / "base"))
    command = [str(place / "zz-yy"), "-o", str(tmp_path / "out"), "--start", str(both / MORE)]
    assert train_encoder([*command, *SMALL, *objective, *options]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


def test_languages_and_their_errors(both: Path, tmp_path: Path) -> None:
    config = read_config(both / MORE)
    assert list(config["facts"]["pairs"]) == ["zz-yy"]
    assert config["facts"]["held_out_error"]["zz-yy"] < 0.1
    for folder, name in ((tmp_path, "en"), (tmp_path / MORE, "sv")):
        folder.mkdir(exist_ok=True)
        text = f'{{"languages": {{"{name}": {{"error": 0.5, "measured": "ntrex"}}}}}}'
        (folder / CONFIG).write_text(text)
    known = Coverage(error=0.5, measured="ntrex")
    assert read_coverage(str(tmp_path)) == {"en": known, "sv": known}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--dim", "16"), "--dim 16: the --teacher has 32 dimensions; pass --dim 32"),
        (
            ("--architecture", "bilstm"),
            "--architecture bilstm conflicts with --objective addition; use",
        ),
        (
            ("--whitening", "0.1"),
            "--whitening does not apply to --architecture bag with --objective",
        ),
    ],
)
def test_what_cannot_be_added(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    shutil.copytree(place / "base", tmp_path / "base")
    given = [part for part in ADD if "bilstm" not in options or part not in ADD[-2:]]
    command = [str(place / "zz-yy"), "-o", str(tmp_path / "base" / MORE), *SMALL, *given]
    assert train_encoder([*command, "--teacher", str(tmp_path / "base"), *options]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


def test_the_loss_is_that_of_ranking_against_the_encoders_vectors(
    tokenizer: Tokenizer,
) -> None:
    table = np.random.default_rng(1).standard_normal((len(tokenizer), 8), dtype=np.float32)
    base = BagEncoder(name="base", tokenizer=tokenizer, table=table)
    text = ParallelText(
        name="zz-yy", source=fresh(2)[:9], target=fresh(1)[:8] + fresh(1)[:1], corpus=["c"] * 9
    )
    text.source[0] += f" {text.target[0].title()}"  # names
    options = training_options(objective="addition", dim=8, token_dropout=0.0, batch_size=9)
    setting = Setting(options=options, vocabulary=len(tokenizer), texts=[text], teacher=base)
    model, task = Bag(Features(tokenizer.pieces()), 8), make_task(setting, {}, [])
    pairs = tokenize_pairs(text, tokenizer, {}, one_sided=True)
    target = torch.from_numpy(base.encode(text.target))
    source = model(tokenizer.encode(text.source))
    named = base.encode([text.target[0].title()], normalize=False)
    source = torch.cat([source[:1] + torch.from_numpy(named), source[1:]])
    expected = translation_ranking(functional.normalize(source), target, scale=20, margin=0.2)
    loss = Training(model, task, options).advance([(pairs, np.arange(9))])
    assert loss == pytest.approx(expected.item(), rel=1e-3)
