"""Figures that others have published for the same sets: ``assets/published.tsv`` says whose."""

from functools import cache
from importlib.resources import files


@cache
def _rows() -> list[list[str]]:
    text = files("eval").joinpath("assets", "published.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def publishers(task: str) -> tuple[str, ...]:
    """Return whose figures there are for a task."""
    return tuple(dict.fromkeys(who for of, _, _, who, _ in _rows() if of == task))


def published(task: str, name: str, *, size: int) -> dict[str, float | None]:
    """Return what each publisher has for a set, from 0 to 1; None where theirs was not this one.

    Sets of one name are the same where they have the same size.
    """
    found: dict[str, float | None] = dict.fromkeys(publishers(task))
    for of, set_name, set_size, who, figures in _rows():
        if (of, set_name, int(set_size)) == (task, name, size):
            shares = [float(figure) / 100 for figure in figures.split()]
            found[who] = sum(shares) / len(shares)
    return found
