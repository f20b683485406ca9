"""Sentences with a topic in many languages: SIB-200 and MLDoc, as published or in one file each.

Layouts, of a folder: ``xxx_Yyyy.tsv`` (``tr|va|te TAB id TAB category TAB text``); SIB-200's own,
``xxx_Yyyy/train.tsv``, ``dev.tsv`` and ``test.tsv`` with the header ``index_id category text``;
MLDoc's, ``english.train.1000``, ``english.dev`` and ``english.test`` (``LABEL TAB text``); and
reviews, ``xx.train.tsv`` and ``xx.test.tsv`` (``STARS TAB text``).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from eval.data.labelled import PARTS, Examples, joined, read_columns

MLDOC = {
    "english": "en",
    "german": "de",
    "spanish": "es",
    "french": "fr",
    "italian": "it",
    "japanese": "ja",
    "russian": "ru",
    "chinese": "zh",
}
_FLAT = re.compile(r"(\w{3}_\w{4})\.tsv(?:\.xz)?")
_STARS = re.compile(r"([a-z]{2,3})\.(train|test)\.tsv(?:\.xz)?")
FAIR, FIRST_WORDS = 3, 64  # stars that say neither; what is read of a review
_SIB_PARTS = dict(zip(PARTS, ("train", "dev", "test"), strict=True))
MLDOC_TRAIN = ("train.1000", "train.10000", "train.5000", "train.2000")


def load_topics(directory: Path) -> dict[str, Examples]:
    """Load each language's sentences with topics and parts, by the names that the files have.

    Raises:
        ValueError: there is none, or a file is malformed.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    found: dict[str, Examples] = {}
    reviews: dict[str, dict[str, Examples]] = {}
    for path in sorted(directory.iterdir()):
        if match := _FLAT.fullmatch(path.name):
            found[match[1]] = read_columns(path, part=0, label=2, sides=(3,))
        elif path.is_dir() and (path / "train.tsv").is_file():
            there = {part: path / f"{name}.tsv" for part, name in _SIB_PARTS.items()}
            found[path.name] = _joined(there, label=1, side=2, skip=1)
        elif match := _STARS.fullmatch(path.name):
            reviews.setdefault(match[1], {})[match[2][:2]] = _opinions(path)
    found |= {language: joined(parts) for language, parts in reviews.items()}
    for name, code in MLDOC.items():
        train = [p for p in MLDOC_TRAIN if (directory / f"{name}.{p}").is_file()]
        if train:
            files = zip(PARTS, (train[0], "dev", "test"), strict=True)
            there = {part: directory / f"{name}.{file}" for part, file in files}
            found[code] = _joined(there, label=0, side=1)
    if not found:
        raise ValueError(
            f"{directory}: no topics; expected xxx_Yyyy.tsv, xxx_Yyyy/train.tsv, "
            "english.train.1000 and the like, or xx.train.tsv"
        )
    return found


def _joined(files: Mapping[str, Path], *, label: int, side: int, skip: int = 0) -> Examples:
    """Read the parts that there are."""
    there = {part: path for part, path in files.items() if path.is_file()}
    return joined(
        {
            part: read_columns(path, label=label, sides=(side,), skip=skip)
            for part, path in there.items()
        }
    )


def _opinions(path: Path) -> Examples:
    """Read reviews: more than three stars are positive, fewer negative, and three left out.

    Of each the first 64 words (Chidambaram et al. 2019, section 4.2).
    """
    rows = read_columns(path, label=0, sides=(1,))
    stars = rows.scores()
    texts = [" ".join(text.split()[:FIRST_WORDS]) for text in rows.sides[0]]
    kept = [row for row, each in enumerate(stars) if each != FAIR]
    labels = ["positive" if stars[row] > FAIR else "negative" for row in kept]
    return Examples(labels=labels, sides=([texts[row] for row in kept],), files=[path])
