"""References to shards of sentences, which are what the graph's stages hand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from miner.storage.artefacts import Artefact

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

Reference = TypeVar("Reference")


def shard_file(index: int) -> str:
    """The name of a shard's sentences in its side's artefact."""
    return f"{index:05d}.parquet"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A run of consecutive sentences of one side: file ``index`` of that side's read artefact.

    ``rows`` sentences are in it.
    """

    side: str
    index: int
    rows: int
    corpus: Artefact

    @property
    def name(self) -> str:
        """``side/index``: its place in the folders of the later stages."""
        return f"{self.side}/{self.index:05d}"

    @property
    def digest(self) -> str:
        """SHA-256 of its sentences file."""
        return self.corpus.files[shard_file(self.index)]

    def read(self, columns: list[str]) -> pa.Table:
        """Columns of its sentences: ``row``, ``id``, ``doc``, ``text``."""
        import pyarrow.parquet as pq

        return pq.read_table(self.corpus.file(shard_file(self.index)), columns=columns)

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """The same, at most ``rows`` sentences at a time."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.corpus.file(shard_file(self.index))) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)

    def text_bytes(self) -> int:
        """About how many bytes its sentences take in memory."""
        import pyarrow.parquet as pq

        metadata = pq.read_metadata(self.corpus.file(shard_file(self.index)))
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        return sum(group.total_byte_size for group in groups)

    def row_ids(self) -> NDArray[np.int64]:
        """The rows of its sentences in the corpus, ascending."""
        rows: NDArray[np.int64] = self.read(["row"])["row"].to_numpy()
        return rows


def whole_side(
    references: Iterable[Reference], side: str, shard_of: Callable[[Reference], Shard]
) -> list[Reference]:
    """The references to a side's shards, one to each, in the order of these.

    Raises:
        ValueError: there are more or fewer; the runner has repeated or lost some.
    """
    found = sorted(
        (reference for reference in references if shard_of(reference).side == side),
        key=lambda reference: shard_of(reference).index,
    )
    expected = shard_of(found[0]).corpus.facts["shards"] if found else 1
    check_whole([shard_of(reference).index for reference in found], expected, side)
    return found


def check_whole(found: Sequence[int], expected: int, side: str) -> None:
    """Check that the ascending indices are those of all shards of a side, each once.

    Raises:
        ValueError: they are not; the runner has repeated or lost some.
    """
    if list(found) != list(range(expected)):
        raise ValueError(
            f"--runner: it has handed on {len(found)} references to the {expected} {side} shards, "
            "where there should be one to each; use another runner"
        )
