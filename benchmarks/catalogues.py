"""Translated messages of programs as parallel text: games, maps, an office suite, names of places.

apt-get download iso-codes libgweather-4-common wesnoth-1.16-data freeciv-data widelands-data \
    warzone2100-data kgeography-data kstars-data kalzium-data libreoffice-l10n-XX ...
for package in *.deb; do dpkg-deb -x $package ROOT; done
python benchmarks/catalogues.py DATA ROOT --but TESTS

For each XX-en that DATA has, messages.XX-en.tsv.xz is written to it: a message in XX, TAB, the
English one, TAB, its corpus. Paragraphs of a message are pairs of their own where both sides have
as many. Sentences of the test sets in TESTS are left out: by their letters and digits alone.
"""

from __future__ import annotations

import argparse
import lzma
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

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
CODES = {"nb_NO": "nb"}
CONTEXT = re.compile(r".*\x04|^[^\s^]*( [^\s^]+){0,4}\^", re.DOTALL)  # of a message, before it
MARKUP = re.compile(r"<[^>]*>|\([~_&]\w\)|\$[\w|.]+|%\d*\$?[-\d.]*[a-z]|%[A-Z]+|[~_&](?=\w)")


def main() -> None:
    """Write the messages of every language that there are pairs of."""
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
    found: dict[str, dict[tuple[str, str, str], None]] = defaultdict(dict)
    for path in sorted(args.root.rglob("LC_MESSAGES/*.mo")):
        below = str(path.relative_to(args.root))
        corpus = next(name for part, name in CORPORA.items() if part in below)
        language = CODES.get(path.parts[-3], path.parts[-3])
        for message, translation in pairs(path):
            if corpus in NAMES or tests.isdisjoint({letters(message), letters(translation)}):
                found[language][translation, message, corpus] = None
    for pair in find_parallel_text(args.data):
        language, _, other = pair.partition("-")
        if other == "en" and language in found:
            text = "".join("\t".join(row) + "\n" for row in found[language])
            (args.data / f"messages.{pair}.tsv.xz").write_bytes(lzma.compress(text.encode()))


def letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, text.lower()))


def pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a catalogue (.mo) translates, by paragraph, without markup."""
    for message, translation in translations(path):
        sides = [CONTEXT.sub("", text).split("\0")[0] for text in (message, translation)]
        paragraphs = [side.split("\n\n") for side in sides]
        if len(paragraphs[0]) != len(paragraphs[1]):
            paragraphs = [[side] for side in sides]
        for sides in zip(*paragraphs, strict=True):
            one, other = (" ".join(MARKUP.sub(" ", text).split()) for text in sides)
            if one != other and all(
                2 < len(text) <= LONGEST and any(map(str.isalpha, text)) for text in (one, other)
            ):
                yield one, other


def translations(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of a catalogue (.mo) with their translations."""
    content = path.read_bytes()
    count, messages, translated = struct.unpack_from("<3I", content, 8)
    for number in range(1, count):  # the first is the header
        pair = []
        for table in (messages, translated):
            length, start = struct.unpack_from("<2I", content, table + 8 * number)
            pair.append(content[start : start + length].decode("utf-8", "replace"))
        yield pair[0], pair[1]


if __name__ == "__main__":
    main()
