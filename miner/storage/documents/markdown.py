"""Extraction of prose from Markdown and the markup of documentation."""

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

from miner.storage.documents import records

BLOCK = 1 << 19  # characters of a document that are parsed together, using about 250 MB

# Tags of HTML and JSX, and nested braces. The time is linear in any text: quantifiers are
# possessive, repeated groups atomic (as in ``splitting``), and a tag, comment or string ends before
# the next one of its kind begins.
_STRING = r"""[^{}"'`]++|"[^"\n]*+"|'[^'\n]*+'|`[^`\n]*+`|["'`]"""
_BRACES = rf"\{{(?>(?:{_STRING})*)\}}"
for _ in range(3):
    _BRACES = rf"\{{(?>(?:{_STRING}|{_BRACES})*)\}}"
_HIDDEN = ("math", "pre", "script", "style", "svg", "template", "textarea")  # contain no prose
_OPENS_HIDDEN = rf"<(?P<hidden>{'|'.join(_HIDDEN)})(?=[\s>])|<!--"
_TAG = rf"""<(?!(?:{"|".join(_HIDDEN)})[\s>])/?
    (?>(?:[a-z][\w.:-]*+ (?>(?:[ \t]++ | \n(?![ \t]*+\n) | /(?!>) | [^\s"'{{}}<>/,;!?]++
        | "[^"<]*+" | '[^'<]*+' | {_BRACES})*) )?) /?>"""
_COMMENT = r"\{/\* (?>(?:[^*{]++ | \*(?!/) | \{(?!/\*))*) \*/\s*+\}"
_MARKUP = re.compile(
    rf"(?>(?:(?:{_TAG}|{_COMMENT}|{_BRACES})[ \t]*+)*) (?P<hides>{_OPENS_HIDDEN})?",
    re.VERBOSE | re.IGNORECASE,
)
_INLINE_TAG = re.compile(rf"{_TAG}|</?(?:{'|'.join(_HIDDEN)})[^<>]*+>", re.VERBOSE | re.IGNORECASE)
# Braces in a line of text that are markup: attributes, comments, templates, strings of JSX.
_INLINE_BRACES = re.compile(
    rf"(?=\{{(?:[\#.:%{{<!*]|/\*|\s*+[\"'`]|[\w-]+=))(?:{_COMMENT}|{_BRACES})", re.VERBOSE
)
_SHOWN_STRING = re.compile(  # text in a string of JSX, or in a shortcode of Hugo
    r"""\{\s*+(["'`])(?P<string>[^"'`]*+)\1\s*+\}|\{\{.*\stext="(?P<text>[^"]*+)".*""", re.DOTALL
)
_NAME = re.compile(r"<(?P<closes>/?)(?P<name>[\w.:-]*+)")

# A line that begins or ends a container, includes a snippet, or inserts a table of contents.
_MARKER = re.compile(
    r"(?::{3,}|/{3,}(?=\s|\Z))\s*(?:\{?[\w-]+\}?)?(?:\[(?P<label>.*)\].*|(?P<title>.*))|\[!\w+\][+-]?(?P<alert>.*)"
    r"|<<<\s.*|\[\[?_?toc_?\]?\]\s*",
    re.IGNORECASE,
)
_TAB = re.compile(r"^([ \t]*)===[!+]?[ \t]+(?=\")", re.MULTILINE)  # a tab of Material for MkDocs
_TOML = re.compile(r"\A\+{3}[ \t]*\n.*?^\+{3}[ \t]*$", re.MULTILINE | re.DOTALL)  # of Hugo
_DIRECTIVE = re.compile(  # a fence of MyST that contains Markdown
    r"\{(?:attention|caution|danger|error|hint|important|note|tip|warning|admonition|seealso|dropdown"
    r"|topic|sidebar|margin|todo|deprecated|version(?:added|changed))\}(?P<title>.*)"
)
_OPTIONS = re.compile(r"\A(?::[\w-]+:.*\n)+")
_MAX_DIRECTIVES = 4  # within each other
_MODULE = re.compile(  # an import or export in MDX
    r"import\s(?:[^\"']*\sfrom\s+)?[\"']|import\s*\{[^}]*\Z|export\s+(?:default|const|let|function)\s"
)
_IS_MDX = re.compile(r"^[ \t]*(?:</?[A-Z]|\{/\*|import\s.*\sfrom\s+[\"'])", re.MULTILINE)

