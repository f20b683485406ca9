"""Shared by tasks of several figures: figures with their intervals, one table, one signature.

A suite is prepared once, data read and checked, and can then be measured of any encoder; so
``adit evaluate compare`` measures the same of several.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import SIGNED, Interval, interval, resampled
from eval.metrics.sts import moments, pearson
from eval.output import LABEL_WIDTH, Cell, Record, Show, Table, signed

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of an encoder, a function of sums over ``units`` (U, C), see ``bootstrap``.

    Figures of the same sentences have the same ``stream``. ``published`` has those of others, by
    their names. Where ``lower`` is set, less is better. ``in_mean`` says whether it counts in the
    mean of the suite, ``percent`` whether it is a share.
    """

    name: str
    units: Floats
    statistic: Callable[[Floats], Floats]
    stream: int = 0
    published: Mapping[str, float | None] = field(default_factory=dict)
    lower: bool = False
    percent: bool = True
    in_mean: bool = True

    @property
    def value(self) -> float:
        """The figure."""
        return float(self.statistic(self.units.sum(axis=0)[None])[0])

    def samples(self) -> Floats:
        """Resample it: float64 (R,)."""
        return resampled(self.units, self.statistic, stream=self.stream)

    def cells(self, samples: Floats) -> tuple[Cell, Cell]:
        """Return what a table shows of it and of its interval."""
        return shown(self.value, interval(samples), self.percent)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A task whose data are at hand: what it signs with, and what it measures of an encoder.

    ``published`` names the columns of published figures; ``remark`` is a line about them.
    """

    task: str
    label: str
    fields: Mapping[str, object]
    measure: Callable[[Encoder], Iterator[Figure]]
    published: Sequence[str] = ()
    remark: str = ""
    unit: str = "sentences"
    width: int = LABEL_WIDTH


def shown(value: float, between: Interval, percent: bool) -> tuple[Cell, Cell]:
    """Return the cells of a figure and its interval, in per cent or as they are."""
    if percent:
        return value, between
    return f"{value:.4g}", f"{between[0]:.4g}-{between[1]:.4g}"


def run_suite(suite: Suite, spec: str, show: Show) -> Record:
    """Measure an encoder: a row for each figure as soon as it is there, then their mean."""
    encoder = load_encoder(spec)
    table = Table(
        suite.label, [suite.unit, "figure", "95% interval", *suite.published], suite.width
    )
    show(table.header)
    results: dict[str, Record] = {}
    values: list[float] = []
    samples: list[Floats] = []
    for figure in suite.measure(encoder):
        drawn = figure.samples()
        results[figure.name] = {
            "units": len(figure.units),
            "value": figure.value,
            "interval": interval(drawn),
            **({"published": dict(figure.published)} if suite.published else {}),
        }
        published = [figure.published.get(name) for name in suite.published]
        show(table.row(figure.name, str(len(figure.units)), *figure.cells(drawn), *published))
        if figure.in_mean:
            values.append(figure.value)
            samples.append(drawn)
    record: Record = {"figures": results}
    if len(values) > 1:
        between = interval(np.mean(samples, axis=0))
        record["mean"] = {"value": float(np.mean(values)), "interval": between}
        show(table.row("mean", None, *shown(record["mean"]["value"], between, figure.percent)))
    record = signed(show, suite.task, record, **suite.fields, encoder=encoder.name, interval=SIGNED)
    if suite.remark:
        show(suite.remark)
    return record


def mean_figure(name: str, values: NDArray[np.bool_] | Floats, *, stream: int = 0) -> Figure:
    """Return the mean of a value (U,) of each unit, such as whether it is right."""
    units = np.stack([np.ones(len(values)), values.astype(np.float64)], axis=1)
    return Figure(name=name, units=units, statistic=_mean, stream=stream)


def f1_figure(
    name: str, found: NDArray[np.bool_], gold: NDArray[np.bool_], *, stream: int = 0
) -> Figure:
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
    found: Floats = sums[:, 1] / sums[:, 0]
    return found


def _f1(sums: Floats) -> Floats:
    both, found, gold = sums.T
    scores: Floats = 2 * both / np.maximum(found + gold, 1)
    return scores


def fields_of(paths: Sequence[Path], /, **more: object) -> dict[str, object]:
    """Return what a signature says of data: the digest of all files, after ``more``."""
    return {**more, "sha256": fingerprint(*paths)}
