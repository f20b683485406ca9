"""Markdown to prose: every kind of markup of documentation, and nothing of the prose lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.storage.documents import markdown
from miner.storage.documents.markdown import prose
from tests.growth import assert_linear
from tests.miner.storage.documents.test_documents import split

FENCE = "```js\nconst a = 1. And more.\n\nlet b = 2\n```"


def paragraphs(text: str) -> list[str]:
    return prose(text).split("\n\n") if text else []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # headings, with ids and comments
        ("# Skip link {#skip-link}\n\n## Usage {/*usage*/}\n", ["Skip link", "Usage"]),
        ("Title\n=====\n\n### Closed ###\n", ["Title", "Closed"]),
        ("## `useState` {/*usestate*/}\n\nText.", ["Text."]),  # nothing but code
        ("## Using `useState` twice {:.anchor}", ["Using useState twice"]),
        # wrapped lines, and those whose end is meant
        ("A paragraph that\nwas *wrapped*\nhere.", ["A paragraph that was wrapped here."]),
        ("第一行\n第二行。", ["第一行第二行。"]),
        ("한국어 문장은\n띄어 쓴다.", ["한국어 문장은 띄어 쓴다."]),
        ("One  \ntwo\\\nthree<br>four", ["One\ntwo\nthree\nfour"]),
        # code
        (f"Before.\n\n{FENCE}\n\nAfter.", ["Before.", "After."]),
        (f"1. Step\n\n   {FENCE.replace(chr(10), chr(10) + '   ')}\n\n2. Next", ["Step", "Next"]),
        ("- Item\n\n      $ code. Code.\n\n- Other", ["Item", "Other"]),
        ("Text.\n\n    indented. Code.\n\nMore.", ["Text.", "More."]),
        ("~~~\nThe end never comes.", []),
        ("Call `a.b()` now, or ``c`d``.", ["Call a.b() now, or c`d."]),
        ("`npm install`, `npm start`", []),
        # items, quotes, tables, definitions, footnotes, tasks
        ("* One\n  - Two\n1. Three\n- [x] Done", ["One", "Two", "Three", "Done"]),
        ("> Quoted\n> text.\n\n> [!NOTE]\n> An alert.", ["Quoted text.", "An alert."]),
        (
            "| Name | Meaning |\n| :-- | --- |\n| `a` | First *one* |\n| x \\| y | `b` |",
            ["Name", "Meaning", "First one", "x | y"],
        ),
        ("Term\n: What it is", ["Term", "What it is"]),
        ("Fact[^1].\n\n[^1]: Its *source*.", ["Fact.", "Its source."]),
        # links and pictures
        (
            "A [link](http://a/b_c 'T'), [one][ref] and <http://x/>.\n\n[ref]: http://r",
            ["A link, one and http://x/."],
        ),
        ("![A *red* tree](a.png)\n\n[![Badge](b.svg)](c)", ["A red tree"]),
        # metadata, comments, modules
        ("---\ntitle: A\n---\nText.", ["Text."]),
        ("One. <!-- hidden --> Two.\n\n<!-- a\n\nb -->\n\nThree.", ["One. Two.", "Three."]),
        ("import A from './a'\nimport {\n  B\n} from \"b\"\n\n# H\n\n{/* c */}", ["H"]),
        ("export const a = () => (\n  <b>x. y.</b>\n)\n\nText.", ["Text."]),
        ("Import taxes rise.\n\nimport duties from China rise", None),
        # containers and notes
        (":::tip\nText.\n:::", ["Text."]),
        ("::: details Click *me*\nText.\n:::", ["Click me", "Text."]),
        (":::note[A title]{.x}\n\nText.\n\n:::", ["A title", "Text."]),
        ("/// warning | Attention\nText.\n///", ["Attention", "Text."]),
        ('!!! note "Achtung"\n    Text.\n\n    More.', ["Achtung", "Text.", "More."]),
        ("!!! note\n    Text.", ["Text."]),
        ('=== "Linux"\n\n    Text.\n\n=== "Mac"\n\n    More.', ["Linux", "Text.", "Mac", "More."]),
        # HTML and JSX
        (
            "<Intro>\nA *first* text.\n</Intro>\n\n<Sandpack>\n\n" + FENCE + "\n\n</Sandpack>",
            ["A first text."],
        ),
        (
            "Text before\n<Note title=\"a > b\" on={() => { f('}') }}>\n\n- Item\n\n</Note>",
            ["Text before", "Item"],
        ),
        ("<Tabs>\n  <Tab>\n\n    Deep text.\n\n    " + FENCE + "\n  </Tab>\n</Tabs>", None),
        (
            "<table>\n  <tr>\n    <td>One</td>\n    <td>Two</td>\n  </tr>\n</table>",
            ["One", "Two"],
        ),
        (
            '<p align="center">Some <b>text</b></p>\n<details><summary>More</summary>\n\nIt.\n',
            ["Some text", "More", "It."],
        ),
        ("<pre>\na. b.\n\nc. d.\n</pre>\n\nText.", ["Text."]),
        ("<script setup>\nlet a = 1.\n\nlet b.\n</script>\nText.", ["Text."]),
        ("<style>a{}</style>\n<svg>\n<path/>\n</svg> Text.", ["Text."]),
        ("Press <kbd>A</kbd> or <Icon name='b'/> and {name}.", ["Press A or and {name}."]),
        ("A <Link to='x'>link</Link> and List<String>.", ["A link and List."]),
        ("<имя> и 1 < 2, a > b.", ["<имя> и 1 < 2, a > b."]),
        # templates and attributes
        ("{% note %}\n\nText {% x %}with {{ name }} here.\n\n{% endnote %}", ["Text with here."]),
        (
            '{{< note >}}\nA {{< term text="Pod" id="p" >}} runs.\n{{< /note >}}',
            ["A Pod runs."],
        ),
        ("{: .lead}\nText{' '}\nmore.", ["Text more."]),
        ("<<< @/a.ts{2}\n\n[[toc]]\n\nText.", ["Text."]),
        # metadata of Hugo, and directives of MyST
        ('+++\ntitle = "A"\n\ndraft = true\n+++\n\nText.', ["Text."]),
        ("```{note}\n:class: x\nA note.\n\nMore :a: b.\n```", ["A note.", "More :a: b."]),
        ("````{tip} Title\n~~~{warning}\nDeep.\n~~~\n```sh\nrun\n```\n````", ["Title", "Deep."]),
        ("- Item\n\n  ```{seealso}\n  That.\n  ```\n\n```{math}\na = b\n```", ["Item", "That."]),
        # formulas and prices
        ("Let $x_i$ be $5 or $10.\n\n$$\na = b.\n$$", ["Let x_i be $5 or $10."]),
    ],
)
def test_prose(text: str, expected: list[str] | None) -> None:
    found = paragraphs(text)
    if expected is None:
        expected = (
            ["Deep text."]
            if "Deep" in text
            else ["Import taxes rise.", "import duties from China rise"]
        )
    assert [part for part in found if part] == expected


def test_line_ends_of_windows_and_positions(tmp_path: Path) -> None:
    path = tmp_path / "a.mdx"
    path.write_bytes(b"# One *two* three\r\n\r\nIt rains\r\nhere. It `pours`.\r\n")
    rows, _ = split(path)
    assert [row["text"] for row in rows] == ["One two three", "It rains here.", "It pours."]
    text = markdown.read_page("a", path.read_bytes()).text
    for row in rows:
        start, end = map(int, row["id"].rpartition("#char=")[2].split(","))
        assert text[start:end] == row["text"]


def test_long_documents_are_parsed_by_section(monkeypatch: pytest.MonkeyPatch) -> None:
    section = "## Heading\n\nA text with *words* and a [link](x).\n\n- An item\n\n"
    expected = prose(section * 200)
    monkeypatch.setattr(markdown, "BLOCK", len(section) * 7 + 11)
    assert prose(section * 200) == expected


WORDS = st.lists(st.sampled_from("Regen fällt heute wieder auf die Stadt und Земля 雨".split()))


@given(st.lists(WORDS.filter(bool).map(" ".join), min_size=1, max_size=6), st.data())
@settings(max_examples=60, deadline=None)
def test_no_prose_is_lost_among_markup(texts: list[str], data: st.DataObject) -> None:
    frames = ["{}", "# {}", "- {}", "> {}", "<Note>\n{}\n</Note>", ":::tip\n{}\n:::", "*{}*"]
    frames += ["<td>{}</td>", "[{}](http://x)", "1. {}", "{} {{#id}}", "~~{}~~"]
    blocks = [data.draw(st.sampled_from(frames)).format(text) for text in texts]
    joined = f"\n\n{FENCE}\n\n".join(blocks)
    assert [part for part in paragraphs(joined) if part] == texts


@pytest.mark.parametrize(
    "unit",
    [
        *("[", "![", "<a {", "<a '", '<a "', "{/*", "{{", "{% ", "<pre> x\n", "<svg>\n</svg> x\n"),
        *(
            "<!--",
            "<!-- -->",
            ":::a\n",
            "!!! a\n    ",
            "> ",
            "- a\n  ",
            "$a",
            "[^1]: a\n",
            "a\n: b\n",
        ),
        *(
            "<https://a",
            "{'a",
            "<Foo\n",
            "x\n<Foo>\n",
            "import {\n",
            '=== "a"\n    ',
            "| a ",
            "`` ` ",
            "```{note}\n",
            "+++\n",
        ),
    ],
)
def test_time_is_linear(unit: str) -> None:
    assert_linear(lambda characters: prose(unit * (characters // len(unit))), 1 << 12, 1 << 15)