_BREAKS = frozenset(block_names)
_CODE = frozenset({"code", "kbd", "samp", "tt", "var"})
_NOT_PROSE = _CODE | {*_HIDDEN}


def read_page(name: str, content: bytes) -> records.Document:
    """Return Markdown's ``prose``, broken if blank, not UTF-8 or too long."""
    document = records.decode_document(name, content)
    return document if document.broken else records.check_document(name, prose(document.text))


def prose(text: str) -> str:
    """Return the prose of Markdown, with an empty line between paragraphs.

    Headings, list items and table cells are separate paragraphs. Metadata, tags, comments, blocks
    of code and paragraphs of code alone are removed. Code within a sentence stays.
    """
    return "\n\n".join(_prose(_TOML.sub("", text), _MAX_DIRECTIVES))


def _prose(text: str, directives: int) -> list[str]:
    parser = _parser(is_mdx=bool(_IS_MDX.search(text)))
    paragraphs: list[str] = []
    for block in records.text_blocks(
        _TAB.sub(r"\1!!! tab ", text), BLOCK, ("\n\n## ", "\n## ", "\n\n")
    ):
        for opening, token in pairwise([Token("", "", 0), *parser.parse(block)]):
            if token.type == "inline" and not _is_default_title(opening, token.content):
                paragraphs += _paragraphs(token.children or [])
            elif directives and (directive := _DIRECTIVE.match(token.info)):
                content = _OPTIONS.sub("", token.content)
                paragraphs += _prose(f"{directive['title']}\n\n{content}", directives - 1)
    return paragraphs


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
    """Skip lines of markup, but keep a container's title."""
    if state.is_code_block(start):
        return False
    position, limit = state.bMarks[start] + state.tShift[start], state.eMarks[end - 1]
    line = state.src[position : state.eMarks[start]]
    if line.startswith(("<!", "<?")) and not line.startswith("<!--"):
        return html_block(state, start, end, silent)
    text: str | None = None
    if line.startswith(("<", "{")) and not line.startswith("<<<"):
        if not silent or _interrupts(line):
            position, text = _after_markup(state.src, position, limit)
    elif marker := _MARKER.fullmatch(line):
        position += len(line)
        text = (marker["label"] or marker["title"] or marker["alert"] or "").strip(' \t|"')
    elif not (state.sCount[start] or silent) and _MODULE.match(line):
        position, text = _line_end(state.src, "\n\n", position, limit), ""
    if text is None or silent:
        return text is not None
    _continue_at(state, start, end, position)
    if text:
        token = state.push("inline", "", 0)
        token.content, token.map, token.children = text, [start, state.line], []
    return True


def _interrupts(line: str) -> bool:
    """Return whether a line of tags ends the paragraph before it."""
    _, name = _parse_tag(line)
    if not name or _ends_paragraphs(name) or name.lower() in _HIDDEN:
        return True
    return name[0].isupper() and not line.rstrip().endswith("/>")


def _after_markup(source: str, position: int, limit: int) -> tuple[int, str | None]:
    """Return the end of markup's last line, and text there, None if inline."""
    text = None
    while (markup := _MARKUP.match(source, position, limit)) and markup["hides"]:
        text = ""
        end = rf"</{markup['hidden']}\s*+>" if markup["hidden"] else "-->"
        closed = re.compile(end, re.IGNORECASE).search(source, markup.end(), limit)
        position = closed.end() if closed else limit
    assert markup  # the pattern matches the empty string
    line_end = _line_end(source, "\n", markup.end(), limit)
    rest = source[markup.end() : line_end].strip()
    return line_end, rest if text is not None else (None if rest else "")


