"""FAISS indexes on disk, which are mapped into memory for searches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import ArtefactError, Draft

if TYPE_CHECKING:
    import faiss


def save_index(draft: Draft, name: str, index: faiss.Index) -> None:
    """Write a FAISS index as the file ``name`` of an artefact's draft."""
    import faiss

    untyped: Any = faiss  # its stubs lack the writer
    # Through Python, whose errors include the operating system's message.
    with draft.file(name) as path, path.open("wb") as stream:
        faiss.write_index(index, untyped.PyCallbackIOWriter(stream.write))


def read_index(path: Path, *, mapped: bool) -> faiss.Index:
    """Read a FAISS index from a file.

    If ``mapped``, it is read-only, and a search reads only the parts of the file that it visits.
    Otherwise, it is read completely, and vectors can be added.

    Raises:
        ArtefactError: FAISS cannot open or read the file.
    """
    import faiss

    try:
        flags = faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY if mapped else 0
        return faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise ArtefactError(
            f"{path}: cannot be read by FAISS {faiss.__version__}; delete the folder {path.parent} "
            "to rebuild it"
        ) from error
