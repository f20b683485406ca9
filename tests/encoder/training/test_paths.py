"""An encoder and a decoder for each language, trained on N-way text."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from encoder import load_encoder
from encoder.checkpoint import CONFIG, WEIGHTS
from encoder.training.data import TokenPairs, all_pairs, join_targets
from encoder.training.evaluation import LOG, PROGRESS, STATE
from encoder.training.loop import Training
from encoder.training.options import training_options
from encoder.training.reading import ParallelText
from encoder.training.tasks import make_task
from encoder.training.tasks.paths import Paths, find_paths, source_languages
from encoder.training.tasks.task import Setting
from pipelines.cli.train import train_encoder
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.test_tokenizer import tokens_of
from tests.encoder.training.language import made_up_triples, write_pairs
from tests.encoder.training.stopping import stopped_after

LANGUAGES = "de", "es", "fr", "en"
TRIPLES = made_up_triples(400, words=20, seed=1)
SMALL = (
    *("--objective", "paths", "--architecture", "bilstm", "--dim", "64", "--decoder-dim", "48"),
    *("--vocabulary-size", "90", "--batch-size", "24", "--learning-rate", "0.03"),
    *("--held-out", "100", "--dropout", "0", "--quiet"),
)


def text(name: str, pairs: list[tuple[str, str]]) -> ParallelText:
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    return ParallelText(name=name, source=source, target=target, corpus=["c"] * len(pairs))


def slowly_joined(texts: list[list[tuple[str, str]]]) -> list[tuple[str, ...]]:
    """Rows of a sentence of each language and the target, in the order of the first text."""
    rows: list[tuple[str, ...]] = []
    for _, target in texts[0]:
        found = [[source for source, other in pairs if other == target] for pairs in texts]
        if all(found):
            row = (*(sources[0] for sources in found), target)
            if not any(one in {other[place] for other in rows} for place, one in enumerate(row)):
                rows.append(row)
    return rows


PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("stuvw")), max_size=8)


@given(st.lists(PAIRS, min_size=2, max_size=3))
def test_rows_are_those_of_the_slow_way(texts: list[list[tuple[str, str]]]) -> None:
    expected = slowly_joined(texts)
    named = [text(f"x{number}-en", pairs) for number, pairs in enumerate(texts)]
    if not expected:
        with pytest.raises(ValueError, match="no target sentence is in all of them"):
            join_targets(named)
        return
    joined = join_targets(named)
    assert [tuple(row) for row in zip(*(one.source for one in joined), strict=True)] == [
        row[:-1] for row in expected
    ]
    assert all(one.target == [row[-1] for row in expected] for one in joined)


def test_text_of_each_two_languages() -> None:
    joined = [text("de-en", [("a", "x"), ("b", "y")]), text("fr-en", [("c", "x"), ("d", "y")])]
    found = {one.name: (one.source, one.target) for one in all_pairs(joined, ["de", "fr", "en"])}
    assert found["de-fr"] == (["a", "b"], ["c", "d"])
    assert found["fr-en"] == (["c", "d"], ["x", "y"])
    assert list(found) == ["de-fr", "de-en", "fr-en"]


@pytest.mark.parametrize(
    ("targets", "sources", "expected"),
    [
        ("en", "1", {"de": "en", "es": "en", "fr": "en"}),
        ("en", "2", {"de+es": "en", "de+fr": "en", "es+fr": "en"}),
        ("en", "3", {"de+es+fr": "en"}),
        ("en,es", "1", {"de": "en,es", "es": "en", "fr": "en,es", "en": "es"}),
        ("de,en", "3", {"de+es+fr": "en", "es+fr+en": "de"}),
    ],
)
def test_the_paths(targets: str, sources: str, expected: dict[str, str]) -> None:
    options = training_options(
        objective="paths", targets=tuple(targets.split(",")), sources=(sources,)
    ).objective
    paths = find_paths(LANGUAGES, options)
    assert {name: ",".join(path.targets) for name, path in paths.items()} == expected
    assert all(path.share == pytest.approx(1 / len(expected)) for path in paths.values())


def test_shares_of_paths_and_who_has_an_encoder() -> None:
    options = training_options(objective="paths", sources=("1:.9", "2:.05", "3:.05")).objective
    paths = find_paths(LANGUAGES, options)
    ones = [path.share for path in paths.values() if len(path.sources) == 1]
    assert sum(ones) == pytest.approx(0.9)
    assert [path.share for path in paths.values() if len(path.sources) == 3] == [0.05]
    assert source_languages(paths) == ["de", "es", "fr"]


def nway() -> list[TokenPairs]:
    """Ten rows of sentences in four languages, of the ids 0 to 9."""
    generator = np.random.default_rng(1)
    sides = [
        tokens_of(
            [generator.integers(10, size=generator.integers(0, 5)).tolist() for _ in "ab" * 5]
        )
        for _ in LANGUAGES
    ]
    weight = np.ones(10, dtype=np.float32)
    return [
        TokenPairs(name=f"{language}-en", source=side, target=sides[-1], weight=weight)
        for language, side in zip(LANGUAGES, sides[:-1], strict=False)
    ]


def begun(**given: object) -> tuple[Training, dict[str, TokenPairs]]:
    options = training_options(
        "bilstm",
        "paths",
        **{"dim": 8, "decoder_dim": 8, "dropout": 0.0, "warmup_steps": 1, **given},
    )
    texts = [text(f"{language}-en", [("a", "b")]) for language in LANGUAGES[:-1]]
    torch.manual_seed(0)
    model = Paths.model(options, one_word_each(10), texts)
    task = make_task(Setting(options, 10, texts), {}, [])
    streams = {stream.name: stream for stream in task.batch_pairs(nway())}
    return Training(model, task, options), streams


def test_a_code_may_be_the_name_of_a_method_of_modules() -> None:
    """As that of Tongan is, ``to``."""
    options = training_options("bilstm", "paths", dim=8, decoder_dim=8, targets=("to", "en"))
    texts = [text("to-en", [("a", "b")]), text("de-en", [("c", "b")])]
    model = Paths.model(options, one_word_each(10), texts)
    assert model.network_of("to") is not model.network_of("de")
    assert Paths(Setting(options, 10, texts)).decoders.keys() == {"to_", "en"}


def test_the_loss_is_the_sum_over_decoders_from_the_mean_of_the_vectors() -> None:
    training, streams = begun(targets=("de", "en", "fr"), sources=("2",))
    rows = np.array([3, 0, 7])
    sides = {**{one.name[:2]: one.source for one in nway()}, "en": nway()[0].target}
    expected = 0.0
    vectors = [training.model.network_of(name)(sides[name].take(rows)) for name in ("es", "fr")]
    for name in ("de", "en"):
        logits, tokens = training.task.decoders[name](
            (vectors[0] + vectors[1]) / 2, sides[name].take(rows), 0
        )
        expected += functional.cross_entropy(logits, tokens).item()
    assert training.advance([(streams["es+fr"], rows)]) == pytest.approx(expected, rel=1e-5)


def test_a_step_changes_the_networks_of_its_path_alone() -> None:
    training, streams = begun(targets=LANGUAGES)
    before = {name: one.clone() for name, one in training.tensors().items()}
    training.advance([(streams["de"], np.arange(10))])
    after = training.tensors()
    changed = {".".join(n.split(".")[:3]) for n in before if not torch.equal(before[n], after[n])}
    assert {name for name in changed if name.startswith("model")} == {"model._networks.de"}
    assert {name for name in changed if name.startswith("task")} == {
        f"task.decoders.{name}" for name in ("es", "fr", "en")
    }


def test_long_gradients_are_cut_to_the_length_given() -> None:
    """Adam's first moments are a tenth of the gradients of the first step."""
    lengths = {}
    for clip in (0.0, 0.01, 1e9):
        training, streams = begun(clip=clip)
        training.advance([(streams["de"], np.arange(10))])
        moments = [one for name, one in training.tensors().items() if name.endswith(".exp_avg")]
        lengths[clip] = 10 * float(torch.cat([one.ravel() for one in moments]).norm())
    assert lengths[0.01] == pytest.approx(0.01, rel=1e-3)
    assert lengths[0.0] == lengths[1e9] > 0.1


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name, one in (("xx-zz", 0), ("yy-zz", 1)):
        write_pairs(folder / f"{name}.tsv.xz", [(each[one], each[2]) for each in TRIPLES])
    return folder


