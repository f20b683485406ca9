"""Search methods, each a type, parsed from the value of ``--index``."""

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

# 316,000 sentences per side. Cells have a best F1 of 95.0 instead of 95.4 at 300,000, and take a
# tenth of the time at a million.
EXACT_SIMILARITIES = 10**11
# Fewer probes of fewer cells have the same recall at a higher cost: of a million sentences per side
# 94% by 6 of 2,048 or by 7 of 4,096 cells, which cost 2.1% and 1.5% of all products.
PROBES = 7
# Of k-means. More points or rounds change recall by less than the choice of seed does.
POINTS = 48  # per cell
ROUNDS = 3
AUTO = "auto"


@dataclass(frozen=True)
class Exact:
    """Exact search of each row among all rows of the other side."""

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class PairedDocuments:
    """Exact search among the rows of paired documents."""


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """Search among rows that share a cell.

    There are about ``count`` cells, or if it is None, as ``default_cells`` says. A row is in its
    nearest ones, about ``probes`` on average.
    """

    count: int | None = None
    probes: int = PROBES

    def __str__(self) -> str:
        probes = "" if self.probes == PROBES else f":probes={self.probes}"
        return f"cells{self.count or ''}{probes}"


@dataclass(frozen=True, kw_only=True)
class IndexSpec:
    """Search in FAISS indexes with the factory string ``factory``.

    As text, it is ``FACTORY`` or ``FACTORY:NAME=NUMBER,...``. The parameters ``build`` change the
    index, and ``search`` only its results. Both are ``NAME=NUMBER,...`` or empty.
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
    """Parse the name of a search method.

    ``exact`` gives ``Exact``, and ``cells``, ``cells4096`` and ``cells4096:probes=8`` a
    ``CellSpec``. Any other text, even ``auto``, gives an ``IndexSpec``, unchecked, with parameters
    in ``search``, except for ``efConstruction``, which is in ``build``.

    Raises:
        ValueError: The text begins with ``cells`` and is not such a name.
    """
    if text == "exact":
        return Exact()
    if text.startswith("cells"):
        match = re.fullmatch(r"cells([1-9]\d{0,8})?(?::probes=([1-9]\d{0,4}))?", text)
        if not match:
            raise ValueError(
                f"--index {text!r}: is malformed; write cells, cells4096 or cells4096:probes=8"
            )
        count, probes = match.groups()
        return CellSpec(count=int(count) if count else None, probes=int(probes or PROBES))
    factory, _, parameters = text.partition(":")
    given = [parameter for parameter in parameters.split(",") if parameter]
    build = [parameter for parameter in given if "efConstruction" in parameter]
    search = [parameter for parameter in given if parameter not in build]
    return IndexSpec(factory=factory, build=",".join(build), search=",".join(search))


def auto_method(sources: int, targets: int) -> CorpusMethod:
    """Return ``Exact`` up to 10**11 similarities, or else a ``CellSpec``."""
    return Exact() if sources * targets <= EXACT_SIMILARITIES else CellSpec()


def default_cells(rows: int) -> int:
    """Return the number of cells if the larger side has ``rows`` rows.

    It is a power of two of about ``PROBES`` * sqrt(``rows``) / 2, at most ``rows``, but at least 1.
    """
    even = round(math.log2(max(1.0, PROBES / 2 * math.sqrt(rows))))
    return 1 << max(0, min(even, rows.bit_length() - 1))
