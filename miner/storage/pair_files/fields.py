"""Names that files of pairs give to the texts of both sides."""

from collections.abc import Sequence

from miner.language_codes import parse_language
from miner.languages import is_code

SIDE_NAMES = (
    ("source_text", "target_text"),
    ("source", "target"),
    ("source_sentence", "target_sentence"),
    ("src", "tgt"),
    ("src", "trg"),
    ("src_text", "tgt_text"),
    ("src_text", "trg_text"),
    ("sentence1", "sentence2"),
    ("text1", "text2"),
)


def named_sides(names: Sequence[str]) -> tuple[int, int] | None:
    """Find the positions of source and target among columns' names, or None.

    They are the first pair of ``SIDE_NAMES``, in upper or lower case, or else the only two language
    codes, in their order.
    """
    lowered = [name.strip().lower().lstrip("#") for name in names]
    for source, target in SIDE_NAMES:
        if source in lowered and target in lowered:
            return lowered.index(source), lowered.index(target)
    codes = [at for at, name in enumerate(names) if language_of(name)]
    return (codes[0], codes[1]) if len(codes) == 2 else None


def language_of(name: str) -> str | None:
    """Return the BCP 47 tag of a name that is a language code, or None."""
    name = name.strip()
    return parse_language(name) if is_code(name) else None
