"""Select the rows of paired documents for ``--scope document``."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from miner.arrays import IntArray
from miner.storage.artefacts import open_artefact
from miner.storage.corpus.reader import read_document_pairs
from miner.storage.layout import DOCUMENT_PAIRS, SOURCE
from miner.storage.places import Place, file_state
from pipelines.context import RunContext
from pipelines.references import EmbeddedShard, Shard
from pipelines.stages.reading.cut import digest_of


class DocumentPairs(NamedTuple):
    """Names of target documents by source document, and their file's SHA-256."""

    targets: Mapping[str, Sequence[str]]
    digest: str


def document_pairs(run: RunContext) -> DocumentPairs:
    """Return the document pairs that the user gave, or that the run found.

    An empty, malformed or not yet made list raises ValueError, an unreadable one OSError.
    """
    path = run.options.document_pairs
    if path is None:
        path = open_artefact(run.folder.document_pairs).file(DOCUMENT_PAIRS)
    return _read_once(path, *file_state(path))


def one_to_one_pairs(run: RunContext) -> list[tuple[str, str]]:
    """Return the names of paired documents, (source, target), as listed.

    Raises:
        ValueError: A document is in several pairs. Errors of ``document_pairs`` are also raised.
    """
    targets = document_pairs(run).targets
    pairs = [(source, target) for source, names in targets.items() for target in names]
    for names in zip(*pairs, strict=True):
        [(name, count)] = Counter(names).most_common(1)
        if count > 1:
            raise ValueError(
                f"{run.options.document_pairs}: document {name!r} is in {count} pairs; "
                "--alignment monotone requires each document once, so keep one pair"
            )
    return pairs


@cache
def _read_once(path: Place, *state: int) -> DocumentPairs:
    targets: dict[str, list[str]] = {}
    for source, target in read_document_pairs(path):
        targets.setdefault(source, []).append(target)
    return DocumentPairs(targets=targets, digest=digest_of(path))


def check_documents(run: RunContext, side: str, shards: Sequence[Shard]) -> None:
    """Check that a side has documents that can be paired.

    Raises:
        ValueError: No sentence is in a document or, if the user gave a list, in a document of it.
            Errors of ``document_pairs`` and, if monotone, ``one_to_one_pairs`` are also raised.
    """
    listed, path = run.options.document_pairs, run.options.side(side).path
    if listed is None:
        if not _any_document(shards, lambda docs: pc.not_equal(docs, "")):
            raise ValueError(
                f"{path}: no sentence belongs to a document; pass raw documents (for .txt with "
                "--input-format documents), or records with doc and text"
            )
        return
    if run.options.is_monotone:
        one_to_one_pairs(run)  # raises before hours of search
    targets = document_pairs(run).targets
    names = targets if side == SOURCE else {name for group in targets.values() for name in group}
    listed_names = pa.array(names, pa.string())
    if not _any_document(shards, lambda docs: pc.is_in(docs, listed_names)):
        raise ValueError(
            f"{path}: contains no {side} document of {listed}; pass records with id, doc and text "
            "whose doc is in the list, and a list with source documents first"
        )


def _any_document(shards: Sequence[Shard], is_wanted: Callable[[pa.Array], pa.Array]) -> bool:
    docs = (batch["doc"] for shard in shards for batch in shard.batches(["doc"]))
    return any(pc.any(is_wanted(column)).as_py() for column in docs)


def paired_rows(
    run: RunContext, source: EmbeddedShard, target: EmbeddedShard
) -> list[tuple[IntArray, IntArray]]:
    """Return each document pair's positions of vectors in both shards.

    They are int64, ascending. Pairs without both are omitted. Errors are of ``document_pairs``.
    """
    source_rows, target_rows = rows_by_document(source), rows_by_document(target)
    targets = document_pairs(run).targets
    return [
        (rows, target_rows[name])
        for document, rows in source_rows.items()
        for name in targets.get(document, ())
        if name in target_rows
    ]


def rows_by_document(embedded: EmbeddedShard) -> dict[str, IntArray]:
    """Return each named document's positions of vectors, int64, ascending."""
    by_name = positions_by_value(embedded.docs())
    by_name.pop("", None)  # sentences without a document
    return by_name


def positions_by_value(texts: pa.StringArray) -> dict[str, IntArray]:
    """Return the ascending positions, int64, of each distinct text, by text."""
    values = texts.dictionary_encode()
    indices = values.indices.to_numpy()
    order = np.argsort(indices, kind="stable")
    ends = np.cumsum(np.bincount(indices, minlength=len(values.dictionary)))
    parts = np.split(order, ends)[:-1]  # the rest after the last end is empty
    return dict(zip(values.dictionary.to_pylist(), parts, strict=True))
