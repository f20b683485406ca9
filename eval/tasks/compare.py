"""Several encoders on the same sets, with tests of their differences.

The bootstrap draws the same units for all encoders, so the difference of two is resampled by pairs
(Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation").
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from encoder import Encoder, load_encoder
from eval.metrics.bootstrap import INTERVAL_METHOD, interval
from eval.output import Record, Show, Table, load_template, sign, signature
from eval.tasks import load_task
from eval.tasks.arguments import LANGUAGES, add_list
from eval.tasks.suite import Figure, Suite, mean_of
from miner.storage.atomic import write_text

# Suites by name: a task and its arguments. Folders are in DIR.
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
SEARCHES = ("tatoeba", "xsim", "eigen")  # suites of aligned texts, for which --lang can be passed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the task's options, and set the description and default ``encoder``."""
    suites = ", ".join(f"{name} ({arguments})" for name, arguments in SUITES.items())
    parser.description = (
        "Measure encoders on the same sets. A difference has a * if its 95% interval, from "
        "resampling the same sentences for both, excludes 0. Suites are "
        f"tasks of adit evaluate and paths in DIR: {suites}."
    )
    add = parser.add_argument
    text = "two or more encoders, such as mini and use; each is compared with the ones before"
    add("encoders", nargs="+", metavar="ENCODER", help=text)
    text = "folder that contains the suites' paths, as above"
    add("--data", type=Path, required=True, metavar="DIR", help=text)
    text = f"suites to run: {', '.join(SUITES)} (default: suites with their folders in DIR)"
    add_list(parser, "--suite", "NAME", text, choices=SUITES)
    text = f"languages for {', '.join(SEARCHES)}, next to English (default: {' '.join(LANGUAGES)})"
    add_list(parser, "--lang", "XX", text)
    add("--figure", type=Path, metavar="FILE.svg", help="also chart the suites' means, not eigen's")
    parser.set_defaults(encoder="")  # so that no option --encoder is added


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run as in ``TaskModule``, with figures by suite in ``suites``.

    Raises:
        ValueError: Fewer than two encoders, or one twice, are named, or a requested suite, or every
            one, lacks a folder.
    """
    if len(args.encoders) < 2 or len(set(args.encoders)) < len(args.encoders):
        raise ValueError(f"encoders {' '.join(args.encoders)}: pass 2 or more encoders, each once")
    available = [name for name in SUITES if all(path.exists() for path in _paths(name, args.data))]
    requested = args.suite or available
    if not requested:
        raise ValueError(
            f"{args.data}: lacks the folders of every suite; pass the folder that contains them, "
            "such as tatoeba, or senteval and sick"
        )
    suites = {name: _prepare(name, args.data, args.lang) for name in dict.fromkeys(requested)}
    encoders = {spec: load_encoder(spec) for spec in args.encoders}
    results: dict[str, Record] = {}
    means: dict[str, list[Figure]] = {}
    for name, suite in suites.items():
        results[name], means[name] = _compare(name, suite, encoders, show)
    if args.figure is not None:
        write_text(args.figure, _draw(list(encoders), means))
    encoder_names = ",".join(encoder.name for encoder in encoders.values())
    fields = {"encoders": encoder_names, "interval": f"paired-{INTERVAL_METHOD}"}
    return sign(show, "compare", {"suites": results}, **fields)


def _paths(name: str, data: Path) -> list[Path]:
    return [data / word for word in SUITES[name].split()[1:] if _is_path(word)]


def _is_path(word: str) -> bool:
    return not word.startswith("--") and word not in ("logistic", "mlp")


def _prepare(name: str, data: Path, languages: Sequence[str] | None) -> Suite:
    task, *words = SUITES[name].split()
    for path in _paths(name, data):
        if not path.exists():
            raise ValueError(
                f"{path}: file or folder not found; add it, or omit the suite {name}, which "
                "needs it"
            )
    module = load_task(task)
    parser = argparse.ArgumentParser(prog=f"adit evaluate {task}")
    module.add_arguments(parser)
    parsed = parser.parse_args([str(data / word) if _is_path(word) else word for word in words])
    if languages and name in SEARCHES:
        parsed.lang = languages
    return module.prepare(parsed)


def _compare(
    name: str, suite: Suite, encoders: dict[str, Encoder], show: Show
) -> tuple[Record, list[Figure]]:
    pairs = list(combinations(encoders, 2))
    columns = [part for spec in encoders for part in (spec, "95% interval")]
    differences = [f"{second} - {first}" for first, second in pairs]
    table = Table(name, [*columns, *differences], max(suite.width, 14))
    show(table.header)

    def show_row(row: Mapping[str, Figure]) -> Record:
        compared = [_difference(row, *pair) for pair in pairs]
        first = next(iter(row.values()))
        cells = [cell for figure in row.values() for cell in figure.cells()]
        show(table.row(first.name, *cells, *(cell for _, cell in compared)))
        return {
            "figures": {spec: figure.record() for spec, figure in row.items()},
            "lower_is_better": first.lower,
            "differences": [difference for difference, _ in compared],
        }

    rows_in_mean: list[Sequence[Figure]] = []
    record: Record = {}
    for row in zip(*(suite.measure(encoder) for encoder in encoders.values()), strict=True):
        record[row[0].name] = show_row(dict(zip(encoders, row, strict=True)))
        rows_in_mean += [row] if row[0].in_mean else []
    means = [mean_of(figures) for figures in zip(*rows_in_mean, strict=True)]
    if len(rows_in_mean) > 1:
        record["mean"] = show_row(dict(zip(encoders, means, strict=True)))
    line = signature(suite.task, **suite.fields)
    show(line)
    return {"figures": record, "signature": line}, means


def _difference(row: Mapping[str, Figure], first: str, second: str) -> tuple[Record, str]:
    difference = row[second].value - row[first].value
    difference_interval = interval(row[second].samples - row[first].samples)
    is_beyond = difference_interval[0] > 0 or difference_interval[1] < 0
    number = f"{100 * difference:+.2f}" if row[first].percent else f"{difference:+.4g}"
    record = {"of": [second, first], "value": difference, "interval": difference_interval}
    return {**record, "beyond_chance": is_beyond}, number + ("*" if is_beyond else " ")


def _draw(specs: Sequence[str], means: Mapping[str, Sequence[Figure]]) -> str:
    rows: dict[str, list[tuple[float, float, float]]] = {}  # value, low, high
    for name, row in means.items():
        if row[0].percent:
            label = f"{name} (error)" if row[0].lower else name
            shares = ((figure.value, *interval(figure.samples)) for figure in row)
            rows[label] = [(100 * value, 100 * low, 100 * high) for value, low, high in shares]
    return load_template("intervals.svg").render(rows=rows, names=specs)
