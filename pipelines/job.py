"""What a run mines: two corpora, or pairs of many, each of which is read and encoded once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from miner.storage.layout import SIDES
from pipelines.options import MiningOptions

WHOLE = ""  # the part that is a whole job


class Of(NamedTuple):
    """A reference, and the part of a job that it belongs to."""

    part: str
    reference: Any


@dataclass(frozen=True, kw_only=True)
class Job:
    """The parts of a run by name; ``pairs`` are mined.

    ``corpora`` are the parts whose corpora are read, each with the side that it has there.
    """

    parts: Mapping[str, MiningOptions]
    corpora: Sequence[Of]
    pairs: Sequence[str]

    @property
    def working(self) -> list[str]:
        """The parts that something is done for: corpora are read for them, or they are mined."""
        return list(dict.fromkeys([*(part for part, _ in self.corpora), *self.pairs]))

    @property
    def whole(self) -> MiningOptions:
        """The options of the whole run."""
        return self.parts[WHOLE]

    def fixed(self, **changes: object) -> "Job":
        """Return the same job with some options of all its parts decided."""
        parts = {name: replace(part, **changes) for name, part in self.parts.items()}  # type: ignore[arg-type]
        return replace(self, parts=parts)


def job_of(options: MiningOptions) -> Job:
    """Return the job of mining two corpora: a single part."""
    return Job(parts={WHOLE: options}, corpora=[Of(WHOLE, side) for side in SIDES], pairs=[WHOLE])
