"""Encoders loaded from folders that ``encoder.checkpoint`` and ``encoder.trained`` wrote."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from encoder import MORE, Encoder, Precision
from encoder.bag.encoder import BagEncoder
from encoder.base import BaseEncoder
from encoder.checkpoint import CONFIG, SCHEMES, WEIGHTS, read_config, read_folder
from encoder.rows import PackedTable


def load_folder(folder: Path, *, name: str, precision: Precision) -> Encoder:
    """Load an encoder, and add to it what was trained for that, in its folders ``more*``.

    Each of these is read when one of its languages is first asked for. Languages that the encoder
    has itself, which may be in it for their relatives' sake, stay its own. Its name becomes
    ``name@`` and digits of a hash of its files, so each training has its own. A ValueError says
    which file is missing, damaged, or of another format, or that there is no such precision.
    """
    whole = alone = _load_alone(folder, name, precision)
    own = read_config(folder).get("languages", {})

    def load_added(place: Path, *, named: bool) -> Encoder:
        added = _load_alone(place, f"{name}/{place.name}", alone.precision)
        if not named:
            return added
        assert isinstance(added, BagEncoder) and isinstance(whole, BagEncoder)
        return added.with_names(whole)

    for path in sorted(folder.glob(f"{MORE}*/{CONFIG}")):
        facts = _facts(path.parent, alone)
        assert isinstance(whole, BaseEncoder)
        trained = {pair.partition("-")[0] for pair in facts["pairs"]}
        load = partial(load_added, path.parent, named=facts.get("names", False))
        whole = whole.extended(trained - own.keys(), load)
    return whole


def _load_alone(folder: Path, name: str, precision: Precision) -> Encoder:
    if read_config(folder)["format"] not in SCHEMES:
        from encoder.trained import load_networks  # loads torch

        return load_networks(folder, name=name, precision=precision)
    if precision not in ("float32", "auto"):
        raise ValueError(f"encoder {name!r} has no network; omit --precision {precision}")
    config, tokenizer, weights = read_folder(folder)
    ngram_rows = config["ngram_rows"]
    return BagEncoder(
        name=f"{name}@{config['sha256'][:12]}",
        tokenizer=tokenizer,
        table=_read_table(folder, weights, config["vocabulary"] + ngram_rows, config["dim"]),
        ngram_rows=ngram_rows,
        scheme=SCHEMES[config["format"]],
    )


def _facts(folder: Path, encoder: Encoder) -> dict[str, Any]:
    """Return what is known of the training of what was trained to add to an encoder."""
    config = read_config(folder)
    teacher = config.get("facts", {}).get("teacher")
    if _digest(teacher) != _digest(encoder.name) or config["dim"] != encoder.dim:
        raise ValueError(
            f"encoder {folder}: adds languages to {teacher}, not to {encoder.name}; move it to "
            "another folder"
        )
    return config["facts"]


def _digest(name: str | None) -> str:
    """Return the digits of an encoder's name that identify its weights, in any precision."""
    return (name or "").rpartition("@")[2].partition("-")[0]


def _read_table(folder: Path, weights: bytes, rows: int, dim: int) -> PackedTable:
    try:
        tensors = load(weights)
        packed, scales = tensors["table"], tensors["scales"]
    except (SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"encoder {folder}: {WEIGHTS} contains no vector table") from error
    if packed.dtype != np.uint8 or scales.dtype != np.float32:
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} contains {packed.dtype} and {scales.dtype}; "
            "expected uint8 and float32"
        )
    expected = rows, (dim + 1) // 2
    if packed.shape != expected or scales.shape != (rows,):
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} contains a table of {packed.shape} bytes and "
            f"{scales.shape} scales; {CONFIG} has {(rows, dim)}, which needs {expected} bytes"
        )
    return PackedTable(codes=packed, scales=scales, dim=dim)
