"""Files of word vectors, good and bad."""

import logging
from pathlib import Path

import numpy as np
import pytest

from encoder.monolingual.vec import read_vec, write_vec


def test_what_is_written_is_read(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    write_vec(tmp_path / "a.vec", ["one", "zwei", "три", "a\xa0b"], vectors)
    found = read_vec(tmp_path / "a.vec")
    assert found.words == ["one", "zwei", "три", "a\xa0b"]
    assert np.allclose(found.vectors, vectors, atol=1e-5)


def test_words_may_hold_spaces_and_lines_end_in_one(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_text("2 2\nnew york 1 2 \nb 3 4 \n")
    assert read_vec(tmp_path / "a.vec").words == ["new york", "b"]


def test_the_first_words_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_text("3 1\na 1\nb 2\nc x\n")
    assert read_vec(tmp_path / "a.vec", most=2).words == ["a", "b"]


def test_repeated_and_zero_words_are_left_out_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.vec").write_text("4 2\na 1 2\nb 0 0\na 5 6\nc 7 8\n")
    with caplog.at_level(logging.WARNING, "encoder"):
        found = read_vec(tmp_path / "a.vec")
    assert (found.words, found.vectors.tolist()) == (["a", "c"], [[1, 2], [7, 8]])
    assert "1 duplicate words and 1 zero vectors" in caplog.text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected the number of words and of dimensions"),
        (b"a 1 2\n", "expected the number of words and of dimensions"),
        (b"2 0\na\nb\n", "expected the number of words and of dimensions"),
        (b"2 2\na 1 2\n", "has 1 words, but its first line says 2"),
        (b"1 2\na 1 2\nb 1 2\n", "has 2 words, but its first line says 1"),
        (b"1 2\na 1\n", ":2: 'a 1\\n'; expected a word and 2 numbers"),
        (b"1 2\na 1 x\n", "expected a word and 2 numbers"),
        (b"1 99999999999999\na 1 2\n", "expected a word and 99999999999999 numbers"),
        (b"1 2\n 1 2\n", "expected a word and 2 numbers"),
        (b"1 2\na 1 nan\n", "the vector of 'a' is not finite"),
        (b"1 2\na 1e99 1\n", "the vector of 'a' is not finite"),
        (b"1 2\n\xff 1 2\n", "a.vec: not UTF-8, in line 2 or soon after"),
        (b"1 2\na 0 0\n", "no word has a vector"),
        (b"0 2\n", "no word has a vector"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_files_are_refused_in_one_line(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "a.vec"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        read_vec(path)
    assert expected in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.vec: file not found"):
        read_vec(tmp_path / "a.vec")
