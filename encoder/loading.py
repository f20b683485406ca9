"""Loading of encoders from folders of ``encoder.checkpoint``."""

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
    """Load an encoder from a folder, with the languages that were added.

    Subfolders ``more*`` have encoders of further languages, which are loaded when one of these is
    first used. They do not replace languages that the encoder's configuration lists. Of several
    with a language, the last by name counts. The encoder's name is ``name@``, digits of a hash of
    the files and, for a network, the precision. ValueError says that a file is missing, damaged, or
    of another format or encoder, or that the precision is not possible.
    """
    extended = base = _load_base(folder, name, precision)
    base_languages = read_config(folder).get("languages", {})

    def load_added(subfolder: Path, *, has_names: bool) -> Encoder:
        added = _load_base(subfolder, f"{name}/{subfolder.name}", base.precision)
        if not has_names:
            return added
        assert isinstance(added, BagEncoder) and isinstance(extended, BagEncoder)
        return added.with_names(extended)

    for path in sorted(folder.glob(f"{MORE}*/{CONFIG}")):
        facts = _read_facts(path.parent, base)
        assert isinstance(extended, BaseEncoder)
        trained = {pair.partition("-")[0] for pair in facts["pairs"]}
        load = partial(load_added, path.parent, has_names=facts.get("names", False))
        extended = extended.with_languages(trained - base_languages.keys(), load)
    return extended


def _load_base(folder: Path, name: str, precision: Precision) -> Encoder:
    if read_config(folder)["format"] not in SCHEMES:
        from encoder.trained import load_networks  # loads torch

        return load_networks(folder, name=name, precision=precision)
    if precision not in ("float32", "auto"):
        raise ValueError(f"--precision {precision}: encoder {name!r} runs in float32 only; omit it")
    config, tokenizer, weights = read_folder(folder)
    ngram_rows = config["ngram_rows"]
    return BagEncoder(
        name=f"{name}@{config['sha256'][:12]}",
        tokenizer=tokenizer,
        table=_read_table(folder, weights, config["vocabulary"] + ngram_rows, config["dim"]),
        ngram_rows=ngram_rows,
        scheme=SCHEMES[config["format"]],
    )


def _read_facts(folder: Path, encoder: Encoder) -> dict[str, Any]:
    config = read_config(folder)
    teacher = config.get("facts", {}).get("teacher")
    if _digest(teacher) != _digest(encoder.name) or config["dim"] != encoder.dim:
        place = f"it is in the folder of {encoder.name}"
        if teacher is None:
            raise ValueError(f"encoder {folder}: adds no languages, but {place}; move it elsewhere")
        raise ValueError(
            f"encoder {folder}: adds languages to {teacher}, but {place}; move it into that of "
            f"{teacher}"
        )
    return config["facts"]


def _digest(name: str | None) -> str:
    # The digits of an encoder's name that identify its weights, in any precision.
    return (name or "").rpartition("@")[2].partition("-")[0]


def _read_table(folder: Path, weights: bytes, rows: int, dim: int) -> PackedTable:
    try:
        tensors = load(weights)
        packed, scales = tensors["table"], tensors["scales"]
    except (SafetensorError, KeyError, ValueError) as error:
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} contains no vector table; copy it again"
        ) from error
    if packed.dtype != np.uint8 or scales.dtype != np.float32:
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} contains {packed.dtype} and {scales.dtype}, "
            "not uint8 and float32; copy it again"
        )
    expected = rows, (dim + 1) // 2
    if packed.shape != expected or scales.shape != (rows,):
        raise ValueError(
            f"encoder {folder}: {WEIGHTS} contains a table of {packed.shape} bytes and "
            f"{scales.shape} scales, but {CONFIG} has {(rows, dim)}, which needs {expected} bytes; "
            "copy both files again"
        )
    return PackedTable(codes=packed, scales=scales, dim=dim)
