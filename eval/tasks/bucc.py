"""Mine two splits of each language pair, and tune a threshold on one.

'F1' is by the threshold with the best F1 on the first split. 'oracle F1' is by the second split's
own best threshold. 'F1 at .5', for scores by words, is by a probability of at least 0.5.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from encoder import Encoder, load_encoder
from eval.data.bucc import bucc_files, bucc_splits, load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import INTERVAL_METHOD, interval
from eval.metrics.bucc import extracted_pairs
from eval.output import Record, Show, Table, id_lines, print_note, score_record, signature
from eval.tasks import mined_splits
from eval.tasks.arguments import add_bucc_data, chosen_pairs, positive
from eval.tasks.mined_splits import SplitResult
from eval.tasks.suite import Figure, Suite, fields_of, figure_of
from miner.arrays import FloatArray
from miner.choices import MARGINS_HELP, RETRIEVALS_HELP, SCORES
from miner.margin import MARGINS
from miner.selection import RETRIEVALS
from miner.storage.atomic import write_text
from miner.storage.layout import SIDES

WORDS, _ = SCORES
ROLES = ("tune", "test")
COLUMNS = ("role", "split", "source", "target", "gold", "P", "R", "F1", "95% interval")
THRESHOLD = "threshold".rjust(18)  # all digits, because a rounded threshold can keep other pairs
TABLE = Table("pair", [*COLUMNS, THRESHOLD, "oracle F1", "seconds", "F1 at .5"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    add_bucc_data(parser)
    add = parser.add_argument
    text = (
        "split (SPLIT in the files' names) that chooses the threshold (default: training, or "
        "another)"
    )
    add("--tune", metavar="SPLIT", help=text)
    text = "split whose F1 by this threshold is measured (default: sample, or test, or another)"
    add("--test", metavar="SPLIT", help=text)
    text = "nearest neighbours per sentence, to select pairs from; 1 or more (default: 4)"
    add("-k", type=positive, default=4, metavar="K", help=text)
    text = f"{MARGINS_HELP} (default: ratio)"
    add("--margin", choices=MARGINS, default="ratio", help=text)
    text = f"{RETRIEVALS_HELP} (default: max)"
    add("--retrieval", choices=RETRIEVALS, default="max", help=text)
    text = "score of selected pairs; words: as in adit mine; margin: --margin's (default: margin)"
    add("--score", choices=SCORES, help=text)
    add("--align", action="store_const", const=WORDS, dest="score", help="same as --score words")
    text = "folder for the mined pairs, the ids of pairs above the threshold, and report.json"
    add("--output-dir", type=Path, metavar="DIR", help=text)


def run(args: argparse.Namespace, show: Show) -> Record:
    """Run as in ``TaskModule``, and write files if ``--output-dir`` is given.

    ``pairs`` has each pair's scores by role, ``tune`` or ``test``, and ``mean`` means by role.
    """
    splits = {pair: _splits(args, pair) for pair in chosen_pairs(args)}
    if args.output_dir is not None:
        args.output_dir.mkdir(parents=True, exist_ok=True)
    encoder = load_encoder(args.encoder)
    samples: dict[str, list[FloatArray]] = {role: [] for role in ROLES}
    pairs: dict[str, dict[str, Record]] = {}
    show(TABLE.header)
    for pair, both_splits in splits.items():
        pairs[pair] = {}
        results = _tune_and_test(args, pair, both_splits, encoder)
        for role, result in zip(ROLES, results, strict=True):
            pairs[pair][role] = _record(args, result, both_splits[0], encoder.name)
            show(_row(pair, role, pairs[pair][role]))
            samples[role].append(result.f1_samples)
    means = {role: _mean([rec[role] for rec in pairs.values()], samples[role]) for role in ROLES}
    if len(pairs) > 1:
        for role, mean in means.items():
            show(_row("mean", role, mean))
    for records in pairs.values():
        for role in ROLES:
            show(records[role]["signature"])
    record = {"task": "bucc", "pairs": pairs, "mean": means}
    if args.output_dir is not None:
        write_text(args.output_dir / "report.json", json.dumps(record, indent=2) + "\n")
    return record


def prepare(args: argparse.Namespace) -> Suite:
    """Find two splits of each pair, to tune and to test, or raise ValueError."""
    splits = {pair: _splits(args, pair) for pair in chosen_pairs(args)}

    def measure(encoder: Encoder) -> Iterator[Figure]:
        for stream, (pair, both_splits) in enumerate(splits.items()):
            _, tested = _tune_and_test(args, pair, both_splits, encoder)
            yield figure_of(pair, tested.f1_units, mined_splits.f1_of_sums, stream=stream)

    files = [bucc_files(args.directory, pair, test).gold for pair, (_, test) in splits.items()]
    fields = fields_of(files, pairs=",".join(splits), **_mining(args))
    return Suite("bucc", fields, measure, label="pair")


def _mining(args: argparse.Namespace) -> Record:
    return {"k": args.k, "margin": args.margin, "retrieval": args.retrieval}


def _splits(args: argparse.Namespace, pair: str) -> tuple[str, str]:
    available = bucc_splits(args.directory, pair)
    tune, test, remark = mined_splits.choose_splits(available, tune=args.tune, test=args.test)
    for split in (tune, test):
        bucc_files(args.directory, pair, split)  # fails before an hour of encoding
    if remark is not None:
        print_note("adit evaluate", f"{pair} is {remark}")
    return tune, test


def _tune_and_test(
    args: argparse.Namespace, pair: str, splits: tuple[str, str], encoder: Encoder
) -> tuple[SplitResult, SplitResult]:
    data = {split: load_bucc(args.directory, pair, split) for split in splits}
    options = {**_mining(args), "encoder": encoder, "judged": args.score == WORDS}
    mined = {split: mined_splits.mine_split(data[split], **options) for split in splits}
    results = mined_splits.tune_and_test(*(mined[split] for split in splits))
    if args.output_dir is not None:
        for result in results:
            stem = f"{pair}.{result.mined.data.split}"
            extracted = extracted_pairs(result.mined.ranked, result.score.threshold)
            write_text(args.output_dir / f"{stem}.tsv", mined_splits.scored_texts(result.mined))
            write_text(args.output_dir / f"{stem}.extracted", id_lines(extracted))
    return results


def _row(label: str, role: str, record: Record) -> str:
    threshold = None
    if "threshold" in record:  # which means over pairs lack
        threshold = repr(math.inf if record["threshold"] is None else record["threshold"])
    counts = (record.get(f"{name}_sentences") for name in SIDES)
    return TABLE.row(
        label,
        *(role, record.get("split"), *counts, record.get("gold")),
        *(record["precision"], record["recall"], record["f1"], record["f1_interval"], threshold),
        *(record["oracle_f1"], f"{record['seconds']:.1f}", record.get("likely_f1")),
    )


def _mean(records: Sequence[Record], samples: Sequence[FloatArray]) -> Record:
    means: Record = {}
    for name in ("precision", "recall", "f1", "oracle_f1", "seconds", "likely_f1"):
        if values := [record[name] for record in records if record[name] is not None]:
            means[name] = sum(values) / len(values)
    return {**means, "f1_interval": interval(np.mean(samples, axis=0))}


def _record(args: argparse.Namespace, result: SplitResult, tune: str, encoder: str) -> Record:
    mined, data = result.mined, result.mined.data
    likely = mined_splits.likely_score(mined).f1 if args.score == WORDS else None
    fields: Record = {"pair": data.pair, "split": data.split, "gold": len(data.gold)}
    for name in ("gold", *SIDES):
        fields[f"{name}_sha256"] = fingerprint(getattr(data.files, name))
    fields |= {"encoder": encoder, **_mining(args), "align": "yes" if args.score == WORDS else "no"}
    fields["threshold"] = "optimized" if data.split == tune else f"optimized-on-{tune}"
    fields |= {"ties": "grouped", "repeats": "any", "compat": "none", "interval": INTERVAL_METHOD}
    return {
        "split": data.split,
        "source_sentences": len(data.source),
        "target_sentences": len(data.target),
        **score_record(result.score),
        "f1_interval": interval(result.f1_samples),
        "oracle_f1": result.oracle.f1,
        "oracle_threshold": score_record(result.oracle)["threshold"],
        "likely_f1": likely,
        "seconds": mined.seconds,
        "signature": signature("bucc", **fields),
    }
