"""Pairs of a finished run, written again with what was found out about them."""

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eval.runs.store import Run
from miner.choices import MONOTONE
from miner.storage.atomic import atomic_file
from miner.storage.places import Place

BLOCK = 1 << 16  # pairs whose sentences are in memory


def check_jsonl(path: Place) -> None:
    """Refuse a name that is not that of JSON lines.

    Raises:
        ValueError: it does not end in .jsonl.
    """
    if path.suffix != ".jsonl":
        raise ValueError(f"{path}: these pairs are written as JSON lines; name it .jsonl")


def write_jsonl(
    run: Run,
    path: Place,
    places: NDArray[np.int64],
    figures: Mapping[str, NDArray[np.float64]],
) -> None:
    """Write the pairs at ``places`` in that order, with figures (P,) of each, ids and texts.

    Raises:
        OutputError: the file cannot be written.
    """
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for start in range(0, len(places), BLOCK):
            block = places[start : start + BLOCK]
            sides = (
                (run.source, run.pairs.source[block]),
                (run.target, run.pairs.target[block]),
            )
            merged = run.options.get("alignment") == MONOTONE
            sentences = [
                column
                for side, rows in sides
                for column in (
                    side.pair_ids(rows) if merged else side.all_ids(rows),
                    side.pair_texts(rows),
                )
            ]
            numbers = [values[block].tolist() for values in figures.values()]
            for values, one, text, other, translation in zip(
                zip(*numbers, strict=True), *sentences, strict=True
            ):
                texts = {"source_text": text, "target_text": translation}
                repeats = {"source_duplicates": one[1:], "target_duplicates": other[1:]}
                record = {
                    **dict(zip(figures, values, strict=True)),
                    **(
                        {"source_ids": one, "target_ids": other, **texts}
                        if merged
                        else {"source_id": one[0], "target_id": other[0], **texts, **repeats}
                    ),
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
