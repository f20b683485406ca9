"""Several encoders on the same sets: one table, and whether their differences are more than chance.

The bootstrap draws the same units for all encoders, so the difference of two is resampled by pairs
(Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation").
"""

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from encoder import Encoder, load_encoder
from eval.metrics.bootstrap import SIGNED, interval
from eval.output import Record, Show, Table, signature, signed, template
from eval.tasks.arguments import LANGUAGES, add_list
from eval.tasks.suite import Measured, Suite
from miner.storage.atomic import write_text

# What is measured, by name: a task and its arguments, folders being those in DIR.
SUITES = {
    "mining": "bucc bucc-style",
    "tatoeba": "tatoeba tatoeba",
    "xsim": "xsim ntrex",
    "senteval": "senteval senteval sick",
    "probe": "probe probing/en",
    "classify": "classify sib200",
    "nli": "nli xnli --train nli-cad/all_combined.train.tsv.xz --classifier logistic",
    "words": "words dictionaries/muse-test wordsim/semeval17-2",
    "eigen": "eigen ntrex",
}
SEARCHES = ("tatoeba", "xsim", "eigen")  # suites of aligned texts in languages of one's choice


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    suites = "; ".join(f"{name}: {arguments}" for name, arguments in SUITES.items())
    parser.description = (
        "Measure encoders on the same sets. A difference is given with its 95% interval, from "
        "resampling the same sentences for both, and marked * where that leaves out 0. Suites, as "
        f"tasks and folders in DIR: {suites}."
    )
    add = parser.add_argument
    add("encoders", nargs="+", metavar="ENCODER", help="two or more, the first being the baseline")
    add("--data", type=Path, required=True, metavar="DIR", help="holds the folders of the suites")
    text = f"of {', '.join(SUITES)} (default: those whose folder is there)"
    add_list(parser, "--suite", "NAME", text, choices=SUITES)
    text = f"of {', '.join(SEARCHES)}, beside English (default: {' '.join(LANGUAGES)})"
    add_list(parser, "--lang", "XX", text)
    add("--figure", type=Path, metavar="FILE.svg", help="draw the means of the suites here")
    parser.set_defaults(encoder="")  # so that there is no --encoder beside these


def run(args: argparse.Namespace, show: Show) -> Record:
    """Measure each suite of all encoders."""
    if len(args.encoders) < 2 or len(set(args.encoders)) < len(args.encoders):
        raise ValueError(f"encoders {' '.join(args.encoders)}: name two or more different ones")
    suites = {name: _prepared(name, args.data, args.lang) for name in _chosen(args)}
    encoders = {spec: load_encoder(spec) for spec in args.encoders}
    results: dict[str, Record] = {}
    means: dict[str, list[Measured]] = {}
    for name, suite in suites.items():
        results[name], means[name] = _compare(name, suite, encoders, show)
    if args.figure is not None:
        write_text(args.figure, _drawn(list(encoders), means))
    names = ",".join(one.name for one in encoders.values())
    fields = {"encoders": names, "interval": f"paired-{SIGNED}"}
    return signed(show, "compare", {"suites": results}, **fields)


def _chosen(args: argparse.Namespace) -> Sequence[str]:
    if args.suite:
        return list(dict.fromkeys(args.suite))
    there = [name for name in SUITES if all(path.exists() for path in _places(name, args.data))]
    if not there:
        raise ValueError(f"{args.data}: holds no folder of a suite, such as tatoeba or senteval")
    return there


def _places(name: str, data: Path) -> list[Path]:
    return [data / word for word in SUITES[name].split()[1:] if _is_place(word)]


def _is_place(word: str) -> bool:
    return not word.startswith("--") and word not in ("logistic", "mlp")


def _prepared(name: str, data: Path, languages: Sequence[str] | None) -> Suite:
    from eval.tasks import TASKS

    task, *words = SUITES[name].split()
    for place in _places(name, data):
        if not place.exists():
            raise ValueError(f"{place}: there is no such folder; the suite {name} needs it")
    module = TASKS[task].load()
    parser = argparse.ArgumentParser(prog=f"adit evaluate {task}")
    module.add_arguments(parser)
    parsed = parser.parse_args([str(data / word) if _is_place(word) else word for word in words])
    if languages and name in SEARCHES:
        parsed.lang = languages
    return module.prepare(parsed)


def _compare(
    name: str, suite: Suite, encoders: dict[str, Encoder], show: Show
) -> tuple[Record, list[Measured]]:
    """Show a row for each figure and, of several, their mean; return both kinds."""
    specs = list(encoders)
    pairs = list(combinations(range(len(specs)), 2))
    columns = [part for spec in specs for part in (spec, "95% interval")]
    differences = [f"{specs[b]} - {specs[a]}" for a, b in pairs]
    table = Table(name, [*columns, *differences], max(suite.width, 14))
    show(table.header)
    rows: list[list[Measured]] = []
    record: Record = {}
    measured = zip(*(suite.measure(one) for one in encoders.values()), strict=True)
    for figures in measured:
        rows.append(list(map(Measured.of, figures)))
        record[figures[0].name] = _show_row(table, specs, pairs, rows[-1], show)
    counted = [row for row in rows if row[0].figure.in_mean]
    means = [Measured.mean([row[place] for row in counted]) for place in range(len(specs))]
    if len(counted) > 1:
        record["mean"] = _show_row(table, specs, pairs, means, show)
    line = signature(suite.task, **suite.fields)
    show(line)
    return {"figures": record, "signature": line}, means


def _show_row(
    table: Table,
    specs: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    row: Sequence[Measured],
    show: Show,
) -> Record:
    cells = [cell for one in row for cell in one.cells()]
    record: Record = {
        "figures": {spec: one.record() for spec, one in zip(specs, row, strict=True)},
        "lower_is_better": row[0].figure.lower,
        "differences": [],
    }
    marked = []
    for a, b in pairs:
        difference = row[b].figure.value - row[a].figure.value
        between = interval(row[b].samples - row[a].samples)
        beyond = between[0] > 0 or between[1] < 0
        percent = row[0].figure.percent
        number = f"{100 * difference:+.2f}" if percent else f"{difference:+.4g}"
        marked.append(number + ("*" if beyond else " "))
        found = {"of": [specs[b], specs[a]], "value": difference, "interval": between}
        record["differences"].append({**found, "beyond_chance": beyond})
    show(table.row(row[0].figure.name, *cells, *marked))
    return record


def _drawn(specs: Sequence[str], means: dict[str, list[Measured]]) -> str:
    rows: dict[str, list[tuple[float, float, float]]] = {}  # value, low, high
    for name, row in means.items():
        if row[0].figure.percent:
            label = f"{name} (error)" if row[0].figure.lower else name
            rows[label] = []
            for one in row:
                low, high = interval(one.samples)
                rows[label].append((100 * one.figure.value, 100 * low, 100 * high))
    return template("intervals.svg").render(rows=rows, names=specs)
