"""Make parallel text of translated messages of programs.

python benchmarks/debian.py ROOT
npm install --prefix ROOT scratch-l10n@6.1.116 @openstreetmap/id-tagging-schema@7.2.0
pip install --no-deps --target ROOT homeassistant==2024.3.3 kolibri==0.19.5
python benchmarks/catalogues.py DATA ROOT --but TESTS

For each XX-en that DATA has, messages.XX-en.tsv.xz is written to it: a message in XX, TAB, the
English one, TAB, its corpus. Paragraphs of a message are pairs of their own where both sides have
as many. Sentences of the test sets in TESTS are left out: by their letters and digits alone.
"""

from __future__ import annotations

import argparse
import html
import json
import lzma
import re
import struct
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encoder.training.reading import find_parallel_text

CORPORA = {  # by what a catalogue's path has
    "iso_": "iso-codes",
    "libgweather": "gweather",
    "wesnoth": "wesnoth",
    "freeciv": "freeciv",
    "widelands": "widelands",
    "warzone2100": "warzone2100",
    "kgeography": "kgeography",
    "kstars": "kstars",
    "kalzium": "kalzium",
    "libreoffice": "libreoffice",
    "": "programs",
}
NAMES = "iso-codes", "gweather"  # are no sentences: a test set may have them
LONGEST = 600  # characters
MOST = 200_000  # messages of programs, of a language
KEYED = {  # texts by key, a file for each language, and the English one of them
    "mediawiki": (re.compile(r"/mediawiki/.*/i18n/(?:.*/)?([^/]+)\.json$"), "en"),
    "mozilla": (re.compile(r"/langpack-([\w-]+)@.*\.xpi$"), "en-GB"),
    "libreoffice-help": (re.compile(r"/libreoffice/help/([\w-]+)/text/.*\.html$"), "en-US"),
    "scratch": (re.compile(r"/scratch-l10n/(?:editor|www)/[^/]+/([\w-]+)\.json$"), "en"),
    "openstreetmap": (re.compile(r"/id-tagging-schema/(?:.*/)?translations/([\w-]+)\.json$"), "en"),
    "home-assistant": (re.compile(r"/homeassistant/.*/translations/([\w-]+)\.json$"), "en"),
    "kolibri": (re.compile(r"/kolibri/locale/([\w-]+)/LC_MESSAGES/.*\.json$"), "en"),
}
REGION = re.compile("[-_](NO|SE|AM|NL|IE|IN|PK|cyrl|ec)$")  # that says nothing of the language
CONTEXT = re.compile(r".*\x04|^[^\s^]*( [^\s^]+){0,4}\^", re.DOTALL)  # of a message, before it
MOZILLA = {  # key and text, by a file's suffix
    "ftl": re.compile(r"^([\w-]+| +\.[\w-]+) =[ \t]*(.*(?:\n+ +[^\s.}*[].*)*)", re.MULTILINE),
    "properties": re.compile(r"^([\w.-]+) *= *(.+)", re.MULTILINE),
    "dtd": re.compile(r'<!ENTITY\s+([\w.-]+)\s+"([^"]*)"'),
}
HELP = re.compile(r'<(?:p|h\d) id="([^"]+)"[^>]*>(.*?)</(?:p|h\d)>', re.DOTALL)
FORMS = re.compile(r"\{\{[^{}]*[:|]([^{}|]+)\}\}|\[\[(?:[^][|]*\|)?([^][|]+)\]\]")
MARKUP = re.compile(
    r"<[^>]*>|\{+[^{}]*\}+|''+|\([~_&]\w\)|\$[\w|.]+|%\d*\$?[-\d.]*[a-zS]|%[A-Z]+|[~_&](?=\w)"
)


