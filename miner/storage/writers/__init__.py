"""The formats of pairs, each an entry of ``FORMATS`` and a function.

The suffix of an output decides the format. Text may be compressed: ``pairs.tsv.gz`` or ``.zst``. A
name with a ``%`` and no suffix of a format, such as ``pairs.%`` or ``pairs.%.txt.gz``, means two
files, with a language instead of the ``%``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from miner.storage.places import AnyPath, Place, RemotePath

TEXT_ROWS = 8192  # pairs that are Python objects at a time, in about 10 MB
ROW_GROUP_ROWS = 65_536  # per row group of Parquet

# Characters that some readers treat as the end of a line or a cell.
BREAKS = "[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]"


def on_a_line(text: str) -> str:
    """Return a text with spaces instead of tabs and ends of lines."""
    return re.sub(BREAKS, " ", text)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The languages of pairs (BCP 47 or None), encoder, and run's signature."""

    languages: tuple[str | None, str | None] = (None, None)
    encoder: str = "unknown"
    signature: str = ""


class Format(NamedTuple):
    """A format of files of pairs.

    ``name`` is its key in ``miner.storage.writers.formats.WRITERS``. ``compresses`` says whether
    files may be compressed, ``names_languages`` whether both languages must be known, and
    ``has_all_fields`` whether all columns of pairs are written. ``files`` are the files in an
    output that is a folder. ``rows`` is the number of pairs that are written at a time.
    """

    name: str
    compresses: bool = False
    names_languages: bool = False
    files: tuple[str, ...] = ()
    rows: int = TEXT_ROWS
    has_all_fields: bool = False


LINES = "%"
FORMATS = {
    ".tsv": Format("tsv", compresses=True),
    ".jsonl": Format("jsonl", compresses=True, has_all_fields=True),
    ".parquet": Format("parquet", rows=ROW_GROUP_ROWS, has_all_fields=True),
    ".tmx": Format("tmx", compresses=True, names_languages=True),
    ".dataset": Format(
        "dataset", files=("pairs.parquet", "README.md"), rows=ROW_GROUP_ROWS, has_all_fields=True
    ),
    LINES: Format("lines", compresses=True),
}
COMPRESSIONS = (".gz", ".zst")
_ENDINGS = "|".join(re.escape(name) for name in FORMATS if name != LINES)
_NAME = re.compile(rf"(.*?)({_ENDINGS})(\.gz|\.zst)?", re.IGNORECASE | re.DOTALL)
_LINES_NAME = re.compile(r"([^%]*?)(\.?%.*?)(\.gz|\.zst)?", re.IGNORECASE | re.DOTALL)


class Output(NamedTuple):
    """A path to write pairs to, and the parts of its name.

    ``ending`` is the format's suffix, or begins with ``%`` or ``.%`` for two languages (``src``,
    ``tgt`` if unknown). ``compression`` is a suffix in lower case or "", and ``stem`` the rest.
    """

    path: Place
    stem: str
    ending: str
    compression: str

    @classmethod
    def named(cls, path: AnyPath) -> Output:
        """Divide the path of an output into its parts.

        Raises:
            ValueError: The name has no known suffix and no ``%``, or has the suffix of a
                compression that its format lacks.
        """
        place = path if isinstance(path, RemotePath) else Path(path)
        parts = _NAME.fullmatch(place.name) or _LINES_NAME.fullmatch(place.name)
        output = parts and cls(place, parts[1], parts[2], (parts[3] or "").lower())
        if not output or (output.compression and not output.format.compresses):
            known = ", ".join(name for name in FORMATS if name != LINES)
            raise ValueError(
                f"{path}: unknown output format; use one of {known}, or a name with "
                f"{LINES} such as pairs.{LINES} for two files of lines (text also with "
                f"{' or '.join(COMPRESSIONS)})"
            )
        return output

    @property
    def format(self) -> Format:
        """The format of the output."""
        return FORMATS.get(self.ending.lower(), FORMATS[LINES])

    @property
    def rejected(self) -> Place:
        """The path of rejected pairs, next to the output and in its format."""
        return self.path.parent / f"{self.stem}.rejected{self.ending}{self.compression}"

    def files(self, origin: Origin) -> list[Place]:
        """Return the paths of all files of the output, existing or not.

        Raises:
            ValueError: The format needs languages that are unknown, or two files have one name.
        """
        languages = origin.languages
        if self.format.names_languages and None in languages:
            raise ValueError(
                f"{self.path}: the format names both languages; pass --src-lang and --tgt-lang"
            )
        if self.format is not FORMATS[LINES]:
            return [self.path / name for name in self.format.files] or [self.path]
        sides = languages[0] or "src", languages[1] or "tgt"
        if sides[0] == sides[1]:
            raise ValueError(
                f"{self.path}: both files would be named by {sides[0]}; pass different --src-lang "
                "and --tgt-lang"
            )
        return [self.path.parent / self.path.name.replace(LINES, side) for side in sides]
