"""How the search is cut into tiles: strips of source shards by strips of target shards.

Each tile has a list of neighbours for every row of its strips, so their number decides how much
disk the lists take: one shard a strip until there are ``MOST_STRIPS`` of a side, longer ones past
that. No result depends on them, so a work folder remembers them: the strips of a side to which
something was added stay as they were, and what is new makes new ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from miner.storage.atomic import atomic_file
from miner.storage.places import Place
from pipelines.options import MiningOptions

MOST_STRIPS = 32


def strip_sizes(shards: int, before: Sequence[int] = ()) -> list[int]:
    """How many shards each strip of a side has, the ones that there were first.

    Those of another, larger side are of no use to it.
    """
    sizes = list(before) if sum(before) <= shards else []
    length = strip_length(shards)
    while sum(sizes) < shards:
        sizes.append(min(length, shards - sum(sizes)))
    return sizes


def strip_length(shards: int) -> int:
    """The shards of a strip where a side has so many."""
    return -(-shards // MOST_STRIPS)


def cut_strips(options: MiningOptions, shards: Mapping[str, int]) -> dict[str, list[range]]:
    """The strips of both sides, as indices of their shards; remembers them."""
    path = _path(options)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sizes = {side: strip_sizes(count, before.get(side, ())) for side, count in shards.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(sizes), encoding="utf-8")
    return {
        side: [range(*ends) for ends in pairwise(accumulate(cut, initial=0))]
        for side, cut in sizes.items()
    }


def _path(options: MiningOptions) -> Place:
    return options.work_dir / "tiles" / "strips.json"
