"""Write results: tables for people, records for programs, signatures for both.

A signature, sacrebleu's habit, is what must be equal for two figures to be comparable.
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

LABEL_WIDTH = 10
MIN_WIDTH = 9

Cell = float | int | str | tuple[float, float] | None
Record = dict[str, Any]
Show = Callable[[str], None]


@dataclass(frozen=True)
class Table:
    """Headings of the label and of the columns.

    Cells that are floats are fractions from 0 to 1, shown in percent; a pair of floats is an
    interval of them; None is an empty cell; all else is shown as it is.
    """

    label: str
    columns: Sequence[str]
    width: int = LABEL_WIDTH  # of the label

    @property
    def header(self) -> str:
        """The first line."""
        return self.row(self.label, *self.columns)

    def row(self, label: str, *cells: Cell) -> str:
        """Return a line with a cell for each column; columns without a cell stay empty."""
        widths = [max(MIN_WIDTH, len(column) + 2) for column in self.columns]
        both = zip(map(_shown, cells), widths, strict=False)
        shown = "".join(f" {cell:>{width - 1}}" for cell, width in both)
        return (label.ljust(self.width) + shown).rstrip()


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{100 * cell:.2f}"
        case (low, high):
            return f"{100 * low:.2f}-{100 * high:.2f}"
        case _:
            return str(cell)


def signature(task: str, **fields: object) -> str:
    """Return ``task|name:value|...|v:VERSION``; numbers in their shortest exact form."""
    fields["v"] = product_version()
    return "|".join([task, *(f"{name}:{value}" for name, value in fields.items())])


def signed(show: Show, task: str, record: Record, **fields: object) -> Record:
    """Show the signature of a task's figures; return their record with the task and with it."""
    line = signature(task, **fields)
    show(line)
    return {"task": task, **record, "signature": line}


def encoder_names(encoder: Encoder, languages: Iterable[str]) -> str:
    """Return the names of an encoder and of what was added to it for any of the languages."""
    if isinstance(encoder, JoinedEncoder):
        return encoder.name
    names = [encoder.for_language(language).name for language in languages]
    added = sorted({name for name in names if not name.startswith(encoder.name)})
    return "+".join([encoder.name, *added])


def score_line(score: BuccScore) -> str:
    """Show a score: percentages, the threshold in its shortest exact form, counts."""
    return (
        f"P={100 * score.precision:.2f} R={100 * score.recall:.2f} F1={100 * score.f1:.2f} "
        f"threshold={score.threshold!r} extracted={score.extracted} correct={score.correct} "
        f"found={score.found} gold={score.gold}"
    )


def score_record(score: BuccScore) -> Record:
    """Return a score for JSON: fractions from 0 to 1; a threshold that is not finite is null."""
    shares = {"precision": score.precision, "recall": score.recall, "f1": score.f1}
    finite = score.threshold if math.isfinite(score.threshold) else None
    return {**shares, **asdict(score), "threshold": finite}


def id_lines(pairs: Iterable[IdPair]) -> str:
    """Return id pairs as the BUCC tasks want them, a line each, tab between."""
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def template(name: str) -> "Template":
    """Return a template of ``assets``; what it is filled with is escaped, unless it is Markup."""
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
    """Print a line at once: a row is worth seeing while the next one is computed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def print_json(record: Record) -> None:
    """Print what ``--json`` asks for."""
    encoding = (sys.stdout.encoding or "").lower()
    is_ascii = encoding not in ("utf-8", "utf8")  # what it lacks would be escaped as no JSON is
    text = json.dumps(record, indent=2, ensure_ascii=is_ascii, allow_nan=False)
    sys.stdout.write(f"{text}\n")


def print_note(program: str, remark: str) -> None:
    """Print a remark that is no part of the result, to stderr."""
    sys.stderr.write(f"{program}: note: {remark}\n")
