"""Tables for people, JSON records for programs, and signatures for both.

A signature, as in sacrebleu, names all that must be equal for two figures to be comparable.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from encoder import Encoder
from encoder.joined import JoinedEncoder
from eval.metrics.bucc import BuccScore, IdPair
from miner.commandline import product_version

if TYPE_CHECKING:
    from jinja2 import Template

LABEL_WIDTH = 10  # characters
MIN_WIDTH = 9  # characters per column

Cell = float | int | str | tuple[float, float] | None
Record = dict[str, Any]
Show = Callable[[str], None]


@dataclass(frozen=True)
class Table:
    """The format of a table of text, with a label and cells per line.

    A float is a fraction, shown in percent. A pair of floats is an interval of fractions. None is
    an empty cell. Any other cell is shown as text. The label has at least ``width`` characters.
    """

    label: str
    columns: Sequence[str]
    width: int = LABEL_WIDTH  # characters of the label

    @property
    def header(self) -> str:
        """The line of headings."""
        return self.row(self.label, *self.columns)

    def row(self, label: str, *cells: Cell) -> str:
        """Format a line of a label and up to one cell per column."""
        widths = [max(MIN_WIDTH, len(column) + 2) for column in self.columns]
        columns = zip(map(_format_cell, cells), widths, strict=False)
        text = "".join(f" {cell:>{width - 1}}" for cell, width in columns)
        return (label.ljust(self.width) + text).rstrip()


def _format_cell(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:.2%}"
        case (low, high):
            return f"{100 * low:.2f}-{high:.2%}"
        case _:
            return str(cell)


def signature(task: str, **fields: object) -> str:
    """Format the signature of a result, with the version of Adit.

    It is ``task|name:value|...|v:VERSION``.
    """
    fields["v"] = product_version()
    return "|".join([task, *(f"{name}:{value}" for name, value in fields.items())])


def sign(show: Show, task: str, record: Record, **fields: object) -> Record:
    """Show the signature of a result, and return the record with it.

    The result is a copy of ``record`` with ``task`` and ``signature``, which contains ``fields``.
    """
    line = signature(task, **fields)
    show(line)
    return {"task": task, **record, "signature": line}


def encoder_names(encoder: Encoder, languages: Iterable[str]) -> str:
    """Return an encoder's name, with its added encoders for the languages.

    Its own name comes first. Distinct others follow, sorted, each after +, unless they begin with
    it. A joined encoder has only its own. Errors of ``for_language`` are raised.
    """
    if isinstance(encoder, JoinedEncoder):
        return encoder.name
    names = [encoder.for_language(language).name for language in languages]
    added = sorted({name for name in names if not name.startswith(encoder.name)})
    return "+".join([encoder.name, *added])


def score_line(score: BuccScore) -> str:
    """Format a score with percentages, the exact threshold, and counts."""
    return (
        f"P={score.precision:.2%} R={score.recall:.2%} F1={score.f1:.2%} "
        f"threshold={score.threshold!r} extracted={score.extracted} correct={score.correct} "
        f"found={score.found} gold={score.gold}"
    )


def score_record(score: BuccScore) -> Record:
    """Return precision, recall, f1 and fields, an infinite threshold as None."""
    shares = {"precision": score.precision, "recall": score.recall, "f1": score.f1}
    threshold = score.threshold if math.isfinite(score.threshold) else None
    return {**shares, **asdict(score), "threshold": threshold}


def id_lines(pairs: Iterable[IdPair]) -> str:
    """Format pairs of ids as lines of two ids with a tab between them."""
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def load_template(name: str) -> "Template":
    """Load a strict Jinja template of ``eval/assets`` that escapes non-Markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("eval", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fmt"] = format
    return environment.get_template(name)


def print_line(line: str) -> None:
    """Print a line to stdout at once, without buffering."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def print_json(record: Record) -> None:
    """Print a record of finite numbers as indented JSON, or raise ValueError."""
    encoding = (sys.stdout.encoding or "").lower()
    is_ascii = encoding not in ("utf-8", "utf8")  # stdout would escape other characters wrongly
    text = json.dumps(record, indent=2, ensure_ascii=is_ascii, allow_nan=False)
    sys.stdout.write(f"{text}\n")


def print_note(program: str, remark: str) -> None:
    """Print a remark to stderr, after the program's name."""
    sys.stderr.write(f"{program}: note: {remark}\n")