@pytest.fixture(scope="module")
def whole(data: Path) -> Path:
    options = ("--targets", "xx,yy,zz", "--steps", "160", "--evaluate-every", "80")
    assert train_encoder([str(data), "-o", str(data.parent / "whole"), *SMALL, *options]) == 0
    return data.parent / "whole"


@pytest.fixture(scope="module")
def short(data: Path) -> list[str]:
    """What trains for fewer steps, without its output; it is in ``short`` already."""
    options = ("--targets", "xx,yy,zz", "--steps", "20", "--evaluate-every", "5")
    command = [str(data), *SMALL, *options, "--best-by", "perplexity"]
    assert train_encoder([*command, "-o", str(data.parent / "short")]) == 0
    return command


@pytest.mark.slow
def test_translations_are_found_in_all_directions(whole: Path) -> None:
    """Chance is an error of 0.99."""
    log = [json.loads(line) for line in (whole / PROGRESS / LOG).open()]
    assert log[-1]["perplexity"] < log[0]["perplexity"]
    assert log[-1]["parts"]["held_out_error"].keys() == {"xx-yy", "xx-zz", "yy-zz"}
    assert log[-1]["held_out_error"] < 0.95


def test_the_best_may_be_chosen_by_perplexity(data: Path, short: list[str]) -> None:
    """As in the paper, which stops by it; the error of the search need not agree."""
    log = [json.loads(line) for line in (data.parent / "short" / PROGRESS / LOG).open()]
    found = [entry["perplexity"] for entry in log]
    assert [entry["best"] for entry in log] == [
        value == min(found[: place + 1]) for place, value in enumerate(found)
    ]


