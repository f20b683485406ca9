"""Cut a side into shards, evenly or as in a run of a smaller corpus."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any

from miner.storage.artefacts import read_json
from miner.storage.atomic import write_text
from miner.storage.places import Place, file_state
from pipelines.context import RunContext

HASH_BYTES = 1 << 20


def shard_sizes(
    run: RunContext, side: str, files: Sequence[Place], count_kept: Callable[[], int]
) -> Iterator[int]:
    """Yield the maximum number of sentences of each shard, without end.

    Numbers are ``rows_per_shard`` or, for ``shards`` or several ``workers``, even and at most that.
    If ``files`` only grew since a run with the same options, they begin as in that run, with errors
    of ``read_json`` for its stored sizes. ``count_kept`` counts the sentences, only if needed.
    """
    options, maximum = run.options, run.options.rows_per_shard
    if earlier := _cut_before(run, side, files):
        return chain(earlier, repeat(min(maximum, max(earlier)) if options.shards else maximum))
    if (shards := options.shards or options.workers) == 1:
        return repeat(maximum)
    rows = count_kept()
    shards = max(1, min(rows, max(shards, -(-rows // maximum))))
    sizes = [(index + 1) * rows // shards - index * rows // shards for index in range(shards)]
    return chain(sizes, repeat(maximum))


def remember_cut(
    run: RunContext, side: str, files: Sequence[Place], digests: Sequence[str], sizes: list
) -> None:
    """Store a side's ``sizes`` of shards and files' SHA-256, for later runs."""
    inputs = [[file.stat().st_size, digest] for file, digest in zip(files, digests, strict=True)]
    cut = {"asked": _cut_options(run, side), "inputs": inputs, "sizes": sizes}
    write_text(run.folder.cut(side), json.dumps(cut))


def _cut_before(run: RunContext, side: str, files: Sequence[Place]) -> list[int]:
    path = run.folder.cut(side)
    if not path.exists():
        return []
    cut: dict[str, Any] = read_json(path)
    inputs = zip(files, cut["inputs"], strict=False)
    is_same = cut["asked"] == _cut_options(run, side) and len(cut["inputs"]) <= len(files)
    if is_same and all(digest_of_beginning(file, size) == sha for file, (size, sha) in inputs):
        return cut["sizes"]
    return []


def digest_of(path: Place) -> str:
    """Return a file's SHA-256 in hexadecimal, or "" if it is unreadable.

    It is cached until the file changes. Errors of ``file_state`` are raised (missing local file).
    """
    return _digest_once(path, *file_state(path))


@cache
def _digest_once(path: Place, *state: int) -> str:
    return digest_of_beginning(path, state[1])


def digest_of_beginning(path: Place, size: int) -> str:
    """Return the hex SHA-256 of up to ``size`` first bytes, "" if unreadable."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while size > 0 and (block := stream.read(min(size, HASH_BYTES))):
                digest.update(block)
                size -= len(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _cut_options(run: RunContext, side: str) -> list[object]:
    options, corpus = run.options, run.options.side(side)
    values = [options.shards, options.rows_per_shard, options.keeps_repeats, options.scope]
    return [*values, corpus.input_format, *([corpus.escapes] if corpus.escapes else [])]
