"""Recognition and replacement of HTML entities in corpora of text."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.entities import html5

from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import Records

MAX_LEVELS = 2  # "&amp;#39;" was escaped twice
MIN_SHARE = 0.005  # of texts that have an entity next to a letter
MIN_ESCAPED = 4  # entities per bare mark, which an escaped text would not have

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_BARE = re.compile(rf"(?!{_ENTITY.pattern})&|[<>]")
# Scripts without spaces between words, in which the letters around an entity are no evidence.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f"
_LETTER_BEFORE = re.compile(rf"(?:(?![{_UNSPACED}])[^\W_]|&\w+;|&#\w+;)$")
_LETTER_AFTER = re.compile(rf"(?:(?![{_UNSPACED}])[^\W_]|&\w+;|&#\w+;)")
_LOOK_BACK = 12  # characters
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def unescape(text: str, levels: int = 1) -> str:
    """Replace ``levels`` levels of HTML entities that end in a semicolon.

    Unknown ones stay. An entity of a tab or line end becomes a space, of other controls maybe "".
    """
    for _ in range(levels):
        text = _ENTITY.sub(_character, text)
    return text


def escaped_levels(texts: Sequence[str]) -> int:
    """Estimate how many times a corpus was escaped for HTML, from 0 to 2.

    ``texts`` are a sample of the corpus, maybe empty. Entities next to a letter are evidence
    ("That&#39;s"), except for letters of scripts such as Chinese. An entity of & must have letters
    on both sides. Entities of < and > are no evidence, and bare &, < and > are evidence against.
    """
    levels = 0
    for level in range(1, MAX_LEVELS + 1):
        marked = [text for text in texts if "&" in text or "<" in text or ">" in text]
        shown = sum(any(_is_evidence(match) for match in _ENTITY.finditer(text)) for text in marked)
        entities = sum(len(_ENTITY.findall(text)) for text in marked)
        bare = sum(len(_BARE.findall(text)) for text in marked)
        if shown and shown >= MIN_SHARE * len(texts) and entities >= MIN_ESCAPED * bare:
            levels = level
        texts = [unescape(text) for text in texts]
    return levels


def example(texts: Sequence[str]) -> str:
    """Return the first entity that is evidence of escaping, or a typical one."""
    matches = (match for text in texts for match in _ENTITY.finditer(text))
    return next((match[0] for match in matches if _is_evidence(match)), "&amp;#39;")


def unescape_records(batches: Iterator[Records], levels: int) -> Iterator[Records]:
    """Replace ``levels`` levels of HTML entities in the texts of records.

    Records whose text is then blank are rejected, with the text before. With 0, nothing changes.
    """
    return (_unescaped(records, levels) for records in batches) if levels else batches


def _unescaped(records: Records, levels: int) -> Records:
    texts = records.texts
    if isinstance(texts, JoinedLines) and b"&" not in texts.data:
        return records

    def raw(position: int) -> bytes:
        text = records.rejected_texts.get(position, texts[position])
        return text.encode(errors="backslashreplace")

    unescaped = [unescape(text, levels) if "&" in text else text for text in texts]
    columns = records.own_ids, records.docs, unescaped
    result = Records.from_columns(records.first_row, columns, dict(records.rejected), raw)
    return replace(result, trimmed=records.trimmed)


def _character(match: re.Match[str]) -> str:
    is_known = match[0][1] == "#" or match[0][1:] in html5
    return _CONTROL.sub(" ", html.unescape(match[0])) if is_known else match[0]


def _is_evidence(match: re.Match[str]) -> bool:
    """Return whether an entity touches a letter, as only in escaped text."""
    character, text = _character(match), match.string
    if character == match[0]:
        return False
    before = _LETTER_BEFORE.search(text, max(0, match.start() - _LOOK_BACK), match.start())
    after = _LETTER_AFTER.match(text, match.end())
    if character in "&<>":
        return character == "&" and bool(before and after)
    return bool(before or after)
