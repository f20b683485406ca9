"""Sets of one text in many languages, a file for each: line i translates line i of all others.

Three layouts: ``xx.txt``; NTREX-128's own, ``newstest2019-ref.xxx.txt`` (and ``-src.`` for the
original); FLORES's, ``xxx_Yyyy.dev`` or ``.devtest``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.data.textfiles import read_lines

LAYOUT = re.compile(r"(?:newstest2019-(?:ref|src)\.)?(?P<language>[\w-]+)\.(?:txt|dev|devtest)")
ENGLISH = ("en", "eng", "eng_Latn")  # what the three layouts call it


@dataclass(frozen=True, kw_only=True)
class AlignedTexts:
    """``texts[language][i]`` says in that language what ``texts[other][i]`` says in the other."""

    files: dict[str, Path]
    texts: dict[str, list[str]]

    @property
    def languages(self) -> list[str]:
        """The languages, in the order asked for."""
        return list(self.texts)


def aligned_files(directory: Path) -> dict[str, Path]:
    """Find the file of each language in ``directory``, sorted by language.

    Raises:
        ValueError: there is none, or two of one language.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    files: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        if (match := LAYOUT.fullmatch(path.name)) and path.is_file():
            known = files.setdefault(match["language"], path)
            if known != path:
                raise ValueError(
                    f"{directory}: {known.name} and {path.name} are both of the language "
                    f"{match['language']!r}; leave one in the folder"
                )
    if not files:
        raise ValueError(
            f"{directory}: no aligned texts; expected xx.txt, newstest2019-ref.xxx.txt or "
            "xxx_Yyyy.devtest for each language"
        )
    return dict(sorted(files.items()))


def english_of(languages: Sequence[str], directory: Path) -> str:
    """Return what English is called among ``languages``.

    Raises:
        ValueError: it is not among them.
    """
    for name in ENGLISH:
        if name in languages:
            return name
    raise ValueError(
        f"{directory}: no English text; expected one of the languages {', '.join(ENGLISH)}"
    )


def load_aligned(directory: Path, languages: Sequence[str] | None = None) -> AlignedTexts:
    """Load the texts of ``languages``, or of all there are.

    Raises:
        ValueError: a language is missing, a text is empty, or numbers of lines differ.
    """
    files = aligned_files(directory)
    names = list(files) if languages is None else list(dict.fromkeys(languages))
    for name in names:
        if name not in files:
            raise ValueError(f"{directory}: no language {name!r}; it has {', '.join(files)}")
    texts = {name: read_lines(files[name]) for name in names}
    first = names[0]
    for name, lines in texts.items():
        if not lines:
            raise ValueError(f"{files[name]}: empty")
        if len(lines) != len(texts[first]):
            raise ValueError(
                f"{files[name]} has {len(lines)} lines but {files[first]} has "
                f"{len(texts[first])}; line i of one must translate line i of the other"
            )
    return AlignedTexts(files={name: files[name] for name in names}, texts=texts)