def main() -> None:
    """Write the messages of every language that has pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of parallel text")
    parser.add_argument("root", type=Path, help="folder with catalogues XX/LC_MESSAGES/*.mo below")
    parser.add_argument("--but", type=Path, required=True, help="folder of test sets")
    args = parser.parse_args()
    tests = {
        letters(line.rpartition("\t")[2])
        for path in args.but.rglob("*")
        if path.is_file()
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n")
    }
    languages = {
        pair.removesuffix("-en") for pair in find_parallel_text(args.data) if pair.endswith("-en")
    }
    found: dict[str, dict[tuple[str, str, str], None]] = defaultdict(dict)
    for read in (catalogues, keyed):
        for language, corpus, message, translation in read(args.root, languages):
            if corpus in NAMES or tests.isdisjoint({letters(message), letters(translation)}):
                found[language][translation, message, corpus] = None
    for language in languages & set(found):
        text = "".join("\t".join(row) + "\n" for row in thinned(list(found[language])))
        path = args.data / f"messages.{language}-en.tsv.xz"
        path.write_bytes(lzma.compress(text.encode(), preset=1))


def thinned(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Thin out the messages of programs evenly if they exceed ``MOST``."""
    places = [place for place, row in enumerate(rows) if row[2] == CORPORA[""]]
    kept = {places[number * len(places) // MOST] for number in range(MOST)} if places else set()
    return [row for place, row in enumerate(rows) if row[2] != CORPORA[""] or place in kept]


def letters(text: str) -> str:
    """Return the lower-case letters and digits of a text."""
    return "".join(filter(str.isalnum, text.lower()))


def catalogues(root: Path, languages: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield language, corpus, message and translation of catalogues (.mo)."""
    for path in sorted(root.rglob("LC_MESSAGES/*.mo")):
        if (language := REGION.sub("", path.parts[-3])) not in languages:
            continue
        below = str(path.relative_to(root))
        corpus = next(name for part, name in CORPORA.items() if part in below)
        for sides in translations(path):
            message, translation = (CONTEXT.sub("", text).split("\0")[0] for text in sides)
            for pair in paragraphs(message, translation):
                yield language, corpus, *pair


def keyed(root: Path, languages: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the same of files with a text per key and an English counterpart."""
    paths = sorted(root.rglob("*"))
    for corpus, (place, english) in KEYED.items():
        originals: dict[Path, dict[str, str]] = {}
        for path in paths:
            match = place.search(str(path))
            if not match or (language := REGION.sub("", match[1])) not in languages:
                continue
            original = Path(f"{path}"[: match.start(1)] + english + f"{path}"[match.end(1) :])
            if original.is_file():
                if original not in originals:
                    originals[original] = texts(original, english)
                for key, translation in texts(path, match[1]).items():
                    for pair in paragraphs(originals[original].get(key, ""), translation):
                        yield language, corpus, *pair


def texts(path: Path, language: str) -> dict[str, str]:
    """Return the texts of a file by key, of MediaWiki, Mozilla, or help pages."""
    if path.suffix == ".json":
        content = json.loads(path.read_bytes())
        own = content.get(language)
        return dict(leaves(own if isinstance(own, dict) else content))
    if path.suffix == ".html":
        return {key: html.unescape(text) for key, text in HELP.findall(path.read_text("utf-8"))}
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if pattern := MOZILLA.get(name.rpartition(".")[2]):
                content = archive.read(name).decode("utf-8", "replace")
                file = message = name.replace(f"/{language}/", "/")
                for match in pattern.finditer(content):
                    if not match[1].startswith(" "):  # else an attribute of the message before
                        message = file + match[1]
                    found[message + match[1]] = match[2]
    return found


def leaves(tree: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a tree with the keys that lead to them."""
    for key, below in tree.items():
        if isinstance(below, dict):
            yield from leaves(below, f"{place}{key}\0")
        elif isinstance(below, str):
            yield place + key, below


def paragraphs(message: str, translation: str) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs of a message and its translation, without markup."""
    split = [side.split("\n\n") for side in (message, translation)]
    if len(split[0]) != len(split[1]):
        split = [[message], [translation]]
    for sides in zip(*split, strict=True):
        one, other = (" ".join(MARKUP.sub(" ", FORMS.sub(r"\1\2", text)).split()) for text in sides)
        if one != other and all(
            2 < len(text) <= LONGEST and any(map(str.isalpha, text)) for text in (one, other)
        ):
            yield one, other


def translations(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of a catalogue (.mo) with their translations."""
    content = path.read_bytes()
    order = "<" if content[0] == 0xDE else ">"  # of a number's bytes, by the first one
    count, messages, translated = struct.unpack_from(f"{order}3I", content, 8)
    for number in range(1, count):  # the first is the header
        pair = []
        for table in (messages, translated):
            length, start = struct.unpack_from(f"{order}2I", content, table + 8 * number)
            pair.append(content[start : start + length].decode("utf-8", "replace"))
        yield pair[0], pair[1]


if __name__ == "__main__":
    main()
