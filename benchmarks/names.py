"""Make parallel text of names in CLDR.

npm install --prefix DIR cldr-localenames-full@48.2.0 cldr-subdivisions-full@48.2.0 \
    cldr-dates-full@48.2.0 cldr-units-full@48.2.0 cldr-annotations-full@48.2.0
python benchmarks/names.py DATA DIR/node_modules

For each XX-en that DATA has, names.XX-en.tsv.xz is written to it: an XX name, TAB, the English one,
TAB, "cldr".
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encoder.training.reading import find_parallel_text

CODES = {"nb": "no", "tl": "fil"}  # of CLDR
LONGEST = 200  # characters; CLDR has some notes, too


def main() -> None:
    """Write the names of every language that has pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of parallel text")
    parser.add_argument("cldr", type=Path, help="folder of CLDR's packages")
    args = parser.parse_args()
    english = dict(cldr_names(args.cldr, "en"))
    for pair in find_parallel_text(args.data):
        language, _, other = pair.partition("-")
        if other != "en":
            continue
        found = [
            (name, english[key], "cldr")
            for key, name in cldr_names(args.cldr, CODES.get(language, language))
            if key in english
        ]
        lines = [
            "\t".join(" ".join(part.split()) for part in row) for row in found if are_names(row)
        ]
        text = "".join(f"{line}\n" for line in dict.fromkeys(lines))
        if text:
            (args.data / f"names.{pair}.tsv.xz").write_bytes(lzma.compress(text.encode()))


def are_names(row: tuple[str, str, str]) -> bool:
    """Return whether both texts are words of a name's length."""
    return all(
        1 < len(name) <= LONGEST and any(map(str.isalpha, name)) and "\0" not in name
        for name in row[:2]
    )


def cldr_names(folder: Path, code: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the names of a language by their keys, without placeholders."""
    places = {
        f"cldr-subdivisions-full/subdivisions/{code}/{code}.json": ("subdivisions",),
        f"cldr-dates-full/main/{code}/ca-gregorian.json": ("wide",),
        f"cldr-dates-full/main/{code}/timeZoneNames.json": ("exemplarCity", "long"),
        f"cldr-dates-full/main/{code}/dateFields.json": ("fields",),
        f"cldr-units-full/main/{code}/units.json": ("long",),
        f"cldr-annotations-full/annotations/{code}/annotations.json": ("annotations",),
        **{
            f"cldr-localenames-full/main/{code}/{kind}.json": (kind,)
            for kind in ("languages", "scripts", "territories")
        },
    }
    for place, wanted in places.items():
        path = folder / place
        if path.is_file():
            for keys, name in _leaves(json.loads(path.read_text(encoding="utf-8"))):
                own = keys[2:] if keys[0] == "main" else keys  # without "main" and the language
                if "identity" not in own and any(key in wanted for key in own):
                    yield (path.name, *own), name


def _leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts in JSON objects, where a list of keywords is one text."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, (*keys, key))
    elif isinstance(value, list):
        yield keys, ", ".join(value)
    elif isinstance(value, str):
        yield keys, value.replace("{0}", "")


if __name__ == "__main__":
    main()
