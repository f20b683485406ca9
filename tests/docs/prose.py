"""Counts phrases that are hard to read, in pages and in the text of the packages.

``python -m tests.docs.prose`` prints the counts, and with a pattern's name every place of it.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import PAGES, ROOT, name_of

PACKAGES = ("encoder", "eval", "miner", "pipelines")
WORDS_PER_SENTENCE = 25
SUMMARY_LENGTH = 72
STYLE = ROOT / "docs" / "style.md"  # which quotes the phrases that it advises against

# Pages that users read in order; all other pages are for reference.
GUIDES = {
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            *("choosing", "cleaning", "cluster", "commands", "documents", "evaluation", "formats"),
            *("how", "install", "languages", "library", "new-language", "training", "trust"),
            *("tutorial", "web"),
        )
    ),
}

# The pattern of each, and the advice that docs/style.md gives instead.
PHRASES = {
    "what": (r"\bwhat\b", "name the thing"),
    "those that": (r"\b(?:those|the ones) (?:that|which|who|of)\b|\bof which\b", "name the thing"),
    "so many": (r"\bso (?:many|few|much)\b", "say how many, or name the parameter"),
    "near": (
        r"\b(?:near(?!-dup|-copies)|alike|apart|unlike)\b",
        "say near to, or similar to, which thing",
    ),
    "a side": (
        r"(?:\d|\d[KMG]|\b(?:one|two|three|lines|bytes|sentences|numbers|pairs|words|vectors|rows"
        r"|shards|seconds|millions?|core|file|id)) an? (?:side|line|row|cell|sentence|worker|shard"
        r"|second|pair|language|thread|word|core|batch|step|machine|text|document|GPU)\b",
        "write per",
    ),
    "beside": (
        r"\b(?:besides?|but for|in place of)\b",
        "write next to, except for or instead of",
    ),
    "left out": (r"\b(?:left out|leav(?:e|es|ing) out|passed over)\b", "rejected, or skipped"),
    "usual": (r"\busual\b", "write prior, median, default or typical"),
    ", too": (r", too\b", "put also before the verb"),
    "per cent": (r"\d %|\bper cent\b", "write 5%"),
    "learnt": (r"\b(?:learnt|(?:mis)?spelt)\b", "write learned, spelled"),
    "go on": (
        r"\b(?:go|goes|going|went) on\b|\banew\b|\bmends?\b|\bhold\w* against\b|\bhand\w* on\b",
        "use resume, restart, fix, compare with, write",
    ),
    "there is no": (r"\bthere (?:is|are) no\b|\bis no\b", "be positive: not found, must be"),
    "processor": (r"\bprocessors?\b", "write CPU"),
    "beware": (r"\bbeware\b", "write warning"),
}


class Place(NamedTuple):
    """Where a phrase is, and the text around it."""

    file: str
    line: int
    text: str


def scope_of(page: Path) -> str:
    """Return whether a page is one of the guides, or for reference."""
    return "guides" if page in GUIDES else "reference"


@cache
def _texts() -> tuple[tuple[str, Path, int, str], ...]:
    """Return every text that is checked: its scope, file, first line and words."""
    pages = [
        (scope_of(page), page, line, block) for page in _pages() for line, block in _blocks(page)
    ]
    code = [("code", path, line, text) for path in _modules() for line, text in _texts_of(path)]
    return (*pages, *code)


def _pages() -> list[Path]:
    return [page for page in PAGES if page != STYLE]


@cache
def _modules() -> tuple[Path, ...]:
    return tuple(path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py")))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, messages and comments of a module, each with its line."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    source = io.StringIO(path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _blocks(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, list items and table rows of a page, without its code."""
    text = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", _blank, page.read_text(encoding="utf-8"))
    block: list[str] = []
    first = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        ends = not line.strip() or re.match(r"\s*([-*] |\d+\. |\||#)", line)
        if ends and block:
            yield first, " ".join(block)
            block = []
        if line.strip() and (block or not line.startswith("    ")):
            first = first if block else number
            block.append(line.strip())


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def phrases(name: str) -> Iterator[tuple[str, Place]]:
    """Yield where a phrase is, each place with its scope."""
    pattern = re.compile(PHRASES[name][0], re.IGNORECASE)
    for scope, path, first, text in _texts():
        for match in pattern.finditer(re.sub(r"\s", " ", text)):
            around = text[max(0, match.start() - 40) : match.end() + 40].replace("\n", " ")
            line = first + text[: match.start()].count("\n")
            yield scope, Place(name_of(path), line, around)


