"""Languages that the network of ``use`` reads by a glossary."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from encoder.base import MIN_COSINE, SAMPLE
from encoder.checkpoint import CONFIG, WEIGHTS
from encoder.coverage import read_coverage
from encoder.joined import JoinedEncoder, drop_uncovered_parts
from encoder.use import glossary
from encoder.use.encoder import UseEncoder, load_use
from encoder.use.glossary import (
    FOLDER,
    NEAREST,
    TEMPERATURE,
    GlossaryWords,
    added_languages,
    find_nearest,
    load_bundled,
    load_glossary,
    split,
)
from encoder.use.products import Weights
from encoder.use.weights import BEGIN, END, UNKNOWN, load_tokenizer
from miner.instructions import CHOSEN
from tests.benchmark import benchmark

NEEDS_INT8 = pytest.mark.skipif(not CHOSEN, reason="no int8 instructions here")
CZECH = ["Včera večer přišel prezident domů.", "Vlak přijede ve 12:45.", "Kde je moje kniha?"]
ENGLISH = [
    "The president came home last night.",
    "The train arrives at 12:45.",
    "Where is my book?",
]
HOSTILE = ["", " ", "…", "\u0301", "x" * 10_000, "slovo " * 2000, "\x00", "½ Ⅷ", "ᚠᚢᚦ", "\ue000a"]


@pytest.fixture(scope="module")
def czech() -> UseEncoder:
    return load_use(precision="float32").for_language("cs")


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("Přišel (v 12:45), l'homme!", ["Přišel", "(", "v", "12:45),", "l", "'", "homme", "!"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        (
            "\u0645\u06cc\u200c\u0634\u0648\u062f x19",
            ["\u0645\u06cc\u200c\u0634\u0648\u062f", "x", "19"],
        ),
        (" \t", []),
    ],
)
def test_sentences_are_cut_into_words_and_what_is_between(sentence: str, parts: list[str]) -> None:
    assert split(sentence) == parts


def test_the_nearest_are_those_of_a_sort_and_the_first_of_equal_ones() -> None:
    generator = np.random.default_rng(3)
    keys = generator.standard_normal((40, 16)).astype(np.float32)
    keys[20:30] = keys[5]
    words = np.concatenate([generator.standard_normal((9, 16)).astype(np.float32), keys[5:6]])
    columns, shares = find_nearest(Weights(keys.T), words)
    for word, found, share in zip(words, columns, shares, strict=True):
        cosines = keys.astype(np.float64) @ word
        expected = sorted(range(40), key=lambda key: (-cosines[key].round(4), key))[:NEAREST]
        assert found.tolist() == expected
        weights = np.exp(cosines[expected] / float(TEMPERATURE) - cosines.max() / TEMPERATURE)
        np.testing.assert_allclose(share, weights / weights.sum(), atol=1e-6)


def test_a_word_is_the_mean_of_rows_by_their_shares() -> None:
    known = load_glossary()
    words = GlossaryWords(known, load_bundled("cs"))
    tokens = words.encode(["Domů, domů 12!", ""])
    first, comma, second, *number = tokens.ids[1 : tokens.offsets[1] - 1].tolist()
    assert tokens.ids[tokens.offsets[1] :].tolist() == [BEGIN, UNKNOWN, END]
    assert comma == load_tokenizer()._processor.piece_to_id(",")
    assert load_tokenizer()._processor.decode(number) == "12!"
    english = load_bundled("en").encode(known.english).astype(np.float64)
    rows = words.rows(np.array([first, second]))
    for word, start, row in (("Domů", len(known.english), rows[0]), ("domů", 0, rows[1])):
        cosines = english @ load_bundled("cs").encode(word)
        best = np.argsort(-cosines, kind="stable")[:NEAREST]
        shares = np.exp(cosines[best] / TEMPERATURE)
        expected = shares / shares.sum() @ known.rows[best + start]
        np.testing.assert_allclose(row, expected, atol=1e-3)


@pytest.mark.parametrize("precision", ["float32", pytest.param("int8", marks=NEEDS_INT8)])
def test_a_vector_does_not_depend_on_what_is_beside_it(precision: str) -> None:
    texts = [*CZECH, *HOSTILE, *SAMPLE, *CZECH[:1]]
    together = load_use(precision=precision).for_language("cs").encode(texts)
    encoder = load_use(precision=precision).for_language("cs")
    alone = np.stack([encoder.encode(text) for text in reversed(texts)])[::-1]
    np.testing.assert_array_equal(together, alone)
    assert np.isfinite(together).all()


def test_words_are_forgotten_where_there_is_no_room(
    czech: UseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = czech.encode([*CZECH, *SAMPLE])
    monkeypatch.setattr(glossary, "ROOM", 12)
    few = load_use(precision="float32").for_language("cs")
    for texts, rows in ((SAMPLE, expected[3:]), (CZECH, expected[:3]), (SAMPLE, expected[3:])):
        np.testing.assert_array_equal(few.encode(texts), rows)


def test_translations_are_found(czech: UseEncoder) -> None:
    cosines = czech.encode(CZECH) @ load_encoder("use").encode(ENGLISH).T
    np.testing.assert_array_equal(cosines.argmax(axis=1), np.arange(3))


@NEEDS_INT8
def test_int8_keeps_the_direction(czech: UseEncoder) -> None:
    fast = load_use(precision="int8").for_language("cs")
    assert fast.name != czech.name
    texts = [*CZECH, *SAMPLE]
    assert np.einsum("sd,sd->s", fast.encode(texts), czech.encode(texts)).min() >= MIN_COSINE


def test_the_networks_own_languages_stay_as_they_are() -> None:
    encoder = load_use(precision="float32")
    own = json.loads((FOLDER.parent / CONFIG).read_text(encoding="utf-8"))["languages"]
    assert "de" in own
    assert all(encoder.for_language(language) is encoder for language in (*own, None, "xx"))
    assert not added_languages() & own.keys()


def test_added_languages_are_covered_and_say_what_reads_them() -> None:
    coverage = read_coverage("use")
    assert {"cs", "fi", "sv", "uk", "hu", "de"} <= coverage.keys()
    assert drop_uncovered_parts("mini+use", ["sv", "en"]) == "0.5*mini+1.0*use"
    assert drop_uncovered_parts("mini+use", ["la", "en"]) == "0.5*mini"
    encoder = load_use(precision="float32")
    names = {encoder.for_language(language).name for language in ("de", "cs", "sv")}
    assert len(names) == 3  # pieces, and words by both parts of the bundled encoder
    assert encoder.for_language("nb") is encoder.for_language("no")
    joined = load_encoder("mini+use")
    assert isinstance(joined, JoinedEncoder)
    assert {joined.for_language(name).name for name in ("cs", "sv", "fi")} & {joined.name} == set()


def test_what_is_damaged_or_of_another_encoder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "more"
    shutil.copytree(FOLDER, folder)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    (folder / CONFIG).write_text(json.dumps({**config, "bundled": ["mini@1", "mini/more@2"]}))
    with pytest.raises(ValueError, match=r"trained with mini@1 and mini/more@2, but mini@"):
        load_glossary(folder)
    refused = r"weights\.safetensors is missing or damaged; reinstall Adit"
    (folder / WEIGHTS).write_bytes(b"of another version")
    with pytest.raises(ValueError, match=refused):
        load_glossary(folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(ValueError, match=refused):
        load_glossary(folder)
    for damaged in ("{", json.dumps({"format": config["format"]})):
        (folder / CONFIG).write_text(damaged)
        with pytest.raises(ValueError, match=r"config\.json is missing or damaged; reinstall Adit"):
            load_glossary(folder)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    training = benchmark("glossary")
    new = training.untrained(["house", "dog", "three", "monday"])
    training.save_glossary(tmp_path, new)
    found = load_glossary(tmp_path)
    assert found.english == new.english
    lengths = np.linalg.norm(found.rows, axis=1) * np.linalg.norm(new.rows, axis=1)
    assert (np.einsum("rd,rd->r", found.rows, new.rows) / lengths).min() > 0.98
    assert not np.array_equal(found.rows[0], found.rows[4])  # house, House


def test_further_words_leave_the_others_as_they_are() -> None:
    training = benchmark("glossary")
    first = training.untrained(["house", "dog"])
    both = training.extended(first, ["dog", "three", "monday"])
    assert both.english == ["house", "dog", "three", "monday"]
    np.testing.assert_array_equal(both.rows, training.untrained(both.english).rows)
