"""Shared by tasks of several figures: figures with their intervals, one table, one signature.

A suite is prepared once, data read and checked, and can then be measured of any encoder; so
``adit evaluate compare`` measures the same of several.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from eval.data.languages import code_of
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import INTERVAL_METHOD, interval, moments, pearson, resample
from eval.output import LABEL_WIDTH, Cell, Record, Show, Table, encoder_names, sign

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of an encoder and its resamples (R,); ``units`` is what it was counted over, if any.

    ``beside`` has what the table shows beside it, such as what others have published, by column.
    Where ``lower`` is set, less is better. ``in_mean`` says whether it counts in the mean of the
    suite, ``percent`` whether it is a share.
    """

    name: str
    value: float
    samples: Floats
    units: int | None
    beside: Mapping[str, float | None] = field(default_factory=dict)
    lower: bool = False
    percent: bool = True
    in_mean: bool = True

    def cells(self) -> tuple[Cell, Cell]:
        """Return what a table shows of it and of its interval, in per cent or as they are."""
        low, high = interval(self.samples)
        if self.percent:
            return self.value, (low, high)
        return f"{self.value:.4g}", f"{low:.4g}-{high:.4g}"

    def record(self) -> Record:
        """Return it for JSON."""
        return {"value": self.value, "interval": interval(self.samples)}


def figure_of(name: str, units: Floats, statistic: Statistic, *, stream: int = 0) -> Figure:
    """Return a figure that is a function of sums over ``units`` (U, C), see ``bootstrap``.

    Figures of the same sentences have the same ``stream``.
    """
    value = float(statistic(units.sum(axis=0)[None])[0])
    samples = resample(units, statistic, stream=stream)
    return Figure(name=name, value=value, samples=samples, units=len(units))


def mean_figure(name: str, values: Flags | Floats, *, stream: int = 0) -> Figure:
    """Return the mean of a value (U,) of each unit, such as whether it is right."""
    units = np.stack([np.ones(len(values)), values.astype(np.float64)], axis=1)
    return figure_of(name, units, lambda sums: sums[:, 1] / sums[:, 0], stream=stream)


def correlation_figure(name: str, x: Floats, y: Floats, *, stream: int = 0) -> Figure:
    """Return Pearson's r of two values (U,) of each unit."""
    return figure_of(name, moments(x, y), pearson, stream=stream)


def ranks(values: Floats) -> Floats:
    """Return the ranks (U,) of values from 1, of equal ones their mean: for Spearman's r."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    found: Floats = ((last - counts + 1 + last) / 2)[places]
    return found


def mean_of(row: Sequence[Figure]) -> Figure:
    """Return the mean of figures and of their resamples; beside it, the means that all have."""
    columns = {name: [one.beside.get(name) for one in row] for name in row[0].beside}
    beside = {
        name: None if None in each else float(np.mean(np.array(each, dtype=np.float64)))
        for name, each in columns.items()
    }
    value = float(np.mean([one.value for one in row]))
    samples = np.mean([one.samples for one in row], axis=0)
    return replace(row[0], name="mean", value=value, samples=samples, units=None, beside=beside)


@dataclass(frozen=True)
class Suite:
    """A task whose data are at hand: what it signs with, and what it measures of an encoder.

    Its table has columns for what stands ``before`` a figure and its interval, and ``after`` them,
    by name, those of publishers last; ``remark`` is a line about them. ``languages`` are those of
    the data, as they name them, where that decides what of the encoder is used.
    """

    task: str
    fields: Mapping[str, object]
    measure: Callable[[Encoder], Iterator[Figure]]
    _: KW_ONLY
    label: str = "language"
    before: Sequence[str] = ()
    figure: str = "figure"
    after: Sequence[str] = ()
    remark: str = ""
    unit: str = "sentences"
    width: int = LABEL_WIDTH
    languages: Sequence[str] = ()


def run_suite(suite: Suite, spec: str, show: Show) -> Record:
    """Measure an encoder: a row for each figure as soon as it is there, then their mean."""
    encoder = load_encoder(spec)
    named = suite.before, (*suite.after, *publishers(suite.task))
    columns = [suite.unit, *named[0], suite.figure, "95% interval", *named[1]]
    table = Table(suite.label, columns, suite.width)
    show(table.header)

    def shown(one: Figure) -> Record:
        before, after = (map(one.beside.get, names) for names in named)
        show(table.row(one.name, one.units, *before, *one.cells(), *after))
        return {**one.record(), **({"beside": dict(one.beside)} if any(named) else {})}

    results: dict[str, Record] = {}
    counted: list[Figure] = []
    for one in suite.measure(encoder):
        results[one.name] = {"units": one.units, **shown(one)}
        counted += [one] if one.in_mean else []
    record: Record = {"figures": results}
    if len(counted) > 1:
        record["mean"] = shown(mean_of(counted))
    names = encoder_names(encoder, map(code_of, suite.languages))
    record = sign(show, suite.task, record, **suite.fields, encoder=names, interval=INTERVAL_METHOD)
    if suite.remark:
        show(suite.remark)
    return record


def fields_of(paths: Sequence[Path], /, **more: object) -> dict[str, object]:
    """Return what a signature says of data: the digest of all files, after ``more``."""
    return {**more, "sha256": fingerprint(*paths)}


@cache
def _published() -> list[list[str]]:
    """Return figures that others have published; ``assets/published.tsv`` says whose they are."""
    text = files("eval").joinpath("assets", "published.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def publishers(task: str) -> tuple[str, ...]:
    """Return whose figures there are for a task."""
    return tuple(dict.fromkeys(who for of, _, _, who, _ in _published() if of == task))


def published(task: str, name: str, *, size: int) -> dict[str, float | None]:
    """Return what each publisher has for a set, from 0 to 1; None where theirs was not this one.

    Sets of one name are the same where they have the same size.
    """
    found: dict[str, float | None] = dict.fromkeys(publishers(task))
    for of, set_name, set_size, who, figures in _published():
        if (of, set_name, int(set_size)) == (task, name, size):
            shares = [float(figure) / 100 for figure in figures.split()]
            found[who] = sum(shares) / len(shares)
    return found
