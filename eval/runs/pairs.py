"""Pairs of a finished run, written again with what was found out about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from eval.runs.store import Run
from miner.storage.atomic import atomic_file
from miner.storage.places import Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def check_jsonl(path: Place) -> None:
    """Refuse a name that is not that of JSON lines.

    Raises:
        ValueError: it does not end in .jsonl.
    """
    if path.suffix != ".jsonl":
        raise ValueError(f"{path}: these pairs are written as JSON lines; name it .jsonl")


def write_jsonl(
    run: Run, path: Place, places: Iterable[int], figures: Mapping[str, NDArray[np.float64]]
) -> None:
    """Write the pairs at ``places`` in that order, with figures (P,) of each, ids and texts.

    Raises:
        OutputError: the file cannot be written.
    """
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for place in places:
            source, target = int(run.pairs.source[place]), int(run.pairs.target[place])
            record = {
                **{name: float(values[place]) for name, values in figures.items()},
                "source_id": run.source.id(source),
                "target_id": run.target.id(target),
                "source_text": run.source.text(source),
                "target_text": run.target.text(target),
                "source_duplicates": list(run.source.all_ids(source)[1:]),
                "target_duplicates": list(run.target.all_ids(target)[1:]),
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
