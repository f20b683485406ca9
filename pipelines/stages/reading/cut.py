"""How a side is cut into shards: evenly, or as before where its corpus has only grown.

No result depends on the cut, so it may remember: the shards of a corpus to which something was
added at its end stay as they were, with all that was made of them, and what is new makes new ones.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any

from miner.storage.atomic import write_text
from miner.storage.places import Place, file_state
from pipelines.context import RunContext

HASH_BYTES = 1 << 20


def shard_sizes(
    run: RunContext, side: str, files: Sequence[Place], count_kept: Callable[[], int]
) -> Iterator[int]:
    """Yield how many sentences each shard is to have, one after the other without end.

    ``count_kept`` counts the sentences of the side; it is called only if the cut depends on it.
    """
    options, most = run.options, run.options.rows_per_shard
    if before := _cut_before(run, side, files):
        return chain(before, repeat(min(most, max(before)) if options.shards else most))
    if (shards := options.shards or options.workers) == 1:
        return repeat(most)
    rows = count_kept()
    shards = max(1, min(rows, max(shards, -(-rows // most))))
    sizes = [(index + 1) * rows // shards - index * rows // shards for index in range(shards)]
    return chain(sizes, repeat(most))


def remember_cut(
    run: RunContext, side: str, files: Sequence[Place], digests: Sequence[str], sizes: list
) -> None:
    """Note how the side was cut, for when it has grown."""
    inputs = [[file.stat().st_size, digest] for file, digest in zip(files, digests, strict=True)]
    cut = {"asked": _asked(run, side), "inputs": inputs, "sizes": sizes}
    write_text(run.folder.cut(side), json.dumps(cut))


def _cut_before(run: RunContext, side: str, files: Sequence[Place]) -> list[int]:
    """Return the sizes of the shards that there are, if the corpus begins with all of them."""
    path = run.folder.cut(side)
    if not path.exists():
        return []
    cut: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    begun = zip(files, cut["inputs"], strict=False)
    is_same = cut["asked"] == _asked(run, side) and len(cut["inputs"]) <= len(files)
    if is_same and all(digest_of_beginning(file, size) == own for file, (size, own) in begun):
        return cut["sizes"]
    return []


def digest_of(path: Place) -> str:
    """Return a file's SHA-256, found once in each process; "" if it cannot be read."""
    return _digest_once(path, *file_state(path))


@cache
def _digest_once(path: Place, *state: int) -> str:
    return digest_of_beginning(path, state[1])


def digest_of_beginning(path: Place, size: int) -> str:
    """Return the SHA-256 of a file's first ``size`` bytes, or of all; "" if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while size > 0 and (block := stream.read(min(size, HASH_BYTES))):
                digest.update(block)
                size -= len(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _asked(run: RunContext, side: str) -> list[object]:
    """Return what makes for another cut of the same corpus."""
    options, corpus = run.options, run.options.side(side)
    shards, rows = options.shards, options.rows_per_shard
    asked = (shards, rows, options.keeps_repeats, options.scope, corpus.input_format)
    return [*asked, corpus.escapes] if corpus.escapes else [*asked]
