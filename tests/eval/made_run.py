"""Work folders of runs that were never mined: made of arrays, in as many shards as asked for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.arrays import Neighbours, Pairs
from miner.storage.artefacts import Draft, produce
from miner.storage.layout import (
    DUPLICATES,
    PAIRS,
    ROWS,
    SIDES,
    VECTORS,
    WorkFolder,
    list_files,
    shard_file,
    shard_name,
)
from miner.storage.pair_tables import table_of

OPTIONS = {
    **{"k": 4, "margin": "ratio", "retrieval": "max", "threshold": None, "index": "exact"},
    **{"scope": "corpus", "margin_scope": None, "score": "margin", "encoder": "mini"},
    "filters": (),
}


def seal(folder: Path, files: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    def write(draft: Draft) -> Mapping[str, Any]:
        for name, content in files.items():
            if isinstance(content, np.ndarray):
                draft.array(name, content)
            else:
                with draft.file(name) as path:
                    pq.write_table(content, path, row_group_size=1000)
        return facts

    produce(folder, key="made", write=write)


def make_side(
    work: WorkFolder, side: str, texts: list[str], lists: Neighbours, *, shards: int
) -> None:
    """Sentence i stands in row 2 i; that of row 0 is repeated under the id ``again``."""
    parts = np.array_split(np.arange(len(texts)), shards)
    tables = {
        shard_file(index): pa.table(
            {
                "row": 2 * part,
                "id": [f"{side}-{row}" for row in part],
                "doc": [""] * len(part),
                "text": [texts[row] for row in part],
            }
        )
        for index, part in enumerate(parts)
    }
    again = pa.table({"row": [1], "id": ["again"], "first_row": [0]})
    seal(
        work.sentences(side),
        {**tables, DUPLICATES: again},
        {"shards": [len(part) for part in parts]},
    )
    for index, part in enumerate(parts):
        name = shard_name(side, index)
        vectors = np.eye(4, dtype=np.float16)[part % 4]
        seal(work.embeddings(side, index), {ROWS: 2 * part, VECTORS: vectors}, {})
        ids, cosines = list_files(side)
        found = {ids: 2 * lists.ids[part], cosines: lists.cosines[part]}
        seal(work.neighbours(name, "corpus"), found, {})


def make_run(folder: Path, texts: Mapping[str, list[str]], pairs: Pairs, *, shards: int) -> Path:
    """Make a run of which ``pairs`` have the sentences of rows of ``texts``, with random lists."""
    work, random = WorkFolder(folder), np.random.default_rng(7)
    summary: dict[str, Any] = {
        "options": OPTIONS,
        "encoder": "none",
        "version": "0",
        "signature": "pairs|k:4|v:0",
        "written": "pairs",
    }
    summary |= {"pairs": len(pairs), "candidates": 4 * len(pairs)}
    for side in SIDES:
        rows = len(texts[side])
        ids: NDArray[np.int64] = random.integers(rows, size=(rows, 4))
        cosines = np.sort(random.random((rows, 4), dtype=np.float32))[:, ::-1]
        make_side(work, side, texts[side], Neighbours(ids=ids, cosines=cosines), shards=shards)
        counts = {"path": "x", "read": rows, "rejected": {}, "dropped": {}, "duplicates": 0}
        summary[side] = counts | {"searched": rows}
    seal(work.pairs, {PAIRS: table_of(pairs)}, {})
    work.summary.write_text(json.dumps(summary))
    return folder


def random_pairs(rows: int) -> Pairs:
    """Pair every sentence with a random one of the other side."""
    random = np.random.default_rng(7)
    scores = np.sort(random.random(rows))[::-1]
    return Pairs(
        source=2 * np.arange(rows),
        target=2 * random.permutation(rows),
        score=scores,
        cosine=scores.astype(np.float32),
        source_mean=scores,
        target_mean=scores,
        rank=np.ones(rows, dtype=np.int32),
        direction=np.full(rows, 3, dtype=np.int8),
    )
