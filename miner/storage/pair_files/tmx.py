"""Read pairs from TMX, one unit at a time."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any
from xml.etree import ElementTree

from miner.language_codes import base_language, parse_language
from miner.storage.corpus.records import CorpusError
from miner.storage.pair_files.base import FilePair, Languages, PairFile
from miner.storage.places import Place
from miner.storage.streams import read_chunks

SAMPLED_UNITS = 200  # that show the languages
_CODES = {"bpt", "ept", "ph", "it", "ut"}  # elements that hold markup of another format
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def open_tmx(path: Place, columns: Sequence[str], languages: Languages) -> PairFile:
    """Recognise the languages of a TMX file by its first units.

    ``languages``, whose regions do not count, choose source and target. For None, that of the
    header comes first, then others in the order of units. PlaceError is as in ``read_chunks``.

    Raises:
        CorpusError: The file is damaged, ``columns`` is not empty, or the first units lack the
            languages, or have other than two while one of ``languages`` is None.
    """
    if columns:
        raise CorpusError(f"--columns: {path} is TMX; use --src-lang and --tgt-lang")
    source = ""
    tags: dict[str, str] = {}  # by their language, in order
    for srclang, unit in islice(_units(path), SAMPLED_UNITS):
        source = base_language(srclang) if srclang else ""
        for variant in unit.iter("tuv"):
            tag = _tag(variant)
            tags.setdefault(base_language(tag), tag)
    known = ", ".join(tags.values())
    given = [base_language(language) if language else None for language in languages]
    if lacking := next((code for code in given if code and tags and code not in tags), None):
        raise CorpusError(
            f"{path}: its first {SAMPLED_UNITS} units have no text in {lacking!r}, only in "
            f"{known}; pass two of these as --src-lang and --tgt-lang"
        )
    order = sorted(tags, key=lambda code: code != source)
    free = [code for code in order if code not in given]
    if len(order) > 2 and None in given:
        raise CorpusError(
            f"{path}: has the languages {known}; choose two with --src-lang and --tgt-lang (of "
            "adit convert or rate)"
        )
    if len(order) == 1 or (not order and None in given):
        contents = f"text in {known} only" if known else "no language"
        raise CorpusError(
            f"{path}: its first {SAMPLED_UNITS} units have {contents}; pass TMX with two languages"
        )
    chosen = tuple(code or free.pop(0) for code in given)
    shown = tuple(tags.get(code, code) for code in chosen)
    return PairFile(
        layout=f"TMX, {shown[0]} and {shown[1]}",
        read=partial(_read, path, chosen),
        languages=tuple(_parsed(tag) for tag in shown),  # type: ignore[arg-type]
    )


def _parsed(tag: str) -> str | None:
    try:
        return parse_language(tag)
    except ValueError:
        return None


def _read(path: Place, languages: Sequence[str]) -> Iterator[FilePair]:
    for number, (_, unit) in enumerate(_units(path), 1):
        yield _pair(f"{path} unit {number}", unit, languages)


def _units(path: Place) -> Iterator[tuple[str, ElementTree.Element]]:
    # The language of the header, and each unit, which is then emptied.
    source = ""
    body = None
    try:
        for event, element in _events(path):
            if element.tag == "header":
                source = element.get("srclang", "")
            elif element.tag == "body" and event == "start":
                body = element
            elif element.tag == "tu" and event == "end":
                yield "" if source == "*all*" else source, element
                if body is not None:
                    body.clear()  # or the tree grows with the file
    except ElementTree.ParseError as error:
        raise CorpusError(
            f"{path}: is cut off or not valid XML ({error}); fetch it again, or correct it"
        ) from error


def _events(path: Place) -> Iterator[Any]:
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(["start", "end"])
    for chunk in read_chunks(path):
        try:
            parser.feed(chunk)
        except (LookupError, ValueError) as error:  # of the encoding that the file declares
            remedy = "convert it to UTF-8, and name that in its first line"
            raise CorpusError(f"{path}: {error}; {remedy}") from error
        yield from parser.read_events()
    parser.close()


def _tag(variant: ElementTree.Element) -> str:
    return variant.get(_LANGUAGE) or variant.get("lang") or ""


def _pair(place: str, unit: ElementTree.Element, languages: Sequence[str]) -> FilePair:
    variants = {base_language(_tag(variant)): variant for variant in reversed(unit.findall("tuv"))}
    if lacking := next((code for code in languages if code not in variants), None):
        return FilePair(place=place, problem=f"has no text in {lacking}")
    own = [variants[code] for code in languages]
    try:
        score, probability = (_number(unit, name) for name in ("score", "probability"))
    except ValueError as error:
        return FilePair(place=place, problem=str(error))
    ids, other_ids = (tuple(map(str.strip, _properties(one, "id"))) for one in own)
    text, other_text = ("".join(map(_text, one.findall("seg"))) for one in own)
    return FilePair(
        place=place,
        texts=(text, other_text),
        score=score,
        probability=probability,
        ids=(ids, other_ids) if ids and other_ids else None,
    )


def _number(unit: ElementTree.Element, name: str) -> float | None:
    texts = _properties(unit, name)
    try:
        return float(texts[0]) if texts else None
    except ValueError:
        raise ValueError(f"{name} {texts[0]!r} is not a number") from None


def _properties(element: ElementTree.Element, name: str) -> list[str]:
    kind = f"x-{name}"
    return [prop.text or "" for prop in element.findall("prop") if prop.get("type") == kind]


def _text(segment: ElementTree.Element) -> str:
    """Return the text of a segment without inline codes."""
    for code in [inner for inner in segment.iter() if inner.tag in _CODES]:
        tail = code.tail
        code.clear()
        code.tail = tail
    return "".join(segment.itertext())
