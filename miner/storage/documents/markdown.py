"""Read the prose of Markdown, with the markup of documentation."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.html_blocks import block_names
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, html_block
from markdown_it.rules_inline import StateInline, html_inline
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from miner.storage.documents.records import (
    LINE_BREAK,
    Document,
    checked,
    decoded,
    text_blocks,
    unwrapped,
)

BLOCK = 1 << 19  # characters of a document that are parsed together, in some 250 MB

# Tags of HTML and JSX, and braces within braces. Quantifiers are possessive, and what begins ends
# before the next of its kind: the time is linear in any text.
_STRING = r"""[^{}"'`]++|"[^"\n]*+"|'[^'\n]*+'|`[^`\n]*+`|["'`]"""
_BRACES = rf"\{{(?:{_STRING})*+\}}"
for _ in range(3):
    _BRACES = rf"\{{(?:{_STRING}|{_BRACES})*+\}}"
_HIDDEN = ("math", "pre", "script", "style", "svg", "template", "textarea")  # without prose
_OPENS_HIDDEN = rf"<(?P<hidden>{'|'.join(_HIDDEN)})(?=[\s>])|<!--"
_TAG = rf"""<(?!(?:{"|".join(_HIDDEN)})[\s>])/?
    (?:[a-z][\w.:-]*+ (?:[ \t]++ | \n(?![ \t]*+\n) | /(?!>) | [^\s"'{{}}<>/,;!?]++
        | "[^"<]*+" | '[^'<]*+' | {_BRACES})*+ )?+ /?>"""
_COMMENT = r"\{/\* (?:[^*{]++ | \*(?!/) | \{(?!/\*))*+ \*/\s*+\}"
_MARKUP = re.compile(
    rf"(?:(?:{_TAG}|{_COMMENT}|{_BRACES})[ \t]*+)*+ (?P<hides>{_OPENS_HIDDEN})?",
    re.VERBOSE | re.IGNORECASE,
)
_INLINE_TAG = re.compile(rf"{_TAG}|</?(?:{'|'.join(_HIDDEN)})[^<>]*+>", re.VERBOSE | re.IGNORECASE)
# Braces within text that are markup: attributes, comments, templates, strings of JSX.
_INLINE_BRACES = re.compile(
    rf"(?=\{{(?:[\#.:%{{<!*]|/\*|\s*+[\"'`]|[\w-]+=))(?:{_COMMENT}|{_BRACES})", re.VERBOSE
)
_SHOWN = re.compile(  # by a string of JSX, or by one of Hugo's shortcodes
    r"""\{\s*+(["'`])(?P<string>[^"'`]*+)\1\s*+\}|\{\{.*\stext="(?P<text>[^"]*+)".*""", re.DOTALL
)
_NAME = re.compile(r"<(?P<closes>/?)(?P<name>[\w.:-]*+)")

# A line that begins or ends a container, includes a snippet, or stands for a table of contents.
_MARKER = re.compile(
    r"(?::{3,}|/{3,}(?=\s|\Z))\s*(?:\{?[\w-]+\}?)?(?:\[(?P<label>.*)\].*|(?P<title>.*))|\[!\w+\][+-]?(?P<alert>.*)"
    r"|<<<\s.*|\[\[?_?toc_?\]?\]\s*",
    re.IGNORECASE,
)
_TAB = re.compile(r"^([ \t]*)===[!+]?[ \t]+(?=\")", re.MULTILINE)  # of Material for MkDocs
_MODULE = re.compile(  # what MDX imports and exports
    r"import\s(?:[^\"']*\sfrom\s+)?[\"']|import\s*\{[^}]*\Z|export\s+(?:default|const|let|function)\s"
)
_IS_MDX = re.compile(r"^[ \t]*(?:</?[A-Z]|\{/\*|import\s.*\sfrom\s+[\"'])", re.MULTILINE)

