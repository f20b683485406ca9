"""How a search is done: each method a type, parsed once from what ``--index`` is given."""

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

# Past this many similarities (a million sentences a side) exact search takes hours on a laptop.
EXACT_SIMILARITIES = 10**12
# Fewer probes of fewer cells find as much at a higher cost: of a million sentences a side 94 % by 6
# of 2,048 and 7 of 4,096 cells, which cost 2.1 and 1.5 % of all products.
PROBES = 7
# Points for each cell that k-means is trained on, and its rounds; more move recall by less than the
# choice of seed does.
POINTS, ROUNDS = 48, 3
AUTO = "auto"


@dataclass(frozen=True)
class Exact:
    """Compare every row with every row of the other side."""

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class PairedDocuments:
    """Compare the rows of documents that are paired."""


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """Compare rows that share one of ``count`` cells (None: the default): each is in ``probes``."""

    count: int | None = None
    probes: int = PROBES

    def __str__(self) -> str:
        probes = "" if self.probes == PROBES else f":probes={self.probes}"
        return f"cells{self.count or ''}{probes}"


@dataclass(frozen=True, kw_only=True)
class IndexSpec:
    """Ask FAISS indexes: ``FACTORY`` or ``FACTORY:NAME=NUMBER,...``.

    ``build`` are the parameters that change the index, ``search`` those that change only what is
    found in it; both in the syntax of FAISS's ``ParameterSpace``, empty for the defaults.
    """

    factory: str
    build: str = ""
    search: str = ""

    def __str__(self) -> str:
        parameters = ",".join(part for part in (self.build, self.search) if part)
        return f"{self.factory}:{parameters}" if parameters else self.factory


CorpusMethod: TypeAlias = Exact | CellSpec | IndexSpec
Method: TypeAlias = CorpusMethod | PairedDocuments


def parse_method(text: str) -> CorpusMethod:
    """Return the method that ``exact``, ``cells...`` or a FAISS factory string asks for.

    A ValueError names a cell join that there is not. Whether FAISS knows the string is for
    ``miner.knn.faiss_index.check_index`` to say.
    """
    if text == "exact":
        return Exact()
    if text.startswith("cells"):
        match = re.fullmatch(r"cells([1-9]\d{0,8})?(?::probes=([1-9]\d{0,4}))?", text)
        if not match:
            raise ValueError(
                f"index {text!r} is not a cell join; write 'cells', 'cells4096' or "
                "'cells4096:probes=8'"
            )
        count, probes = match.groups()
        return CellSpec(count=int(count) if count else None, probes=int(probes or PROBES))
    factory, _, parameters = text.partition(":")
    given = [parameter for parameter in parameters.split(",") if parameter]
    build = [parameter for parameter in given if "efConstruction" in parameter]
    search = [parameter for parameter in given if parameter not in build]
    return IndexSpec(factory=factory, build=",".join(build), search=",".join(search))


def auto_method(sources: int, targets: int) -> CorpusMethod:
    """Return the method that suits so many sentences: exact, while it takes hours at most."""
    return Exact() if sources * targets <= EXACT_SIMILARITIES else CellSpec()


def default_cells(rows: int) -> int:
    """Return how many cells suit a larger side of so many rows: a power of two.

    It is near p sqrt(rows) / 2, and no more than there are rows. Assignment costs C (N + M)
    products and the join, whose cells are uneven, 1.5 p * p * N * M / C: equal at 0.9 p sqrt(rows).
    Training, 7 * POINTS * C * C products, has all workers wait.
    """
    even = round(math.log2(max(1.0, PROBES / 2 * math.sqrt(rows))))
    return 1 << max(0, min(even, rows.bit_length() - 1))
