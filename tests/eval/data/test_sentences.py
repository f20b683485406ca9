"""Reading sentences with ids, and gold."""

from pathlib import Path

import pytest

from eval.data.bucc import (
    Sentences,
    read_gold,
    read_sentences,
)


@pytest.fixture
def file(tmp_path: Path):
    def write(content: str | bytes, name: str = "file") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_the_first_tab_ends_the_id(file) -> None:
    sentences = read_sentences(file("de-1\tein\tTab\nde-2\t\n"))
    assert (sentences.ids, sentences.texts) == (["de-1", "de-2"], ["ein\tTab", ""])


def test_only_lf_ends_a_line(file) -> None:
    text = "a\u2028b\u0085c\x0cd\re"
    assert read_sentences(file(f"1\t{text}\n2\tf")).texts == [text, "f"]


def test_bom_crlf_and_blank_lines(file) -> None:
    sentences = read_sentences(file("\ufeff1\ta\r\n\r\n2\tb\r\n"))
    assert (sentences.ids, sentences.texts) == (["1", "2"], ["a", "b"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "file: no sentences; expected ID TAB sentence lines"),
        ("\n\n", "file: no sentences; expected ID TAB sentence lines"),
        ("1\ta\nb c\n", "file line 2: expected ID TAB sentence, not 'b c'"),
        (" \tb\n", r"file line 1: expected ID TAB sentence, not ' \\tb'"),
        (
            "1\ta\n2\tb\n1\tc\n",
            "file: the id '1' is in line 1 and again in line 3; give each line its own id",
        ),
        (b"1\ta\n2\t\xff\n", r"file line 2: not UTF-8 \(invalid start byte\)"),
        (b"\xef\xbb\xbf1\ta\n\xff", r"file line 2: not UTF-8 \(invalid start byte\)"),
    ],
)
def test_bad_sentences(file, content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_sentences(file(content))
    assert "\n" not in str(caught.value)


def test_split_files_keep_blank_sentences(file) -> None:
    sentences = read_sentences(file("a\n\nc\n", "texts"), file("1\n2 \n3", "ids"))
    assert (sentences.ids, sentences.texts) == (["1", "2", "3"], ["a", "", "c"])


@pytest.mark.parametrize(
    ("texts", "ids", "message"),
    [
        (
            "a\nb\n",
            "1\n",
            "ids: the number of lines is 1, but 2 in .*texts; pass files",
        ),
        ("a\nb\n", "1\n\n", "ids line 2: blank; expected an id"),
        ("a\nb\n", "1\n1\n", "ids: the id '1' is in line 1 and again in line 2"),
        ("", "", "texts: empty"),
    ],
)
def test_bad_split_files(file, texts: str, ids: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_sentences(file(texts, "texts"), file(ids, "ids"))


def test_gold_is_a_set(file) -> None:
    assert read_gold(file("1\ta\r\n2\tb \n\n1\ta\n")) == {("1", "a"), ("2", "b")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "file: no gold pairs; expected SOURCE_ID TAB TARGET_ID lines"),
        ("1 a\n", "file line 1: expected SOURCE_ID TAB TARGET_ID, not '1 a'"),
        ("1\ta\n2\t\n", r"file line 2: expected SOURCE_ID TAB TARGET_ID, not '2\\t'"),
        ("1\ta\tb\n", "file line 1: expected SOURCE_ID TAB TARGET_ID"),
    ],
)
def test_bad_gold(file, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_gold(file(content))


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (
            {("1", "a"), ("9", "a"), ("8", "a")},
            r"gold: the source id '8' is not .*such ids: 2\); .* '1'",
        ),
        ({("1", "b")}, "gold: the target id 'b' is not among the target sentences"),
        ({("a", "1")}, "is not among the source sentences"),
    ],
)
def test_gold_ids_must_name_sentences(file, gold: set[tuple[str, str]], message: str) -> None:
    source, target = Sentences(ids=["1"], texts=["x"]), Sentences(ids=["a"], texts=["y"])
    assert read_gold(file("1\ta\n"), (source, target)) == {("1", "a")}
    with pytest.raises(ValueError, match=message):
        read_gold(file("".join(f"{a}\t{b}\n" for a, b in gold), "gold"), (source, target))


def test_ids_by_text_groups_what_differs_in_white_space_only() -> None:
    sentences = Sentences(ids=["1", "2", "3", "4"], texts=["a b", "c", " a\tb", "A b"])
    groups = sentences.ids_by_text()
    assert groups == {"a b": ("1", "3"), "c": ("2",), "A b": ("4",)}
    assert list(groups) == ["a b", "c", "A b"]
    assert len(sentences) == 4
