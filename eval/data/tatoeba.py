"""Load Tatoeba: line i of ``tatoeba.xxx-eng.xxx`` translates line i of ``tatoeba.xxx-eng.eng``."""

import re
from pathlib import Path

from eval.data.languages import iso_639_3
from eval.data.textfiles import read_lines


def tatoeba_languages(directory: Path) -> list[str]:
    """Return the ISO 639-3 codes that ``directory`` has files for, sorted.

    Raises:
        ValueError: there is none.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    found = (re.fullmatch(r"tatoeba\.(\w+)-eng\.\1", entry.name) for entry in directory.iterdir())
    codes = sorted(match[1] for match in found if match)
    if not codes:
        raise ValueError(f"{directory}: no Tatoeba data; expected tatoeba.xxx-eng.xxx and .eng")
    return codes


def load_tatoeba(directory: Path, language: str) -> tuple[list[str], list[str]]:
    """Load the sentences of ``language`` and their English translations, line by line.

    Args:
        directory: holds ``tatoeba.xxx-eng.xxx`` and ``tatoeba.xxx-eng.eng``.
        language: ISO 639-3 or ISO 639-1 code.

    Raises:
        ValueError: no such language, no sentence, or numbers of lines that differ.
    """
    code = iso_639_3(language)
    codes = tatoeba_languages(directory)
    if code not in codes:
        raise ValueError(f"{directory}: no language {language!r}; choose from {', '.join(codes)}")
    path = directory / f"tatoeba.{code}-eng.{code}"
    foreign, english = read_lines(path), read_lines(path.with_suffix(".eng"))
    if len(foreign) != len(english):
        raise ValueError(
            f"{path} has {len(foreign)} lines but its English side has {len(english)}; "
            "line i of one must translate line i of the other"
        )
    if not foreign:
        raise ValueError(f"{path}: empty")
    return foreign, english
