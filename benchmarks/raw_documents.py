"""Make web pages and Markdown documents of Pro Git.

python benchmarks/raw_documents.py PROGIT OUT LANGUAGE ...

PROGIT has NAME.xx.txt with a sentence a line; OUT/xx is a folder of documents that are numbered in
another order for each language.
"""

from __future__ import annotations

import random
import sys
import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

WIDTH, MAX_HEADING = 72, 50
UNSPACED = ("zh", "ja")
Part = tuple[str, list[str]]


def main() -> None:
    progit, out, *languages = sys.argv[1:]
    for language in languages:
        make(Path(progit), Path(out), language)


def make(progit: Path, out: Path, language: str) -> None:
    folder = out / language
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"raw{language}")
    files = sorted(progit.glob(f"*.{language}.txt"))
    numbers = draw.sample(range(len(files)), len(files))
    for place, (number, file) in enumerate(zip(numbers, files, strict=True)):
        lines = [line.strip() for line in file.read_text(encoding="utf-8").split("\n")]
        found = list(parts([line for line in lines if line], draw))
        text = (page if place % 2 else markdown)(found, language)
        name = f"{number:03d}.{'html' if place % 2 else 'md'}"
        (folder / name).write_text(text, encoding="utf-8")


def parts(lines: Sequence[str], draw: random.Random) -> Iterator[Part]:
    """Yield headings (short lines without punctuation), paragraphs and lists."""
    held: list[str] = []
    for line in lines:
        is_heading = len(line) < MAX_HEADING and line[-1].isalnum()
        if held and (is_heading or len(held) >= draw.randint(2, 5)):
            yield draw.choice(["paragraph"] * 4 + ["list"]), held
            held = []
        if is_heading:
            yield "heading", [line]
        else:
            held.append(line)
    if held:
        yield "paragraph", held


def wrapped(lines: Sequence[str], language: str) -> str:
    is_unspaced = language in UNSPACED
    text = ("" if is_unspaced else " ").join(lines)
    return textwrap.fill(text, WIDTH, break_long_words=is_unspaced, break_on_hyphens=False)


def markdown(found: Sequence[Part], language: str) -> str:
    blocks = []
    for kind, lines in found:
        if kind == "heading":
            blocks.append(f"## {lines[0]}")
        elif kind == "paragraph":
            blocks.append(wrapped(lines, language))
        else:
            items = [wrapped([line], language).replace("\n", "\n  ") for line in lines]
            blocks.append("\n".join(f"* {item}" for item in items))
    return "\n\n".join(blocks) + "\n"


def page(found: Sequence[Part], language: str) -> str:
    blocks = []
    for kind, lines in found:
        if kind == "heading":
            blocks.append(f"<h2>{escape(lines[0])}</h2>")
        elif kind == "paragraph":
            blocks.append(f"<p>{escape(wrapped(lines, language))}</p>")
        else:
            items = [f"<li>{escape(wrapped([line], language))}</li>" for line in lines]
            blocks.append("\n".join(["<ul>", *items, "</ul>"]))
    return "\n".join(
        [
            f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">',
            "<title>Pro Git</title></head><body>",
            '<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About</a></li></ul></nav>',
            "<main><article>",
            *blocks,
            "</article></main>\n<footer><p>© 2024</p></footer></body></html>\n",
        ]
    )


if __name__ == "__main__":
    main()