_BREAKS = frozenset(block_names)
_CODE = frozenset({"code", "kbd", "samp", "tt", "var"})
_KEPT_APART = _CODE | {*_HIDDEN}


def page(name: str, content: bytes) -> Document:
    """Return the document of a file's Markdown, without markup."""
    document = decoded(name, content)
    return document if document.broken else checked(name, prose(document.text))


def prose(text: str) -> str:
    """Return the prose of Markdown, with an empty line between paragraphs.

    Headings, items and cells are paragraphs of their own. Code, metadata, tags and comments are
    left out; code within a sentence stays.
    """
    parser = _parser(is_mdx=bool(_IS_MDX.search(text)))
    found: list[str] = []
    for block in text_blocks(_TAB.sub(r"\1!!! tab ", text), BLOCK, ("\n\n## ", "\n## ", "\n\n")):
        for before, token in pairwise([Token("", "", 0), *parser.parse(block)]):
            if token.type == "inline" and not _is_default_title(before, token.content):
                found += _paragraphs(token.children or [])
    return "\n\n".join(found)


@cache
def _parser(*, is_mdx: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"alerts": True, "tasklists": True})
    parser.enable(["strikethrough", "table"]).use(front_matter_plugin)
    parser.use(admon_plugin).use(deflist_plugin).use(footnote_plugin, inline=False)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote"]}
    parser.block.ruler.at("html_block", _skip_lines, interrupts)
    parser.inline.ruler.at("html_inline", _skip_inline)
    return parser.disable("code") if is_mdx else parser  # MDX has no indented code


def _is_default_title(opening: Token, title: str) -> bool:
    """Return whether the parser made up the title of a note."""
    kind = opening.markup.split()[-1:]
    is_note = opening.type == "admonition_title_open" and kind == [title.lower()]
    return is_note or opening.type == "alert_title_open"


def _skip_lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Skip lines of markup, and keep a container's title."""
    if state.is_code_block(start):
        return False
    place, limit = state.bMarks[start] + state.tShift[start], state.eMarks[end - 1]
    line = state.src[place : state.eMarks[start]]
    if line.startswith(("<!", "<?")) and not line.startswith("<!--"):
        return html_block(state, start, end, silent)
    text: str | None = None
    if line.startswith(("<", "{")) and not line.startswith("<<<"):
        if not silent or _interrupts(line):
            place, text = _after_markup(state.src, place, limit)
    elif marker := _MARKER.fullmatch(line):
        place += len(line)
        text = (marker["label"] or marker["title"] or marker["alert"] or "").strip(' \t|"')
    elif not (state.sCount[start] or silent) and _MODULE.match(line):
        place, text = _line_end(state.src, "\n\n", place, limit), ""
    if text is None or silent:
        return text is not None
    _go_to(state, start, end, place)
    if text:
        token = state.push("inline", "", 0)
        token.content, token.map, token.children = text, [start, state.line], []
    return True


def _interrupts(line: str) -> bool:
    """Return whether a paragraph ends before a line of tags."""
    _, name = _name(line)
    if not name or _ends_paragraphs(name) or name.lower() in _HIDDEN:
        return True
    return name[0].isupper() and not line.rstrip().endswith("/>")


def _after_markup(source: str, place: int, limit: int) -> tuple[int, str | None]:
    """Return the end of the markup's last line, and the text in its rest.

    The text is None where the line has to be read as one, with tags among the text.
    """
    text = None
    while (markup := _MARKUP.match(source, place, limit)) and markup["hides"]:
        text = ""
        closing = _closing(markup["hidden"] or "")
        closed = closing.search(source, markup.end(), limit)
        place = closed.end() if closed else limit
    assert markup  # of nothing, at the least
    line_end = _line_end(source, "\n", markup.end(), limit)
    rest = source[markup.end() : line_end].strip()
    return line_end, rest if text is not None else (None if rest else "")


def _line_end(source: str, mark: str, place: int, limit: int) -> int:
    found = source.find(mark, place, limit)
    return limit if found < 0 else found


