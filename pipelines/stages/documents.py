"""The rows that ``--scope document`` compares: those of the documents in its list."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from miner.storage.corpus.document_pairs import read_document_pairs
from miner.storage.layout import SOURCE
from miner.storage.places import Place, file_state
from pipelines.options import MiningOptions
from pipelines.references import EmbeddedShard, Shard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]

READ_ROWS = 32_768


@dataclass(frozen=True, kw_only=True)
class DocumentPairs:
    """The list, by source document, and the digest of its file."""

    targets: Mapping[str, Sequence[str]]
    digest: str


def document_pairs(options: MiningOptions) -> DocumentPairs:
    """Return the list of document pairs, read once in each process.

    Raises:
        CorpusError: it cannot be read.
    """
    assert options.document_pairs is not None
    return _read_once(options.document_pairs, *file_state(options.document_pairs))


@cache
def _read_once(path: Place, *state: int) -> DocumentPairs:
    targets: dict[str, list[str]] = {}
    for source, target in read_document_pairs(path):
        targets.setdefault(source, []).append(target)
    return DocumentPairs(targets=targets, digest=hashlib.sha256(path.read_bytes()).hexdigest())


def check_documents(options: MiningOptions, side: str, shards: Sequence[Shard]) -> None:
    """Refuse a corpus that has none of the listed documents, before it is encoded.

    Raises:
        ValueError: that is so.
    """
    targets = document_pairs(options).targets
    listed = targets if side == SOURCE else {name for names in targets.values() for name in names}
    wanted = pa.array(listed, pa.string())
    docs = (batch["doc"] for shard in shards for batch in shard.batches(["doc"], READ_ROWS))
    if not any(pc.any(pc.is_in(column, wanted)).as_py() for column in docs):
        raise ValueError(
            f"{options.side(side).path}: no sentence of it is in a document that "
            f"{options.document_pairs} lists for the {side}; give records with id, document and "
            "text, and the list in the order of the corpora"
        )


def paired_rows(
    options: MiningOptions, source: EmbeddedShard, target: EmbeddedShard
) -> list[tuple[Positions, Positions]]:
    """Return the positions of their vectors for each pair of documents that both shards have."""
    own, others = _by_document(source), _by_document(target)
    targets = document_pairs(options).targets
    return [
        (rows, others[name])
        for document, rows in own.items()
        for name in targets.get(document, ())
        if name in others
    ]


def _by_document(embedded: EmbeddedShard) -> dict[str, Positions]:
    docs = embedded.docs().dictionary_encode()
    indices = docs.indices.to_numpy()
    order = np.argsort(indices, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(indices, minlength=len(docs.dictionary)))[:-1])
    return dict(zip(docs.dictionary.to_pylist(), parts, strict=True))
