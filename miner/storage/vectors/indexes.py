"""FAISS indexes on disk, mapped into memory where they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import ArtefactError, Draft

if TYPE_CHECKING:
    import faiss


def save_index(draft: Draft, name: str, index: faiss.Index) -> None:
    """Write an index as a file of an artefact.

    Raises:
        OSError: the file cannot be written.
    """
    import faiss

    untyped: Any = faiss  # its stubs lack the writer
    # Through Python, whose errors say what the operating system said.
    with draft.file(name) as path, path.open("wb") as stream:
        faiss.write_index(index, untyped.PyCallbackIOWriter(stream.write))


def load_index(path: Path) -> faiss.Index:
    """Read an index whole, so that vectors can be added to it.

    Raises:
        ArtefactError: this version of FAISS cannot read the file.
    """
    return _read(path, flags=0)


def map_index(path: Path) -> faiss.Index:
    """Open an index to be searched: what a search does not visit is never read from disk.

    Raises:
        ArtefactError: this version of FAISS cannot read the file.
    """
    import faiss

    return _read(path, flags=faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY)


def _read(path: Path, *, flags: int) -> faiss.Index:
    import faiss

    try:
        return faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise ArtefactError(
            f"{path} cannot be read by FAISS {faiss.__version__}; "
            f"remove the folder {path.parent} to make it again"
        ) from error
