"""Tokens behave as a list of lists; text of any kind becomes ids."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoder.tokenizer import SPACE, Tokenizer, Tokens, train_tokenizer
from tests.encoder.conftest import VOCABULARY
from tests.encoder.training.language import made_up_pairs


def tokens_of(lists: list[list[int]]) -> Tokens:
    flat = [token for tokens in lists for token in tokens]
    offsets = np.concatenate(([0], np.cumsum([len(tokens) for tokens in lists])))
    return Tokens(ids=np.array(flat, dtype=np.int32), offsets=offsets.astype(np.int64))


def lists_of(tokens: Tokens) -> list[list[int]]:
    bounds = zip(tokens.offsets, tokens.offsets[1:], strict=False)
    return [tokens.ids[start:end].tolist() for start, end in bounds]


@given(data=st.data(), lists=st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=8))
def test_take_is_what_indexing_a_list_is(data: st.DataObject, lists: list[list[int]]) -> None:
    row = st.integers(0, max(len(lists) - 1, 0))
    rows = data.draw(st.lists(row, max_size=10 if lists else 0))
    taken = tokens_of(lists).take(np.array(rows, dtype=np.int64))
    assert lists_of(taken) == [lists[row] for row in rows]
    assert len(taken) == len(rows)
    assert (taken.ids.dtype, taken.offsets.dtype) == (np.int32, np.int64)


def test_flat_ids_are_those_of_each_sentence(tokenizer: Tokenizer, sentences: list[str]) -> None:
    tokens = tokenizer.encode(sentences)
    assert len(tokens) == len(sentences)
    assert (tokens.ids.dtype, tokens.offsets.dtype) == (np.int32, np.int64)
    assert lists_of(tokens) == [tokenizer.encode([one]).ids.tolist() for one in sentences]
    assert tokens.ids.min() >= 0 and tokens.ids.max() < len(tokenizer) == VOCABULARY


@pytest.mark.parametrize("nothing", ["", " ", "\n", "\t \u3000\u00a0", "\u200b"])
def test_nothing_is_left_of_white_space(tokenizer: Tokenizer, nothing: str) -> None:
    assert lists_of(tokenizer.encode([nothing, "abde", nothing]))[::2] == [[], []]


def test_no_sentences_at_all(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode([])
    assert (len(tokens), len(tokens.ids), tokens.offsets.tolist()) == (0, 0, [0])


def test_an_unknown_script_becomes_the_unknown_piece(tokenizer: Tokenizer) -> None:
    first, second = lists_of(tokenizer.encode(["漢字", "ไทย"]))
    assert first == second != []


def test_very_long_text_is_neither_cut_nor_refused(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(["abde " * 100_000])
    assert len(tokens.ids) >= 100_000


def test_case_and_width_are_folded(tokenizer: Tokenizer) -> None:
    plain, upper, wide = lists_of(tokenizer.encode(["abde", "ABDE", "\uff41\uff42\uff44\uff45"]))
    assert plain == upper == wide


@pytest.mark.parametrize(
    ("text", "size", "reason"),
    [
        (
            ["few words only"] * 9,
            5_000,
            "this text yields at most 13 subwords; lower it, or use more text",
        ),
        (["few words only"] * 9, 4, "this text needs at least 12 subwords; increase it"),
        ([], 100, "the text is empty"),
        (["", " "], 100, "the text is empty"),
    ],
)
def test_a_vocabulary_that_cannot_be_made(
    tmp_path: Path, text: list[str], size: int, reason: str
) -> None:
    with pytest.raises(ValueError) as caught:
        train_tokenizer(text, vocabulary_size=size)
    line = str(caught.value)
    assert line == f"--vocabulary-size {size}: {reason}"
    assert "\n" not in line and ".cc" not in line and "--character_coverage" not in line


def test_an_empty_model_is_refused() -> None:
    with pytest.raises(RuntimeError, match="the model is empty"):
        Tokenizer(b"")


def test_pieces_say_what_they_stand_for(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces()
    assert len(pieces) == len(set(pieces)) == len(tokenizer) and pieces.count("") == 1
    for text in ("abdegihu", "гдеж abde"):
        spelt = "".join(pieces[number] for number in tokenizer.encode([text]).ids)
        assert spelt.replace(SPACE, " ").strip() == text
    unknown = tokenizer.encode(["漢"]).ids
    assert pieces[unknown[-1]] == ""


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_of_either_kind(model_type: str) -> None:
    sentences = [sentence for pair in made_up_pairs(800, seed=7) for sentence in pair]
    model = train_tokenizer(sentences, vocabulary_size=VOCABULARY, model_type=model_type)
    tokenizer = Tokenizer(model)
    scores = tokenizer.scores()[-VOCABULARY // 2 :]
    assert all(score == round(score) for score in scores) == (model_type == "bpe")
    pieces = tokenizer.pieces()
    text = "".join(pieces[number] for number in tokenizer.encode(["abde abde"]).ids)
    assert text.replace(SPACE, " ").split() == ["abde", "abde"]
