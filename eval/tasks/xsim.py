"""eval-encoder xsim and xsim++ without their command line: margin search among aligned texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from eval.data.hard_negatives import KINDS, hard_negatives
from eval.metrics.bootstrap import interval, mean_samples
from eval.metrics.similarity import NEIGHBOURS, best_by_margin, nearest, search_errors, wrong
from eval.table import Table
from eval.tasks.aligned import Loaded

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARGINS = ("absolute", "distance", "ratio")
XSIM_TABLE = Table("language", ["sentences", *MARGINS, "95% interval"])
OTHER = "other"
XSIM_PP_TABLE = Table("language", ["candidates", "errors", "95% interval", *KINDS, OTHER])

Tell = Callable[[str], None]


def run_xsim(loaded: Loaded, *, tell: Tell) -> dict[str, object]:
    """Error rates of search from each language into English; the report as a record for JSON."""
    tell(XSIM_TABLE.header)
    english = loaded.vectors(loaded.english)
    rates: dict[str, dict[str, object]] = {}
    samples: list[NDArray[np.float64]] = []
    means = np.zeros(len(MARGINS))
    for language in loaded.others:
        forward, backward = nearest(loaded.vectors(language), english)
        errors = {
            margin: wrong(best_by_margin(forward, backward, margin=margin)) for margin in MARGINS
        }
        # The sentences are the same in all languages, so they are resampled together.
        samples.append(mean_samples(errors["ratio"], stream=0))
        row = {margin: float(missed.mean()) for margin, missed in errors.items()}
        means += list(row.values())
        rates[language] = {**row, "interval": interval(samples[-1])}
        tell(XSIM_TABLE.row(language, len(english), *row.values(), interval(samples[-1])))
    mean = dict(zip(MARGINS, (means / len(rates)).tolist(), strict=True))
    mean_interval = interval(np.mean(samples, axis=0))
    if len(rates) > 1:
        tell(XSIM_TABLE.row("mean", None, *mean.values(), mean_interval))
    signed = loaded.signature("xsim", k=NEIGHBOURS, target=loaded.english)
    tell(signed)
    return {
        "task": "xsim",
        "languages": rates,
        "mean": {**mean, "interval": mean_interval},
        "signature": signed,
    }


def run_xsim_matrix(loaded: Loaded, *, margin: str, tell: Tell) -> dict[str, object]:
    """Error rates of search between every two languages, as Schwenk & Douze 2017 tabulate them.

    Rows are the languages searched from, columns those searched in.
    """
    names = loaded.data.languages
    vectors = {name: loaded.vectors(name) for name in names}
    rates = np.full((len(names), len(names)), np.nan)
    for row, source in enumerate(names):
        for column, target in enumerate(names[:row]):
            errors = search_errors(vectors[source], vectors[target], margin=margin)
            rates[row, column] = errors.forward_rate
            rates[column, row] = errors.backward_rate
    table = Table("from", [*names, "mean"])
    row_means, column_means = np.nanmean(rates, axis=1), np.nanmean(rates, axis=0)
    mean = float(np.nanmean(rates))
    tell(table.header)
    for name, row_rates, row_mean in zip(names, rates.tolist(), row_means.tolist(), strict=True):
        cells = [None if rate != rate else rate for rate in row_rates]
        tell(table.row(name, *cells, row_mean))
    tell(table.row("mean", *column_means.tolist(), mean))
    signed = loaded.signature("xsim-matrix", k=NEIGHBOURS, margin=margin)
    tell(signed)
    by_language = {
        source: {
            target: float(rates[row, column])
            for column, target in enumerate(names)
            if row != column
        }
        for row, source in enumerate(names)
    }
    return {"task": "xsim-matrix", "rates": by_language, "mean": mean, "signature": signed}


def run_xsim_pp(loaded: Loaded, *, tell: Tell) -> dict[str, object]:
    """Error rates of ratio-margin search among English sentences and changed copies of them.

    An error is counted as a kind where the changed copy of that kind of the right sentence was
    found, and as ``other`` where it was another sentence, or a copy of one, or nothing.
    """
    tell(XSIM_PP_TABLE.header)
    sentences = loaded.data.texts[loaded.english]
    copies = hard_negatives(sentences)
    english = np.concatenate(
        [
            loaded.vectors(loaded.english),
            loaded.encode([copy.text for copy in copies], loaded.english),
        ]
    )
    # What each candidate is (a position in kinds, -1 an original), and of which sentence.
    kinds = np.array([-1] * len(sentences) + [KINDS.index(copy.kind) for copy in copies])
    rows = np.array([*range(len(sentences)), *(copy.row for copy in copies)])
    results: dict[str, dict[str, object]] = {}
    samples: list[NDArray[np.float64]] = []
    for language in loaded.others:
        forward, backward = nearest(loaded.vectors(language), english)
        found = best_by_margin(forward, backward, margin="ratio")
        own = (found >= 0) & (rows[found] == np.arange(len(sentences)))
        missed = ~own | (kinds[found] >= 0)
        samples.append(mean_samples(missed, stream=0))
        by_kind = {
            kind: float((own & (kinds[found] == place)).mean()) for place, kind in enumerate(KINDS)
        } | {OTHER: float((~own).mean())}
        rate = float(missed.mean())
        results[language] = {"errors": rate, "interval": interval(samples[-1]), **by_kind}
        cells = len(english), rate, interval(samples[-1])
        tell(XSIM_PP_TABLE.row(language, *cells, *by_kind.values()))
    mean = {
        name: float(np.mean([result[name] for result in results.values()]))
        for name in ("errors", *KINDS, OTHER)
    }
    mean_interval = interval(np.mean(samples, axis=0))
    if len(results) > 1:
        shares = [mean[name] for name in (*KINDS, OTHER)]
        tell(XSIM_PP_TABLE.row("mean", None, mean["errors"], mean_interval, *shares))
    counts = {kind: sum(copy.kind == kind for copy in copies) for kind in KINDS}
    signed = loaded.signature("xsim++", k=NEIGHBOURS, margin="ratio", negatives="adit-1", **counts)
    tell(signed)
    return {
        "task": "xsim++",
        "languages": results,
        "mean": {**mean, "interval": mean_interval},
        "hard_negatives": counts,
        "signature": signed,
    }
