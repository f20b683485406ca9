from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from encoder import BEST, load_encoder
from encoder.base import SAMPLE
from encoder.checkpoint import save_encoder
from encoder.joined import (
    MEANS,
    JoinedEncoder,
    Weighted,
    absolute_spec,
    covers,
    drop_uncovered_parts,
    dropped_part_names,
    parse_joined,
    read_joined_coverage,
    select_parts,
    spell_joined,
    union_spec,
)
from encoder.tokenizer import Tokenizer
from encoder.words import word_encoders

TEXTS = ["Das Haus ist alt.", "Es regnet seit 3 Tagen.", "Wo ist der Bahnhof?"]


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """An encoder of a user's own: its vectors are random."""
    table = np.random.default_rng(5).standard_normal((len(tokenizer), 16), dtype=np.float32)
    save_encoder(tmp_path / "own", table=table, tokenizer_model=tokenizer.model, facts={})
    return tmp_path / "own"


@pytest.fixture(scope="module")
def joined() -> JoinedEncoder:
    found = load_encoder("0.25*mini+2*use")
    assert isinstance(found, JoinedEncoder)
    return found


def test_rows_are_the_parts_less_their_means_side_by_side(joined: JoinedEncoder) -> None:
    own = joined.for_language("de")
    expected = []
    for weight, part in zip((0.25, 2.0), own.parts, strict=True):
        rows = part.encoder.encode(TEXTS).astype(np.float64) - part.mean
        expected.append(weight * rows / np.linalg.norm(rows, axis=1, keepdims=True))
    rows = np.concatenate(expected, axis=1)
    np.testing.assert_allclose(own.encode(TEXTS, normalize=False), rows, atol=1e-6)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(own.encode(TEXTS), rows, atol=1e-6)
    assert own.dim == rows.shape[1]


def test_a_language_has_a_mean_of_its_own(joined: JoinedEncoder) -> None:
    names = {joined.for_language(language).name for language in (None, "de", "en", "zh")}
    assert len(names) == 4
    vectors = [joined.for_language(language).encode(TEXTS[0]) for language in ("de", "en")]
    assert not np.array_equal(*vectors)
    again = load_encoder("0.25*mini+2*use").for_language("de")
    assert again.name == joined.for_language("de").name


def test_a_sentence_that_a_part_makes_nothing_of_has_the_zero_vector(joined: JoinedEncoder) -> None:
    alone = load_encoder("use").encode("")
    assert alone.any()
    assert not joined.encode("").any()


def test_weights_are_part_of_the_name() -> None:
    one, other = (load_encoder(spec) for spec in ("mini+use", "0.75*mini+use"))
    assert one.name != other.name
    assert one.name == load_encoder("0.5*mini+1.0*use").name


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mini+mini", "has the part 'mini' twice"),
        ("0*mini+use", "the weight '0' of mini must be a number above 0"),
        ("-1*use", "must be a number above 0"),
        ("nan*mini+use", "must be a number above 0"),
        ("inf*mini+use", "must be a number above 0"),
        ("much*mini", "the weight 'much' of mini"),
        ("mini+", "an empty part"),
        ("0.5*", "an empty part"),
        ("mini+nothing-there", "encoder 'nothing-there' is unknown"),
    ],
)
def test_what_is_no_joined_encoder_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_encoder(spec)


def test_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="--pretokenized conflicts with encoder"):
        load_encoder("mini+use", pretokenized=True)


def test_specs() -> None:
    assert parse_joined("mini") == parse_joined("st:some/model") == ()
    parts = parse_joined("mini+2*use")
    assert parts == (Weighted(0.5, "mini"), Weighted(2.0, "use"))
    assert parse_joined(spell_joined(parts)) == parts
    assert union_spec(["0.5*mini", "0.5*mini+1.0*use"]) == "0.5*mini+1.0*use"
    assert union_spec(["mini", "mini"]) == "mini"


def test_a_folder_may_have_a_plus_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a+b").mkdir()
    assert parse_joined("a+b") == ()
    assert absolute_spec("a+b") == str(tmp_path / "a+b")
    Path("a+b/laser2.pt").touch()
    assert parse_joined("laser:a+b/laser2.pt") == ()
    assert absolute_spec("laser:a+b/laser2.pt") == f"laser:{tmp_path}/a+b/laser2.pt"
    Path("own").mkdir()
    assert absolute_spec("own+mini") == f"1.0*{tmp_path / 'own'}+0.5*mini"


def test_paths_after_a_kind_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.pt").touch()
    for kind in ("laser:", "laser3:", "st:"):
        assert absolute_spec(f"{kind}a.pt") == f"{kind}{tmp_path / 'a.pt'}"
        assert absolute_spec(f"2*{kind}a.pt+use") == f"2.0*{kind}{tmp_path / 'a.pt'}+1.0*use"
    Path("best").mkdir()
    for name in ("best", "mini", "st:owner/name", "laser:missing.pt"):
        assert absolute_spec(name) == name


def test_parts_that_lack_a_language_are_left_out(joined: JoinedEncoder) -> None:
    assert drop_uncovered_parts("mini+use", ["de", "en"]) == "0.5*mini+1.0*use"
    assert drop_uncovered_parts("mini+use", ["la", "en"]) == "0.5*mini"
    assert dropped_part_names("mini+use", "0.5*mini") == "use"
    assert drop_uncovered_parts("mini+use", ["tlh", "en"]) == "mini+use"  # neither has it
    assert drop_uncovered_parts("mini+use", [None, "en"]) == "0.5*mini+1.0*use"
    assert drop_uncovered_parts("mini", ["tlh", "en"]) == "mini"
    assert [part.spec for part in joined.for_languages(["la", "en"]).parts] == ["mini"]
    assert covers("laser:any.pt", ["tlh"])


def test_coverage_is_the_best_of_the_parts() -> None:
    mini, use = (read_joined_coverage(spec) for spec in ("mini", "use"))
    both = read_joined_coverage("mini+use")
    assert both["ja"].error == min(mini["ja"].error, use["ja"].error)
    assert both.keys() == mini.keys() | use.keys()


def test_some_parts_are_taken_of_one_that_is_loaded(joined: JoinedEncoder) -> None:
    taken = select_parts(joined, "0.5*use")
    assert taken.name == load_encoder("0.5*use").name
    assert select_parts(load_encoder("mini"), "mini").name == load_encoder("mini").name


def test_a_part_without_stored_means_loses_that_of_the_sample(folder: Path) -> None:
    part = load_encoder(f"1*{folder}").parts[0]
    np.testing.assert_array_equal(part.mean, part.encoder.encode(SAMPLE).mean(axis=0))


@pytest.mark.parametrize(
    "content", [b"no tensors", save({"de": np.ones(2)})], ids=["no file", "no all"]
)
def test_damaged_means_are_refused(folder: Path, content: bytes) -> None:
    (folder / MEANS).write_bytes(content)
    with pytest.raises(ValueError, match=r"means\.safetensors is damaged"):
        load_encoder(f"1*{folder}")


def test_words_are_those_of_the_part_that_has_them(joined: JoinedEncoder) -> None:
    makers = word_encoders(joined, ("de", "en"))
    assert [maker.name for maker in makers] == [load_encoder("mini").name] * 2


@pytest.mark.usefixtures("best")
def test_best_is_joined() -> None:
    assert load_encoder(BEST).name == load_encoder("mini+use").name
