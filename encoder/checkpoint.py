"""Encoders as folders of a configuration, a tokeniser and weights.

A bag's table is stored in 4 bits per number, with one float32 scale per row, the rows of n-grams
last. The configuration has a checksum of the other two files. If it does not match, they are
damaged or of another training, and are rejected. Loading executes no code of the folder.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from encoder.bag.features import SCHEME
from encoder.rows import Matrix, pack
from encoder.tokenizer import Tokenizer

BAG_FORMAT = f"adit-bag-{SCHEME}"
# The version of features of each format.
SCHEMES = {"adit-bag-3": 3, "adit-bag-4": 4, BAG_FORMAT: SCHEME}
NETWORK_FORMAT = "adit-network-1"
APART_FORMAT = "adit-networks-1"  # with a network per language
FORMATS = (*SCHEMES, NETWORK_FORMAT, APART_FORMAT)
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.model", "weights.safetensors"
HEAD = "inference.safetensors"
HEAD_TENSORS = "0.weight", "0.bias", "2.weight", "2.bias"
ENCODER = "encoder"  # the key of its encoder's checksum in a head's metadata

Facts = Mapping[str, Any]  # JSON values


def save_encoder(
    folder: Path, *, table: Matrix, ngram_rows: int = 0, tokenizer_model: bytes, facts: Facts
) -> None:
    """Write a bag into a folder, and replace an encoder in it.

    ``table`` has the vectors of pieces, then of n-grams, float32 (V + ``ngram_rows``, D). ``facts``
    are JSON values by name. Errors of ``write_folder`` are raised.
    """
    packed = pack(table)
    vocabulary, dim = len(table) - ngram_rows, table.shape[1]
    config = {"format": BAG_FORMAT, "vocabulary": vocabulary, "ngram_rows": ngram_rows, "dim": dim}
    weights = save({"table": packed.codes, "scales": packed.scales})
    write_folder(folder, {**config, "facts": facts}, tokenizer_model, weights)


def write_folder(folder: Path, config: Facts, tokenizer_model: bytes, weights: bytes) -> None:
    """Write an encoder's files into a folder, which is made if missing.

    ``config``, JSON values by name, is written with the checksum of the other two. Earlier ones
    are replaced, and further files stay. OSError says that the folder or a file cannot be written.
    """
    full_config = {**config, "sha256": _checksum(tokenizer_model, weights)}
    text = json.dumps(full_config, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    contents = {TOKENIZER: tokenizer_model, WEIGHTS: weights, CONFIG: text.encode()}
    folder.mkdir(parents=True, exist_ok=True)
    replace_files(folder, contents)


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into an existing folder, and replace earlier ones.

    ``contents`` are by file name. Files are replaced when all new ones are complete. Drafts of
    other processes (``.draft-*``) are deleted.

    Raises:
        OSError: A file cannot be written.
    """
    for stale in folder.glob(".draft-*"):  # of a killed process
        shutil.rmtree(stale, ignore_errors=True)
    # Inside the folder, because renaming does not cross file systems.
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder) as draft:
        for name, content in contents.items():
            try:
                (Path(draft) / name).write_bytes(content)
                with (Path(draft) / name).open("rb") as file:
                    os.fsync(file.fileno())  # so that files are not empty after a loss of power
            except OSError as error:  # the error of a full disk does not name the file
                raise OSError(error.errno, error.strerror, str(folder / name)) from error
        for name in contents:
            os.replace(Path(draft) / name, folder / name)


def read_folder(folder: Path) -> tuple[dict[str, Any], Tokenizer, bytes]:
    """Read an encoder's configuration, tokeniser and serialised weights.

    Raises:
        ValueError: A file is missing, damaged, or of another format or training.
    """
    config = read_config(folder)
    model, weights = (_find_file(folder, name).read_bytes() for name in (TOKENIZER, WEIGHTS))
    if _checksum(model, weights) != config["sha256"]:
        raise ValueError(
            f"encoder {folder}: {TOKENIZER} or {WEIGHTS} is damaged, or from another training "
            f"than {CONFIG}; copy the folder again"
        )
    try:
        return config, Tokenizer(model), weights
    except RuntimeError as error:
        raise ValueError(
            f"encoder {folder}: {TOKENIZER} is not a SentencePiece model; train the encoder again"
        ) from error


