"""HTML entities: which corpora are taken for escaped, and what becomes of their texts."""

import html
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.corpus.entities import escaped_levels, example, unescape
from miner.storage.documents.split import open_side

PROSE = [
    "The old man went home through the forest in the rain.",
    "Nobody knew where he had been all day.",
    "The bridge was closed in the morning, and so was the road.",
] * 30
ABOUT_HTML = [
    "In HTML, write &amp; for an ampersand.",
    "A literal < is written &lt; and a literal > is written &gt; in text.",
    'The entity "&nbsp;" is a space that does not break.',
    "Use &quot; or &#39; within attributes.",
    "Le caractère &eacute; s'écrit é.",
    "使用&amp;代替符号。将&lt;b&gt;替换为标签。",
    "The sequence (&apos;) is not known to old browsers.",
    "Escape R & D as R &amp; D, and Q&A as you like.",
]


@pytest.mark.parametrize(
    "line",
    [
        "That&#39;s Peter&#39;s house.",
        "&quot;Come in,&quot; she said.",
        "The caf&eacute; is closed.",
        "&#1044;&#1086;&#1084; 1900.",
        "We don&apos;t know it.",
        "Research (R&amp;D) is dear.",
        "It costs 5&nbsp;euros.",
        "Das Haus &ndash;&nbsp;ein altes&nbsp;&ndash; steht leer.",
        "It&#x2019;s late.",
    ],
)
def test_corpora_that_were_escaped(line: str) -> None:
    assert escaped_levels([*PROSE, line]) == 1
    assert escaped_levels([line]) == 1
    assert escaped_levels([*PROSE, line.replace("&", "&amp;")]) == 2
    assert example([*PROSE, line]) in line
    # As few as one in a thousand show nothing.
    assert escaped_levels([*PROSE * 12, line]) == 0


def test_texts_about_html_are_left_as_they_are() -> None:
    assert escaped_levels(ABOUT_HTML) == 0
    assert escaped_levels([*PROSE, *ABOUT_HTML]) == 0
    for line in ABOUT_HTML:
        assert escaped_levels([*PROSE, line] * 20) == 0
    # Bare marks, as of programs, contradict.
    code = ["if (a < b && c > d) return;", "<b>bold</b>", "x & y"]
    assert escaped_levels([*PROSE, *code, "That&#39;s it."]) == 0
    assert escaped_levels([]) == 0


def test_a_text_about_html_that_was_escaped_is_restored() -> None:
    texts = [*(line for line in ABOUT_HTML if not line.startswith("使")), "It's R&D."]
    escaped = [html.escape(text) for text in texts]
    assert escaped_levels(escaped) == 1
    assert [unescape(text) for text in escaped] == texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a&#10;b&#9;c&#x2028;d&#0;", "a b c d\ufffd"),
        ("?a=1&copy=2&reg;ion&notit;&unknown;", "?a=1&copy=2®ion&notit;&unknown;"),
        ("&#128;5 &#150; &#x1F600;", "€5 \u2013 😀"),
        ("&amp;#39;", "&#39;"),
        ("AT&T; R&D", "AT&T; R&D"),
    ],
)
def test_characters(text: str, expected: str) -> None:
    assert unescape(text) == expected


@given(st.text(st.sampled_from("ab &;#'\"<>é雨19amplt"), max_size=40))
def test_what_was_escaped_is_unescaped(text: str) -> None:
    assert unescape(html.escape(text)) == text
    assert unescape(html.escape(html.escape(text)), 2) == text
    assert escaped_levels([text] * 3) in (0, 1, 2)


def test_a_reader_gives_characters_and_rejects_what_is_left_blank(tmp_path: Path) -> None:
    lines = ["That&#39;s it.", "", "&nbsp;&#9;", "plain", "Q&amp;A"]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("x&amp;y\tIt&#39;s\n", encoding="utf-8")
    records = list(open_side(tmp_path, "auto", escapes=1))
    texts = [text for batch in records for text in batch.kept_texts()]
    assert texts == ["That's it.", "plain", "Q&A", "It's"]
    first, second = records
    assert first.rejected == {1: "blank", 2: "blank"}
    assert first.rejected_texts == {1: "", 2: "&nbsp;&#9;"}
    assert second.ids() == ["x&amp;y"]
    assert next(iter(open_side(tmp_path, "auto"))).texts[0] == "That&#39;s it."
