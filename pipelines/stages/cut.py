"""How a side is cut into shards: evenly, or as before where its corpus has only grown.

No result depends on the cut, so it may remember: the shards of a corpus to which something was
added at its end stay as they were, with all that was made of them, and what is new makes new ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from miner.storage.atomic import atomic_file
from miner.storage.places import Place
from pipelines.options import MiningOptions

HASH_BYTES = 1 << 20


def shard_sizes(
    options: MiningOptions, side: str, files: Sequence[Place], count_kept: Callable[[], int]
) -> Iterator[int]:
    """How many sentences each shard is to have, one after the other without end.

    ``count_kept`` counts the sentences of the side; it is called only if the cut depends on it.
    """
    most = options.rows_per_shard
    before = _cut_before(options, side, files)
    if before:
        return chain(before, repeat(min(most, max(before)) if options.shards else most))
    shards = options.shards or options.workers
    if shards == 1:
        return repeat(most)
    rows = count_kept()
    shards = max(1, min(rows, max(shards, -(-rows // most))))
    sizes = [(index + 1) * rows // shards - index * rows // shards for index in range(shards)]
    return chain(sizes, repeat(most))


def remember_cut(
    options: MiningOptions, side: str, files: Sequence[Place], digests: Sequence[str], sizes: list
) -> None:
    """Note how the side was cut, for when it has grown."""
    inputs = [[file.stat().st_size, digest] for file, digest in zip(files, digests, strict=True)]
    cut = {"asked": _asked(options, side), "inputs": inputs, "sizes": sizes}
    with atomic_file(_path(options, side)) as temporary:
        temporary.write_text(json.dumps(cut), encoding="utf-8")


def _cut_before(options: MiningOptions, side: str, files: Sequence[Place]) -> list[int]:
    """The sizes of the shards that there are, if the corpus begins with all that is in them."""
    path = _path(options, side)
    if not path.exists():
        return []
    cut: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    inputs: list[tuple[int, str]] = cut["inputs"]
    if cut["asked"] != _asked(options, side) or len(inputs) > len(files):
        return []
    begun = zip(files, inputs, strict=False)
    if all(digest_of_beginning(file, size) == digest for file, (size, digest) in begun):
        sizes: list[int] = cut["sizes"]
        return sizes
    return []


def digest_of_beginning(path: Place, size: int) -> str:
    """SHA-256 of a file's first ``size`` bytes, or of all that it has; "" if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while size > 0 and (block := stream.read(min(size, HASH_BYTES))):
                digest.update(block)
                size -= len(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _asked(options: MiningOptions, side: str) -> list[object]:
    """What makes for another cut of the same corpus."""
    corpus = options.side(side)
    shards, rows = options.shards, options.rows_per_shard
    return [shards, rows, options.keep_duplicates, options.scope, corpus.input_format]


def _path(options: MiningOptions, side: str) -> Place:
    return options.work_dir / "sentences" / f"{side}.cut.json"
