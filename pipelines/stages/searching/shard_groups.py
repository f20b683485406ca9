"""Shard groups: a search tile is a group of source shards by a group of target shards.

Each tile has a list of neighbours for every row of its groups, so their number decides how much
disk the lists take: one shard a group until there are ``MAX_GROUPS`` of a side, more past that. No
result depends on them, so a work folder remembers them: the groups of a side to which something
was added stay as they were, and what is new makes new ones.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from miner.storage.atomic import atomic_file
from pipelines.context import RunContext

MAX_GROUPS = 32


def group_sizes(shards: int, before: Sequence[int] = ()) -> list[int]:
    """Return how many shards each group of a side has; groups that there were come first.

    Those of another, larger side are of no use to it.
    """
    sizes = list(before) if sum(before) <= shards else []
    length = -(-shards // MAX_GROUPS)
    while sum(sizes) < shards:
        sizes.append(min(length, shards - sum(sizes)))
    return sizes


def group_shards(run: RunContext, shards: Mapping[str, int]) -> dict[str, list[range]]:
    """Return the groups of both sides, as indices of their shards, and remember them."""
    path = run.folder.groups
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sizes = {side: group_sizes(count, before.get(side, ())) for side, count in shards.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(sizes), encoding="utf-8")
    return {
        side: [range(*ends) for ends in pairwise(accumulate(cut, initial=0))]
        for side, cut in sizes.items()
    }
