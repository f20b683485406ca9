"""An encoder on disk: a folder of ``config.json``, ``tokenizer.model`` and ``weights.safetensors``.

A bag's table is stored in 4 bits a number, with one float32 scale for each row, the rows of
n-grams last. The configuration holds a checksum of the other two files, so that damaged files, or
files of two trainings, are never taken for an encoder. Nothing is executed when it is loaded.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from encoder.bag.features import SCHEME
from encoder.rows import Matrix, pack
from encoder.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch

BAG_FORMAT = f"adit-bag-{SCHEME}"
SCHEMES = {"adit-bag-3": 3, "adit-bag-4": 4, BAG_FORMAT: SCHEME}  # of features, by format
# See encoder.trained: one network, and one for each language.
NETWORK_FORMAT, APART_FORMAT = "adit-network-1", "adit-networks-1"
FORMATS = (*SCHEMES, NETWORK_FORMAT, APART_FORMAT)
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.model", "weights.safetensors"
HEAD = "inference.safetensors"
ENCODER = "encoder"  # in a head's metadata: the checksum of the encoder that it is of

Facts = Mapping[str, Any]  # JSON values


def save_encoder(
    folder: Path, *, table: Matrix, ngram_rows: int = 0, tokenizer_model: bytes, facts: Facts
) -> None:
    """Write an encoder; one that was in ``folder`` is kept until the new one is written in full.

    ``table`` has the vectors of V pieces, then those of n-grams, float32 (V + ngram_rows, D);
    ``facts`` is what is known of its training, and is kept in the config.
    """
    packed = pack(table)
    config = {
        "format": BAG_FORMAT,
        "vocabulary": len(table) - ngram_rows,
        "ngram_rows": ngram_rows,
        "dim": table.shape[1],
        "facts": facts,
    }
    weights = save({"table": packed.codes, "scales": packed.scales})
    write_folder(folder, config, tokenizer_model, weights)


def write_folder(folder: Path, config: Facts, tokenizer_model: bytes, weights: bytes) -> None:
    """Write an encoder's files, and to the configuration their checksum."""
    whole = {**config, "sha256": _checksum(tokenizer_model, weights)}
    text = json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    contents = {TOKENIZER: tokenizer_model, WEIGHTS: weights, CONFIG: text.encode()}
    folder.mkdir(parents=True, exist_ok=True)
    replace_files(folder, contents)


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder, each under its name once all are written in full."""
    for left in folder.glob(".draft-*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    # Inside the folder, which may be a file system of its own: renaming does not cross them.
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder) as draft:
        for name, content in contents.items():
            try:
                (Path(draft) / name).write_bytes(content)
                with (Path(draft) / name).open("rb") as file:
                    os.fsync(file.fileno())  # so that a loss of power leaves no empty file
            except OSError as error:  # a full disk's does not name the file
                raise OSError(error.errno, error.strerror, str(folder / name)) from error
        for name in contents:
            os.replace(Path(draft) / name, folder / name)


def read_folder(folder: Path) -> tuple[dict[str, Any], Tokenizer, bytes]:
    """Return configuration, tokeniser and serialised weights, or what is wrong: a ValueError."""
    config = read_config(folder)
    model, weights = (_present(folder, name).read_bytes() for name in (TOKENIZER, WEIGHTS))
    if _checksum(model, weights) != config["sha256"]:
        raise ValueError(
            f"encoder {folder}: {TOKENIZER} or {WEIGHTS} is damaged, or from another training "
            f"than {CONFIG}; copy the folder again"
        )
    try:
        return config, Tokenizer(model), weights
    except RuntimeError as error:
        raise ValueError(f"encoder {folder}: {TOKENIZER} is not a SentencePiece model") from error


def _present(folder: Path, file_name: str) -> Path:
    path = folder / file_name
    if not path.is_file():
        raise ValueError(
            f"encoder {folder}: {file_name} is missing; pass a folder that 'adit train' wrote"
        )
    return path


def _checksum(tokenizer_model: bytes, weights: bytes) -> str:
    checksum = hashlib.sha256(tokenizer_model)
    checksum.update(weights)
    return checksum.hexdigest()


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of an encoder; a ValueError says what is wrong with it."""
    path = _present(folder, CONFIG)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"encoder {folder}: {CONFIG} is not JSON; copy it again") from error
    found = config.get("format") if isinstance(config, dict) else None
    if found not in FORMATS:
        raise ValueError(
            f"encoder {folder}: {CONFIG} has format {found!r}; this version reads "
            f"{', '.join(map(repr, FORMATS))}"
        )
    numbers = {"vocabulary", "dim", *(["ngram_rows"] if found in SCHEMES else [])}
    languages = {"apart"} if found == APART_FORMAT else set()
    missing = sorted({"sha256", *numbers, *languages} - config.keys())
    if missing:
        raise ValueError(f"encoder {folder}: {CONFIG} lacks {', '.join(missing)}; copy it again")
    for key in sorted(numbers):
        if not isinstance(config[key], int):
            raise ValueError(
                f"encoder {folder}: {CONFIG} has {key} {config[key]!r}; expected a number"
            )
    return config


def save_head(folder: Path, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Write a head of inference beside the encoder that is in a folder."""
    from safetensors.torch import save as save_tensors

    metadata = {ENCODER: read_config(folder)["sha256"]}
    replace_files(folder, {HEAD: save_tensors(dict(tensors), metadata=metadata)})


def load_head(folder: Path) -> Callable[[Matrix], Matrix]:
    """Return what maps (u, v, |u - v|, u * v), float32 (N, 4 D), to logits (N, 3).

    Rows u and v have the length sqrt(D); classes are in the order of ``INFERENCE_LABELS``. A
    ValueError says that there is no head, or that it is damaged or of another encoder.
    """
    path = folder / HEAD
    if not path.is_file():
        raise ValueError(f"{folder}: has no inference head; train one with --objective nli")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            weights: Any = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ValueError(f"{path}: is damaged; copy it again") from error
    if metadata.get(ENCODER) != read_config(folder)["sha256"]:
        raise ValueError(f"{path}: belongs to another encoder; copy the folder again")

    def logits(rows: Matrix) -> Matrix:
        hidden = np.tanh(rows @ weights["0.weight"].T + weights["0.bias"])
        return hidden @ weights["2.weight"].T + weights["2.bias"]

    return logits