def _find_file(folder: Path, file_name: str) -> Path:
    path = folder / file_name
    if not path.is_file():
        raise ValueError(
            f"encoder {folder}: {file_name} is missing; pass a folder that 'adit train' wrote"
        )
    return path


def _checksum(tokenizer_model: bytes, weights: bytes) -> str:
    return hashlib.sha256(tokenizer_model + weights).hexdigest()


def read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration of an encoder, JSON values by name.

    Raises:
        ValueError: The file is missing, damaged, of another format, or lacks a key of its format.
    """
    path = _find_file(folder, CONFIG)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"encoder {folder}: {CONFIG} is not JSON; copy it again") from error
    format_name = config.get("format") if isinstance(config, dict) else None
    if format_name is None:
        raise ValueError(
            f"encoder {folder}: {CONFIG} names no format of Adit; pass a folder that 'adit train' "
            f"wrote, or st:{folder} for a model of sentence-transformers"
        )
    if format_name not in FORMATS:
        raise ValueError(
            f"encoder {folder}: {CONFIG} has format {format_name!r}, but this version reads "
            f"{', '.join(map(repr, FORMATS))}; update Adit, or train the encoder again"
        )
    number_keys = {"vocabulary", "dim", *(["ngram_rows"] if format_name in SCHEMES else [])}
    other_keys = ["sha256", *(["apart"] if format_name == APART_FORMAT else [])]
    if missing := sorted({*number_keys, *other_keys} - config.keys()):
        raise ValueError(f"encoder {folder}: {CONFIG} lacks {', '.join(missing)}; copy it again")
    for key in sorted(number_keys):
        if not isinstance(config[key], int):
            raise ValueError(
                f"encoder {folder}: {CONFIG} has {key} {config[key]!r}, not a whole number; "
                "copy it again"
            )
    return config


def save_head(folder: Path, tensors: Mapping[str, Matrix]) -> None:
    """Write the weights of an inference head into its encoder's folder.

    ``tensors`` are the weights (outputs, inputs) and biases of two linear layers with tanh between
    them, by the names ``HEAD_TENSORS``. Errors are of ``read_config`` and ``replace_files``.
    """
    metadata = {ENCODER: read_config(folder)["sha256"]}
    replace_files(folder, {HEAD: save(dict(tensors), metadata=metadata)})


def load_head(folder: Path) -> Callable[[Matrix], Matrix]:
    """Load an inference head, a function from sentence vectors to logits.

    It maps (u, v, |u - v|, u * v) of N pairs, float32 (N, 4 D), to logits of entailment, neutral
    and contradiction, float32 (N, 3). Rows u and v, of premise and hypothesis, have length sqrt(D).

    Raises:
        ValueError: The head or ``config.json`` is missing or damaged, or they do not fit together.
    """
    path = folder / HEAD
    if not path.is_file():
        raise ValueError(f"{folder}: has no {HEAD}; pass a folder of adit train --objective nli")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            weights: Any = {name: file.get_tensor(name) for name in HEAD_TENSORS}
    except SafetensorError as error:
        raise ValueError(f"{path}: is damaged; copy it again") from error
    if metadata.get(ENCODER) != read_config(folder)["sha256"]:
        raise ValueError(f"{path}: belongs to another encoder; copy its whole folder again")

    def logits(rows: Matrix) -> Matrix:
        hidden = np.tanh(rows @ weights["0.weight"].T + weights["0.bias"])
        return hidden @ weights["2.weight"].T + weights["2.bias"]

    return logits
