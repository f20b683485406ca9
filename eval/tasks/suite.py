"""Figures with intervals, and suites of them in one table.

Axes: ``U`` units, ``C`` numbers per unit, ``R`` resamples. Functions that get the same ``stream``
and U draw the same resamples.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from encoder import Encoder, load_encoder
from eval.data.languages import iso_639_1
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import INTERVAL_METHOD, Statistic, interval, moments, pearson, resample
from eval.output import LABEL_WIDTH, Cell, Record, Show, Table, encoder_names, sign
from miner.arrays import FloatArray, Mask


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of an encoder, such as for a language, with an interval.

    Attributes:
        samples: the value of each resample, float64 (R,).
        units: number of units, such as sentences; None for a mean of figures.
        beside: values of further columns by heading, such as published figures.
        lower: whether lower is better.
        percent: whether ``value`` is shown in percent, 1 as 100%.
        in_mean: whether the mean of the suite includes it.
    """

    name: str
    value: float
    samples: FloatArray
    units: int | None
    beside: Mapping[str, float | None] = field(default_factory=dict)
    lower: bool = False
    percent: bool = True
    in_mean: bool = True

    def cells(self) -> tuple[Cell, Cell]:
        """Return the value and 95% interval as cells, as text if not ``percent``."""
        low, high = interval(self.samples)
        if self.percent:
            return self.value, (low, high)
        return f"{self.value:.4g}", f"{low:.4g}-{high:.4g}"

    def record(self) -> Record:
        """Return ``value`` and the 95% ``interval``, for JSON."""
        return {"value": self.value, "interval": interval(self.samples)}


def figure_of(name: str, units: FloatArray, statistic: Statistic, *, stream: int = 0) -> Figure:
    """Compute a figure from the summed numbers of one or more units, (U, C).

    ``statistic`` maps sums (R, C) to figures (R,). 1,000 resamples of units make the interval.
    """
    value = float(statistic(units.sum(axis=0)[None])[0])
    samples = resample(units, statistic, stream=stream)
    return Figure(name=name, value=value, samples=samples, units=len(units))


def mean_figure(name: str, values: Mask | FloatArray, *, stream: int = 0) -> Figure:
    """Compute the mean of ``values`` (U,) of one or more units."""
    units = np.stack([np.ones(len(values)), values.astype(np.float64)], axis=1)
    return figure_of(name, units, lambda sums: sums[:, 1] / sums[:, 0], stream=stream)


def correlation_figure(name: str, x: FloatArray, y: FloatArray, *, stream: int = 0) -> Figure:
    """Compute Pearson's r of two values (U,), U > 0, or 0 if one is constant."""
    return figure_of(name, moments(x, y), pearson, stream=stream)


def ranks(values: FloatArray) -> FloatArray:
    """Rank values (U,) ascending from 1, ties by mean rank, float64 (U,)."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    mean_ranks: FloatArray = ((last - counts + 1 + last) / 2)[groups]
    return mean_ranks


def mean_of(row: Sequence[Figure]) -> Figure:
    """Return the mean of one or more figures, as a figure.

    Values, resamples and the first figure's columns are averaged, a column to None if a figure has
    None or lacks it. The name is ``mean``, units are None, and the rest is the first figure's.
    """
    columns = {name: [figure.beside.get(name) for figure in row] for name in row[0].beside}
    beside = {
        name: None if None in values else float(np.mean(np.array(values, dtype=np.float64)))
        for name, values in columns.items()
    }
    value = float(np.mean([figure.value for figure in row]))
    samples = np.mean([figure.samples for figure in row], axis=0)
    return replace(row[0], name="mean", value=value, samples=samples, units=None, beside=beside)


@dataclass(frozen=True)
class Suite:
    """A task of evaluation with its data, which can measure encoders.

    Attributes:
        fields: the fields of the signature.
        measure: yields the figures of an encoder.
        label: heading of the names of figures.
        before: headings of further columns of a figure to show before it.
        figure: heading of the figure.
        after: headings of columns to show between the figure and published figures.
        remark: a line to show after the signature.
        unit: heading of the numbers of units.
        width: characters of the names of figures.
        languages: languages of the data, if they decide which parts of an encoder are used.
        more: shows other tables when all figures are measured, and returns their record.
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
    more: Callable[[Show], Record] = lambda show: {}


def run_suite(suite: Suite, spec: str, show: Show) -> Record:
    """Measure an encoder by a suite, and return the record for JSON.

    ``spec`` is as for ``load_encoder``. ``show`` gets each line. The record has ``task``,
    ``figures`` by name with ``units``, ``value``, ``interval`` and maybe ``beside``, the ``mean``
    of several, ``signature``, and ``suite.more``'s items. Errors are as in ``TaskModule.run``.
    """
    encoder = load_encoder(spec)
    column_names = suite.before, (*suite.after, *publishers(suite.task))
    columns = [suite.unit, *column_names[0], suite.figure, "95% interval", *column_names[1]]
    table = Table(suite.label, columns, suite.width)
    show(table.header)

    def show_row(figure: Figure) -> Record:
        before, after = (map(figure.beside.get, names) for names in column_names)
        show(table.row(figure.name, figure.units, *before, *figure.cells(), *after))
        return {**figure.record(), **({"beside": dict(figure.beside)} if any(column_names) else {})}

    results: dict[str, Record] = {}
    figures_in_mean: list[Figure] = []
    for figure in suite.measure(encoder):
        results[figure.name] = {"units": figure.units, **show_row(figure)}
        figures_in_mean += [figure] if figure.in_mean else []
    record: Record = {"figures": results}
    if len(figures_in_mean) > 1:
        record["mean"] = show_row(mean_of(figures_in_mean))
    names = encoder_names(encoder, map(iso_639_1, suite.languages))
    record = sign(show, suite.task, record, **suite.fields, encoder=names, interval=INTERVAL_METHOD)
    if suite.remark:
        show(suite.remark)
    return {**record, **suite.more(show)}


def fields_of(paths: Sequence[Path], /, **more: object) -> dict[str, object]:
    """Return ``more``, and as ``sha256`` the ``fingerprint`` of ``paths``."""
    return {**more, "sha256": fingerprint(*paths)}


@cache
def _published() -> list[list[str]]:
    text = files("eval").joinpath("assets", "published.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def publishers(task: str) -> tuple[str, ...]:
    """Return the names of publications that have figures of a task, or ()."""
    return tuple(dict.fromkeys(source for name, _, _, source, _ in _published() if name == task))


def published(task: str, name: str, *, size: int) -> dict[str, float | None]:
    """Return the published figures of a set, by publication, 0 to 1.

    A figure is None without one for set ``name`` of ``size``, and the mean of several. Sizes are of
    examples, sentences, training documents (``classify``) or target words (``words``).
    """
    means: dict[str, float | None] = dict.fromkeys(publishers(task))
    for task_name, set_name, set_size, source, figures in _published():
        if (task_name, set_name, int(set_size)) == (task, name, size):
            shares = [float(figure) / 100 for figure in figures.split()]
            means[source] = sum(shares) / len(shares)
    return means
