"""Shared by tasks of several figures: figures with their intervals, one table, one signature.

A suite is prepared once, data read and checked, and can then be measured of any encoder; so
``adit evaluate compare`` measures the same of several.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from eval.data.languages import code_of
from eval.data.published import publishers
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import SIGNED, interval, moments, pearson, resampled
from eval.output import LABEL_WIDTH, Cell, Record, Show, Table, encoder_names, signed

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of an encoder, a function of sums over ``units`` (U, C), see ``bootstrap``.

    Figures of the same sentences have the same ``stream``. ``beside`` has what the table shows
    beside it, such as what others have published, by column. Where ``lower`` is set, less is
    better. ``in_mean`` says whether it counts in the mean of the suite, ``percent`` whether it is a
    share.
    """

    name: str
    units: Floats
    statistic: Callable[[Floats], Floats]
    stream: int = 0
    beside: Mapping[str, float | None] = field(default_factory=dict)
    lower: bool = False
    percent: bool = True
    in_mean: bool = True

    @property
    def value(self) -> float:
        """The figure."""
        return float(self.statistic(self.units.sum(axis=0)[None])[0])


class Measured(NamedTuple):
    """A figure of an encoder, with its resamples (R,)."""

    figure: Figure
    samples: Floats

    @classmethod
    def of(cls, figure: Figure) -> "Measured":
        """Resample a figure."""
        return cls(figure, resampled(figure.units, figure.statistic, stream=figure.stream))

    @classmethod
    def mean(cls, row: Sequence["Measured"]) -> "Measured":
        """Return the mean of figures as one of fixed value; beside it, the means that all have."""
        first = row[0].figure
        value = np.array([[float(np.mean([one.figure.value for one in row]))]])
        columns = {name: [one.figure.beside.get(name) for one in row] for name in first.beside}
        beside = {
            name: None if None in each else float(np.mean(np.array(each, dtype=np.float64)))
            for name, each in columns.items()
        }
        figure = replace(
            first, name="mean", units=value, statistic=lambda sums: sums[:, 0], beside=beside
        )
        return cls(figure, np.mean([one.samples for one in row], axis=0))

    def cells(self) -> tuple[Cell, Cell]:
        """Return what a table shows of it and of its interval, in per cent or as they are."""
        value, (low, high) = self.figure.value, interval(self.samples)
        if self.figure.percent:
            return value, (low, high)
        return f"{value:.4g}", f"{low:.4g}-{high:.4g}"

    def record(self) -> Record:
        """Return it for JSON."""
        return {"value": self.figure.value, "interval": interval(self.samples)}


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A task whose data are at hand: what it signs with, and what it measures of an encoder.

    Its table has columns for what stands ``before`` a figure and its interval, and ``after`` them,
    by name, those of publishers last; ``remark`` is a line about them. ``languages`` are those of
    the data, as they name them, where that decides what of the encoder is used.
    """

    task: str
    fields: Mapping[str, object]
    measure: Callable[[Encoder], Iterator[Figure]]
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

    def shown(one: Measured, units: int | None) -> Record:
        before, after = (map(one.figure.beside.get, names) for names in named)
        show(table.row(one.figure.name, units, *before, *one.cells(), *after))
        return {**one.record(), **({"beside": dict(one.figure.beside)} if any(named) else {})}

    results: dict[str, Record] = {}
    counted: list[Measured] = []
    for figure in suite.measure(encoder):
        one, units = Measured.of(figure), len(figure.units)
        results[figure.name] = {"units": units, **shown(one, units)}
        counted += [one] if figure.in_mean else []
    record: Record = {"figures": results}
    if len(counted) > 1:
        record["mean"] = shown(Measured.mean(counted), None)
    names = encoder_names(encoder, map(code_of, suite.languages))
    record = signed(show, suite.task, record, **suite.fields, encoder=names, interval=SIGNED)
    if suite.remark:
        show(suite.remark)
    return record


def mean_figure(name: str, values: Flags | Floats, *, stream: int = 0) -> Figure:
    """Return the mean of a value (U,) of each unit, such as whether it is right."""
    units = np.stack([np.ones(len(values)), values.astype(np.float64)], axis=1)
    return Figure(name=name, units=units, statistic=_mean, stream=stream)


def f1_figure(name: str, found: Flags, gold: Flags, *, stream: int = 0) -> Figure:
    """Return F1 of a class: which units were taken for it, and which are of it, both (U,)."""
    units = np.stack([found & gold, found, gold], axis=1).astype(np.float64)
    return Figure(name=name, units=units, statistic=_f1, stream=stream)


def correlation_figure(name: str, x: Floats, y: Floats, *, stream: int = 0) -> Figure:
    """Return Pearson's r of two values (U,) of each unit."""
    return Figure(name=name, units=moments(x, y), statistic=pearson, stream=stream)


def ranks(values: Floats) -> Floats:
    """Return the rank of each value from 1, of equal ones their mean: float64 (U,).

    Pearson's r of ranks is Spearman's.
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    found: Floats = ((last - counts + 1 + last) / 2)[places]
    return found


def _mean(sums: Floats) -> Floats:
    return sums[:, 1] / sums[:, 0]


def _f1(sums: Floats) -> Floats:
    both, found, gold = sums.T
    scores: Floats = 2 * both / np.maximum(found + gold, 1)
    return scores


def fields_of(paths: Sequence[Path], /, **more: object) -> dict[str, object]:
    """Return what a signature says of data: the digest of all files, after ``more``."""
    return {**more, "sha256": fingerprint(*paths)}
