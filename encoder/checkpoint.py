"""An encoder on disk: a folder of ``config.json``, ``tokenizer.model`` and ``weights.safetensors``.

The vector table is stored as int8 with one float32 scale for each row. Nothing in the folder is
executed when it is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder.bag import BagEncoder

FORMAT = "adit-bag-1"
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.model", "weights.safetensors"


def quantize_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 with a scale for each row: (V, D) and (V,)."""
    scales = np.maximum(np.abs(table).max(axis=1), np.finfo(np.float32).tiny) / 127
    return np.rint(table / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def save_encoder(
    folder: Path, *, table: NDArray[np.float32], tokenizer_model: bytes, facts: Mapping[str, Any]
) -> None:
    """Write an encoder; an encoder that was in ``folder`` is replaced only by a whole new one.

    Args:
        folder: where; its parent must exist.
        table: subword vectors, float32 (V, D).
        tokenizer_model: serialised SentencePiece model of V pieces.
        facts: what to tell of its training, JSON values; kept in the config.
    """
    from safetensors.numpy import save_file

    quantized, scales = quantize_rows(table)
    config = {"format": FORMAT, "vocabulary": len(table), "dim": table.shape[1], "facts": facts}
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        save_file({"table": quantized, "scales": scales}, draft / WEIGHTS)
        (draft / TOKENIZER).write_bytes(tokenizer_model)
        text = json.dumps(config, indent=1, ensure_ascii=False, sort_keys=True)
        (draft / CONFIG).write_text(text + "\n", encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for name in (WEIGHTS, TOKENIZER, CONFIG):
            os.replace(draft / name, folder / name)
    finally:
        shutil.rmtree(draft)


def load_bag_encoder(folder: Path, *, name: str) -> BagEncoder:
    """Load an encoder that ``save_encoder`` wrote.

    Its name becomes ``name@`` and the first digits of a hash of its files, so that vectors of
    different trainings are never taken for one another.

    Raises:
        ValueError: a file is missing, damaged, or of another format.
    """
    from encoder.bag import BagEncoder
    from encoder.tokenizer import Tokenizer

    for file_name in (CONFIG, TOKENIZER, WEIGHTS):
        if not (folder / file_name).is_file():
            raise ValueError(
                f"encoder {folder}: {file_name} is missing; give a folder made by train-encoder"
            )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        found = config["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"encoder {folder}: {CONFIG} is not an encoder's configuration") from error
    if found != FORMAT:
        raise ValueError(f"encoder {folder}: format {found!r}; this version reads {FORMAT!r}")
    model, weights = (folder / TOKENIZER).read_bytes(), (folder / WEIGHTS).read_bytes()
    table = _read_table(folder, weights, shape=(config["vocabulary"], config["dim"]))
    try:
        tokenizer = Tokenizer(model)
    except RuntimeError as error:
        raise ValueError(f"encoder {folder}: {TOKENIZER} is not a SentencePiece model") from error
    digest = hashlib.sha256(model + weights).hexdigest()[:12]
    return BagEncoder(name=f"{name}@{digest}", tokenizer=tokenizer, table=table)


def _read_table(folder: Path, weights: bytes, *, shape: tuple[int, int]) -> NDArray[np.float32]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(weights)
        quantized, scales = tensors["table"], tensors["scales"]
    except (SafetensorError, KeyError) as error:
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} is damaged or holds no vector table; copy it again"
        ) from error
    if quantized.shape != shape or scales.shape != shape[:1]:
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} holds a table of shape {quantized.shape}; "
            f"{CONFIG} says {shape}"
        )
    return np.asarray(quantized * scales[:, None], dtype=np.float32)