@cache
def _closing(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}\s*+>" if name else "-->", re.IGNORECASE)


def _go_to(state: StateBlock, start: int, end: int, place: int) -> None:
    """Continue after a line's end, where no indented code begins."""
    line = start + 1
    while line < end and state.bMarks[line] < place:
        line += 1
    state.line = line
    if line < end and not state.isEmpty(line):
        state.sCount[line] = min(state.sCount[line], state.blkIndent + 3)


def _skip_inline(state: StateInline, silent: bool) -> bool:
    """Make a token of a tag or of braces that are markup."""
    source, place = state.src, state.pos
    if source.startswith(("<!", "<?"), place):
        return html_inline(state, silent)
    if source[place] not in "<{":
        return False
    pattern = _INLINE_TAG if source[place] == "<" else _INLINE_BRACES
    if not (markup := pattern.match(source, place, state.posMax)):
        return False
    if not silent:
        state.push("html_inline", "", 0).content = markup[0]
    state.pos = markup.end()
    return True


def _paragraphs(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the paragraphs of inline tokens, without paragraphs of code.

    Wrapped lines are joined; line ends that are meant are kept.
    """
    for is_break, group in groupby(_pieces(tokens), lambda piece: piece is _BREAK):
        pieces = list(group)
        plain = "".join(piece.text for piece in pieces if not piece.is_code)
        has_code = any(piece.is_code for piece in pieces)
        if is_break or (has_code and not any(map(str.isalpha, plain))):
            continue
        if text := unwrapped("".join(piece.text for piece in pieces)):
            yield text


class _Piece(NamedTuple):
    """Text within a paragraph."""

    text: str
    is_code: bool = False


_BREAK = _Piece("")


def _pieces(tokens: Sequence[Token]) -> Iterator[_Piece]:
    """Yield the text of inline tokens, with a ``_BREAK`` where a paragraph ends."""
    element = ""  # the innermost element of code or hidden content around the text
    links: list[str] = []
    for token in tokens:
        if token.type == "html_inline":
            closes, name = _name(token.content)
            if element:
                element = "" if closes and name.lower() == element else element
            elif name.lower() in _KEPT_APART and not (closes or token.content.endswith("/>")):
                element = name.lower()
            else:
                yield from _of_markup(name, token.content)
        elif token.type == "link_open":
            links.append(token.markup)
        elif token.type == "link_close":
            links.pop()
        elif element not in _HIDDEN:
            is_code = bool(element) or links[-1:] == ["autolink"]
            yield from _of_text(token, is_code=is_code, is_linked=bool(links))


def _name(tag: str) -> tuple[bool, str]:
    """Return whether it is a closing tag, and the element's name."""
    match = _NAME.match(tag)
    return (bool(match["closes"]), match["name"]) if match else (False, "")


def _ends_paragraphs(name: str) -> bool:
    """Return whether an element is a block of HTML; a ``Link`` is a component."""
    return (name.lower() in _BREAKS and not name.istitle()) or (len(name) == 1 and name in "pP")


def _of_markup(name: str, content: str) -> Iterator[_Piece]:
    if name.lower() == "br":
        yield _Piece(LINE_BREAK)
    elif _ends_paragraphs(name):
        yield _BREAK
    elif shown := _SHOWN.fullmatch(content):
        yield _Piece(shown["string"] or shown["text"] or "")


def _of_text(token: Token, *, is_code: bool, is_linked: bool) -> Iterator[_Piece]:
    match token.type:
        case "text" | "text_special":
            yield _Piece(token.content, is_code)
        case "code_inline" | "math_inline":
            yield _Piece(token.content, True)
        case "softbreak" | "hardbreak":
            yield _Piece("\n" if token.type == "softbreak" else LINE_BREAK)
        case "image" if not is_linked:  # a linked one is a badge
            yield _Piece(" ".join(_paragraphs(token.children or [])))
