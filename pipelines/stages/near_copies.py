"""The stage of ``--near-duplicates``: of the pairs, those that are no near-copy of a better one."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.near_copies import HASHES, HELD_BYTES, SIMILARITY, near_copies, signatures
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, REJECTED, SIDES
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.references import ChosenPairs
from pipelines.stages.export import completed_pairs, pair_meter

MIN_HELD = 1 << 16


def drop_near_copies(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Leave out the near-copies of better pairs; seals ``distinct``.

    Without ``options.near_duplicates`` the pairs stay as they are.
    """
    if not run.options.near_duplicates:
        return chosen
    key = content_key(
        "near copies",
        pairs=sorted(chosen.pairs.files.items()),
        sentences=[found.shard.digest for found in chosen.shards],
        similarity=SIMILARITY,
    )
    pairs = produce(run.folder.distinct, key=key, write=partial(_write, run, chosen))
    return replace(chosen, pairs=pairs)


def _write(run: RunContext, chosen: ChosenPairs, draft: Draft) -> Mapping[str, Any]:
    with draft.scratch() as scratch:
        found = _signatures(run, chosen, scratch / "signatures")
        copies = near_copies(found, held=max(MIN_HELD, spare_bytes(run.options) // HELD_BYTES))
    start = 0
    with (
        pq.ParquetFile(chosen.pairs.file(PAIRS)) as pairs,
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, pairs.schema_arrow) as kept,
    ):
        for batch in pairs.iter_batches():
            kept.write_batch(batch.filter(pa.array(~copies[start : start + len(batch)])))
            start += len(batch)
    if REJECTED in chosen.pairs.files:
        with draft.file(REJECTED) as beside:
            shutil.copyfile(chosen.pairs.file(REJECTED), beside)
    left_out = int(copies.sum())
    facts = chosen.pairs.facts
    return {**facts, "pairs": facts["pairs"] - left_out, "near_copies": left_out}


def _signatures(run: RunContext, chosen: ChosenPairs, path: Path) -> NDArray[np.uint32]:
    """Write the signatures of the pairs, uint32 (P, HASHES), and map them into memory."""
    with pair_meter(run, chosen, PAIRS, "near copies") as meter, path.open("wb") as file:
        for table in completed_pairs(run, chosen, PAIRS):
            texts = [table[f"{side}_text"].to_pylist() for side in SIDES]
            file.write(signatures(*texts).data)
            meter.advance(len(table))
    if not path.stat().st_size:
        return np.empty((0, HASHES), np.uint32)
    return np.memmap(path, dtype=np.uint32, mode="r").reshape(-1, HASHES)
