"""eval-encoder bucc without its command line: mine language pairs, tune, test, report."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.data.datasets import bucc_files, bucc_pairs, bucc_splits, load_bucc
from eval.data.textfiles import fingerprint, write_text
from eval.metrics.bootstrap import SIGNED
from eval.output import (
    BUCC_HEADER,
    bucc_mean,
    bucc_mean_interval,
    bucc_mean_row,
    bucc_record,
    bucc_row,
    signature,
)
from eval.tasks.mined_splits import (
    SplitResult,
    choose_splits,
    extracted_ids,
    mine_split,
    scored_texts,
    tune_and_test,
)
from miner.commandline import product_version

if TYPE_CHECKING:
    from encoder import Encoder
    from eval.tasks.mined_splits import Mine

    Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class BuccOptions:
    """What to mine and how; None stands for every pair, and for the usual splits."""

    directory: Path
    pairs: tuple[str, ...] | None
    tune: str | None
    test: str | None
    encoder: str
    k: int
    margin: str
    retrieval: str
    align: bool
    output_dir: Path | None


def run_bucc(options: BuccOptions, *, tell: Tell, note: Tell) -> dict[str, object]:
    """Run the task; the report as a record for JSON.

    Args:
        options: what to do.
        tell: called with each line of the table as it is ready.
        note: called with remarks that are no part of the result.

    Raises:
        ValueError: data or an option is wrong; options are checked before anything is encoded.
    """
    pairs = bucc_pairs(options.directory) if options.pairs is None else options.pairs
    plan = {pair: _plan(options, pair, note) for pair in pairs}
    if options.output_dir is not None:
        options.output_dir.mkdir(parents=True, exist_ok=True)
    encoder, mine = _load(options)
    tuned: list[SplitResult] = []
    tested: list[SplitResult] = []
    signatures: dict[str, str] = {}
    tell(BUCC_HEADER)
    for pair, splits in plan.items():
        results = _tune_and_test(options, pair, splits, encoder=encoder, mine=mine)
        for role, result, column in zip(("tune", "test"), results, (tuned, tested), strict=True):
            tell(bucc_row(role, result))
            signatures[f"{pair} {role}"] = _sign(options, result, splits[0], encoder.name)
            column.append(result)
    if len(plan) > 1:
        tell(bucc_mean_row("tune", tuned))
        tell(bucc_mean_row("test", tested))
    for signed in signatures.values():
        tell(signed)
    record = _record(tuned, tested, signatures)
    if options.output_dir is not None:
        write_text(options.output_dir / "report.json", json.dumps(record, indent=2) + "\n")
    return record


def _load(options: BuccOptions) -> tuple[Encoder, Mine]:
    """The encoder, and the miner with its options, which are checked here."""
    from encoder import load_encoder
    from miner.margin import MARGINS
    from miner.mining import mine
    from miner.selection import RETRIEVALS

    for name, value, known in (
        ("margin", options.margin, MARGINS),
        ("retrieval", options.retrieval, RETRIEVALS),
    ):
        if value not in known:
            raise ValueError(f"{name} {value!r} is unknown; choose one of {', '.join(known)}")
    configured = functools.partial(
        mine, k=options.k, margin=options.margin, retrieval=options.retrieval
    )
    return load_encoder(options.encoder), configured


def _plan(options: BuccOptions, pair: str, note: Tell) -> tuple[str, str]:
    """The splits to tune and to test ``pair`` on."""
    available = bucc_splits(options.directory, pair)
    tune, test, remark = choose_splits(available, tune=options.tune, test=options.test)
    for split in (tune, test):
        bucc_files(options.directory, pair, split)  # now, not after an hour of encoding
    if remark is not None:
        note(f"{pair} is {remark}")
    return tune, test


def _tune_and_test(
    options: BuccOptions, pair: str, splits: tuple[str, str], *, encoder: Encoder, mine: Mine
) -> tuple[SplitResult, SplitResult]:
    loaded = {split: load_bucc(options.directory, pair, split) for split in splits}
    mined = {
        split: mine_split(data, encoder=encoder, mine=mine, align=options.align)
        for split, data in loaded.items()
    }
    tune, test = splits
    results = tune_and_test(mined[tune], mined[test])
    if options.output_dir is not None:
        for result in results:
            stem = options.output_dir / f"{pair}.{result.mined.data.split}"
            write_text(stem.with_name(f"{stem.name}.tsv"), scored_texts(result.mined))
            write_text(stem.with_name(f"{stem.name}.extracted"), extracted_ids(result))
    return results


def _sign(options: BuccOptions, result: SplitResult, tuned_on: str, encoder: str) -> str:
    data = result.mined.data
    return signature(
        "bucc",
        {
            "pair": data.pair,
            "split": data.split,
            "gold": len(data.gold),
            "gold_sha256": fingerprint(data.files.gold),
            "source_sha256": fingerprint(data.files.source),
            "target_sha256": fingerprint(data.files.target),
            "encoder": encoder,
            "k": options.k,
            "margin": options.margin,
            "retrieval": options.retrieval,
            "align": "yes" if options.align else "no",
            "threshold": "optimized" if data.split == tuned_on else f"optimized-on-{tuned_on}",
            "ties": "grouped",
            "repeats": "any",
            "compat": "none",
            "interval": SIGNED,
            "v": product_version(),
        },
    )


def _record(
    tuned: list[SplitResult], tested: list[SplitResult], signatures: dict[str, str]
) -> dict[str, object]:
    pairs = {}
    for tune, test in zip(tuned, tested, strict=True):
        pair = tune.mined.data.pair
        pairs[pair] = {
            role: {**bucc_record(result), "signature": signatures[f"{pair} {role}"]}
            for role, result in (("tune", tune), ("test", test))
        }
    mean = {
        role: {**bucc_mean(results), "f1_interval": bucc_mean_interval(results)}
        for role, results in (("tune", tuned), ("test", tested))
    }
    return {"task": "bucc", "pairs": pairs, "mean": mean}