def _line_end(source: str, line_break: str, start: int, limit: int) -> int:
    end = source.find(line_break, start, limit)
    return limit if end < 0 else end


def _continue_at(state: StateBlock, start: int, end: int, position: int) -> None:
    """Continue after a line's end, so that no indented code begins there."""
    line = start + 1
    while line < end and state.bMarks[line] < position:
        line += 1
    state.line = line
    if line < end and not state.isEmpty(line):
        state.sCount[line] = min(state.sCount[line], state.blkIndent + 3)


def _skip_inline(state: StateInline, silent: bool) -> bool:
    source, position = state.src, state.pos
    if source.startswith(("<!", "<?"), position):
        return html_inline(state, silent)
    if source[position] not in "<{":
        return False
    pattern = _INLINE_TAG if source[position] == "<" else _INLINE_BRACES
    if not (markup := pattern.match(source, position, state.posMax)):
        return False
    if not silent:
        state.push("html_inline", "", 0).content = markup[0]
    state.pos = markup.end()
    return True


def _paragraphs(tokens: Sequence[Token]) -> Iterator[str]:
    for is_break, group in groupby(_pieces(tokens), lambda piece: piece is _BREAK):
        pieces = list(group)
        plain = "".join(piece.text for piece in pieces if not piece.is_code)
        has_code = any(piece.is_code for piece in pieces)
        if is_break or (has_code and not any(map(str.isalpha, plain))):
            continue
        if text := records.unwrap("".join(piece.text for piece in pieces)):
            yield text


class _Piece(NamedTuple):
    text: str
    is_code: bool = False


_BREAK = _Piece("")


def _pieces(tokens: Sequence[Token]) -> Iterator[_Piece]:
    """Yield the text of inline tokens, and ``_BREAK`` at ends of paragraphs."""
    element = ""  # the innermost element with code or hidden content around the text
    links: list[str] = []
    for token in tokens:
        if token.type == "html_inline":
            closes, name = _parse_tag(token.content)
            if element:
                element = "" if closes and name.lower() == element else element
            elif name.lower() in _NOT_PROSE and not (closes or token.content.endswith("/>")):
                element = name.lower()
            else:
                yield from _markup_pieces(name, token.content)
        elif token.type == "link_open":
            links.append(token.markup)
        elif token.type == "link_close":
            links.pop()
        elif element not in _HIDDEN:
            is_code = bool(element) or links[-1:] == ["autolink"]
            yield from _text_pieces(token, is_code=is_code, is_linked=bool(links))


def _parse_tag(tag: str) -> tuple[bool, str]:
    match = _NAME.match(tag)
    return (bool(match["closes"]), match["name"]) if match else (False, "")


def _ends_paragraphs(name: str) -> bool:
    """Return whether an element is a block of HTML, not a component."""
    return (name.lower() in _BREAKS and not name.istitle()) or (len(name) == 1 and name in "pP")


def _markup_pieces(name: str, content: str) -> Iterator[_Piece]:
    if name.lower() == "br":
        yield _Piece(records.LINE_BREAK)
    elif _ends_paragraphs(name):
        yield _BREAK
    elif shown := _SHOWN_STRING.fullmatch(content):
        yield _Piece(shown["string"] or shown["text"] or "")


def _text_pieces(token: Token, *, is_code: bool, is_linked: bool) -> Iterator[_Piece]:
    match token.type:
        case "text" | "text_special":
            yield _Piece(token.content, is_code)
        case "code_inline" | "math_inline":
            yield _Piece(token.content, True)
        case "softbreak" | "hardbreak":
            yield _Piece("\n" if token.type == "softbreak" else records.LINE_BREAK)
        case "image" if not is_linked:  # a linked one is a badge
            yield _Piece(" ".join(_paragraphs(token.children or [])))