def test_interrupted_it_gives_the_same_bytes(data: Path, short: list[str], tmp_path: Path) -> None:
    whole = data.parent / "short"
    command = [*short, "-o", str(tmp_path / "whole")]
    with stopped_after(12):
        assert train_encoder(command) != 0
    assert train_encoder(command) == 0
    assert (whole / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
    logs = [(place / PROGRESS / LOG).read_text() for place in (whole, tmp_path / "whole")]
    one, two = ([{**json.loads(line), "seconds": 0} for line in log.splitlines()] for log in logs)
    assert one == two
    assert (whole / PROGRESS / STATE).stat().st_size > 0


def test_each_language_is_encoded_by_its_own_network(whole: Path) -> None:
    encoder = load_encoder(str(whole))
    sentences = [triple[0] for triple in TRIPLES[:9]]
    xx, yy = (encoder.for_language(language) for language in ("xx", "yy"))
    assert not np.allclose(xx.encode(sentences), yy.encode(sentences), atol=0.1)
    assert xx.name.endswith("/xx") and xx.name != yy.name and encoder.dim == xx.dim == 64
    assert encoder.for_language(None) is encoder
    with pytest.raises(ValueError, match="has one network for each of xx, yy, zz; pass the"):
        encoder.encode(sentences)
    with pytest.raises(ValueError, match="has no network for de, only for xx, yy, zz; "):
        encoder.for_language("de")


@pytest.mark.parametrize("lacking", ["apart", "vocabulary"])
def test_a_damaged_folder_is_refused(whole: Path, tmp_path: Path, lacking: str) -> None:
    for path in whole.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / CONFIG).read_text())
    del config[lacking]
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"{CONFIG} lacks {lacking}"):
        load_encoder(str(tmp_path))
    config |= {lacking: ["qq"] if lacking == "apart" else 1}
    (tmp_path / CONFIG).write_text(json.dumps(config))
    if lacking == "apart":
        with pytest.raises(ValueError, match=f"{WEIGHTS} lacks the tensor"):
            load_encoder(str(tmp_path))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--architecture", "bag"),
            "--architecture bag conflicts with --objective paths; use --architecture bilstm",
        ),
        (("--targets", "qq"), "--targets qq: the text is in xx, yy, zz only; choose"),
        (
            ("--sources", "3"),
            "--sources 3: the text is in 3 languages only (xx, yy, zz), and one must",
        ),
        (("--sources", "1:x"), "--sources 1:x: expected numbers of languages and their shares"),
        (("--sources", "0"), "--sources 0: expected numbers of languages and their shares"),
        (
            ("--pair-weight", "xx-zz=2"),
            "--pair-weight conflicts with --objective paths, which samples",
        ),
        (
            ("--task", "mlm=somewhere"),
            "paths, which trains no encoder of all languages; omit --task",
        ),
        (("--token-dropout", "0.1"), "conflicts with --objective paths; omit it"),
        (("--held-out", "300"), "--held-out 300: "),
    ],
)
def test_what_does_not_fit_is_one_line(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    expected: str,
) -> None:
    command = [str(data), "-o", str(tmp_path / "out"), *SMALL, "--targets", "zz", *options]
    if "bag" in options:
        command = [part for part in command if part != "bilstm"]
        command.remove("--architecture")
    assert train_encoder(command) == 2
    error = capsys.readouterr().err
    assert expected in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("yy-qq", "same", "requires one common target language, but the pairs have qq, zz"),
        ("yy-zz", "other", "xx-zz, yy-zz: no target sentence is in all of them"),
    ],
)
def test_text_that_is_not_n_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, target: str, expected: str
) -> None:
    write_pairs(tmp_path / "xx-zz.tsv.xz", [("a", "same")])
    write_pairs(tmp_path / f"{name}.tsv.xz", [("b", target)])
    command = [str(tmp_path), "-o", str(tmp_path / "out"), *SMALL, "--targets", "zz"]
    assert train_encoder(command) == 2
    error = capsys.readouterr().err
    assert expected in error and error.count("\n") == 1