def sentences(block: str) -> list[str]:
    """Split a paragraph of a page into sentences; code and links count as their words."""
    bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", block))
    bare = re.sub(r"^([-*]|\d+\.) ", "", bare)
    return re.split(r"(?<=[.!?])[)*\"]*\s+(?=[^a-z])", bare)


def long_sentences() -> Iterator[tuple[str, Place]]:
    """Yield the sentences of pages that have too many words; rows of tables are not sentences."""
    for page in _pages():
        for line, block in _blocks(page):
            for sentence in [] if block[0] in "|#" else sentences(block):
                words = re.findall(r"\S*\w\S*", sentence)
                if len(words) > WORDS_PER_SENTENCE:
                    start = f"({len(words)} words) {' '.join(words[:12])}"
                    yield scope_of(page), Place(name_of(page), line, start)


def summaries(flaw: str) -> Iterator[tuple[str, Place]]:
    """Yield the docstring summaries with a flaw: a character, a word, or ``long``."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in _modules():
        for node in ast.walk(_tree(path)):
            summary = ((isinstance(node, kinds) and ast.get_docstring(node)) or "").split("\n")[0]
            has = (
                len(summary) > SUMMARY_LENGTH
                if flaw == "long"
                else re.search(rf"(?i){flaw}", summary)
            )
            if has:
                yield "code", Place(name_of(path), getattr(node, "lineno", 1), summary)


def variables_named_found() -> Iterator[tuple[str, Place]]:
    """Yield where the packages call a value ``found``."""
    for path in _modules():
        for node in ast.walk(_tree(path)):
            is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = getattr(node, "id" if is_name else "arg", None)
            if name == "found" and (is_name or isinstance(node, ast.arg)):
                yield "code", Place(name_of(path), node.lineno, "found")  # type: ignore[attr-defined]


def undocumented_exceptions() -> Iterator[tuple[str, Place]]:
    """Yield the exceptions that a function raises and its docstring does not name."""
    command = [sys.executable, "-m", "ruff", "check", "--preview", "--select", "DOC501", *PACKAGES]
    done = subprocess.run(
        [*command, "--output-format", "json"], cwd=ROOT, capture_output=True, check=False
    )
    for entry in json.loads(done.stdout):
        path = Path(entry["filename"]).relative_to(ROOT).as_posix()
        yield "code", Place(path, entry["location"]["row"], entry["message"])


COUNTED = {
    **{name: (lambda name=name: phrases(name)) for name in PHRASES},
    "long sentence": long_sentences,
    "summary with ;": lambda: summaries(";"),
    "summary with :": lambda: summaries(":"),
    "summary with what": lambda: summaries(r"\bwhat\b"),
    "summary too long": lambda: summaries("long"),
    "variable named found": variables_named_found,
    "undocumented exception": undocumented_exceptions,
}
RULES = {
    **{name: rule for name, (_, rule) in PHRASES.items()},
    "long sentence": f"at most {WORDS_PER_SENTENCE} words, one fact a sentence",
    "variable named found": "name the value",
    "undocumented exception": "name it under Raises",
}
SUMMARY_RULE = f"a summary is one clause of at most {SUMMARY_LENGTH} characters"
SCOPES = ("guides", "reference", "code")


@cache
def places(name: str) -> tuple[tuple[str, Place], ...]:
    """Return every place of a pattern with its scope."""
    return tuple(COUNTED[name]())


def counts(name: str) -> Counter[str]:
    """Return how often a pattern is in each scope."""
    return Counter(scope for scope, _ in places(name))


def worst(name: str, scope: str) -> str:
    """Return the files of a scope that have a pattern most often."""
    files = Counter(place.file for where, place in places(name) if where == scope)
    return ", ".join(f"{file} ({count})" for file, count in files.most_common(5))


def main(patterns: list[str]) -> None:
    """Print how often each pattern is in each scope, or every place of some."""
    for name in patterns:
        for _, place in places(name):
            sys.stdout.write(f"{place.file}:{place.line}: {place.text}\n")
    if not patterns:
        sys.stdout.write(f"{'pattern':24}{''.join(f'{scope:>10}' for scope in SCOPES)}\n")
        for name in COUNTED:
            shown = (f"{counts(name)[scope]:10,}" for scope in SCOPES)
            sys.stdout.write(f"{name:24}{''.join(shown)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
