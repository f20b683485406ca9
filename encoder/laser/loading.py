"""LASER's checkpoints as encoders, with checks that files fit together.

torch's restricted unpickler reads them as data, and executes nothing in them. Objects of LASER's
and fairseq's configurations become plain mappings. Other classes and functions are rejected.
"""

import argparse
import hashlib
import random
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from encoder import Precision
from encoder.base import SAMPLE
from encoder.laser import subwords
from encoder.laser.languages import SHARED
from encoder.laser.networks import BiLSTM, Transformer, read_setting
from encoder.laser.preprocess import make_normalizer, make_tokenizer
from encoder.network import NetworkEncoder, prepare


class _Node:
    """Stand-in for an OmegaConf object, with its state and no behaviour."""


def _stand_in(path: str) -> type:
    module, _, name = path.rpartition(".")
    return type(name, (_Node,), {"__module__": module, "__qualname__": name})


_NODES = [
    _stand_in(f"omegaconf.{path}")
    for path in (
        *("dictconfig.DictConfig", "listconfig.ListConfig", "base.ContainerMetadata"),
        *("base.Metadata", "nodes.AnyNode", "nodes.BooleanNode", "nodes.FloatNode"),
        *("nodes.IntegerNode", "nodes.StringNode"),
    )
]
_TYPES = [_stand_in("typing.Any"), dict, list, str, int, float, bool]


def read_torch_file(path: Path) -> dict[str, Any]:
    """Read a file of ``torch.save`` as tensors on the CPU and plain values.

    Raises:
        ValueError: The file is missing, damaged, not a mapping, or contains more than data.
    """
    if not path.is_file():
        raise ValueError(f"{path}: file not found; pass the .pt file of a LASER encoder")
    try:
        with (
            torch.serialization.safe_globals([argparse.Namespace, *_NODES, *_TYPES]),
            warnings.catch_warnings(action="ignore"),  # about formats that are handled below
        ):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"{path}: {_reason(error)}") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: contains a {type(content).__name__}, not a dict as LASER's files; pass a "
            "LASER encoder"
        )
    return {str(key): to_plain(value) for key, value in content.items()}


def to_plain(value: Any) -> Any:  # noqa: ANN401  # any content of a pickle
    """Convert configuration objects and tuples in a value to dicts and lists.

    Nodes of OmegaConf with one value become this value. Other values, such as tensors, stay.
    """
    if isinstance(value, argparse.Namespace):
        return to_plain(vars(value))
    if isinstance(value, _Node):
        state = vars(value)
        return to_plain(state.get("_content", state.get("_val")))
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def _reason(error: Exception) -> str:
    message = str(error)
    if code := re.search(r"GLOBAL (\S+)", message) or re.search(r"function (\S+)", message):
        return (
            f"names {code[1]}, which is code and not data; it was not run. "
            "Download the file from its publisher, or save only its tensors"
        )
    reason = (message or type(error).__name__).splitlines()[0].split(". ")[0]
    return f"is not a checkpoint file, or is damaged ({reason}); download it again"


def load_laser(
    path: Path, vocabulary: Path | None, pretokenized: bool, precision: Precision
) -> NetworkEncoder:
    """Load LASER1 or LASER2 as an encoder.

    ``path`` is the ``.pt`` file. ``vocabulary`` is the ``.spm`` of LASER2, or the ``.fcodes`` of
    LASER1 next to a ``.fvocab`` of the same name. None stands for one in the folder of ``path``: of
    its name, of the name ``laser2``, or the only one. ``pretokenized`` sentences are subword tokens
    between spaces, and need no such file. ``precision`` is as in ``encoder.network.prepare``.

    Raises:
        ValueError: A file is missing or damaged, or files or the precision do not fit.
    """
    content = read_torch_file(path)
    if "params" not in content and "cfg" in content:
        raise ValueError(f"{path}: is a LASER3 encoder; use laser3:{path}")
    model, params, dictionary = (
        _part(path, content, name) for name in ("model", "params", "dictionary")
    )
    network = _built(path, lambda: _bilstm(model, params, dictionary))
    words = subwords.Vocabulary(dictionary)
    files, tokenizer = [path], subwords.TextTokenizer(words)
    if not pretokenized:
        pieces = vocabulary or _find_companion(path, (".spm", ".fcodes"))
        files.append(pieces)
        if pieces.suffix == ".fcodes":
            files.append(pieces.with_suffix(".fvocab"))
            bpe = subwords.BPE(pieces, files[-1])
            tokenizer = subwords.TextTokenizer(words, lambda lines: map(bpe, lines), make_tokenizer)
        else:
            tokenizer = subwords.TextTokenizer(words, subwords.read_pieces(pieces), make_normalizer)
    return _encoder(files, tokenizer, network, precision, dictionary if pretokenized else ())


def load_laser3(
    path: Path, vocabulary: Path | None, pretokenized: bool, precision: Precision
) -> NetworkEncoder:
    """Load a LASER3 encoder.

    Arguments are as in ``load_laser``, except that ``precision`` cannot be int8, and ``vocabulary``
    is the ``.cvocab``, always used. Unless ``pretokenized``, an ``.spm`` must be next to ``path``.

    Raises:
        ValueError: A file is missing or damaged, or files or the precision do not fit.
    """
    content = read_torch_file(path)
    if "params" in content:
        raise ValueError(f"{path}: is a LASER1 or LASER2 encoder; use laser:{path}")
    model = _part(path, content, "model")
    config = _part(path, _part(path, content, "cfg"), "model")
    cvocab = vocabulary or _find_companion(path, (".cvocab",))
    ids = subwords.read_cvocab(cvocab)
    if inner := [name for name in model if name.startswith("encoder.")]:  # of a translation model
        model = {name.removeprefix("encoder."): model[name] for name in inner}
    if "layer_norm.weight" in model:
        ids["<mask>"] = len(subwords.SPECIAL) + len(ids)
    network = _built(path, lambda: Transformer(_tensors(model), config))
    count = len(ids) + len(subwords.SPECIAL)
    if count != network.vocabulary:
        raise ValueError(
            f"{cvocab}: has {count:,} tokens including special tokens, and {path} "
            f"vectors for {network.vocabulary:,}; pass this encoder's .cvocab with --vocab"
        )
    prepend_bos = bool(_built(path, lambda: read_setting(config, "prepend_bos")))
    words = subwords.Vocabulary(ids, prepend_bos=prepend_bos, capacity=network.capacity)
    files, tokenizer = [path, cvocab], subwords.TextTokenizer(words)
    if not pretokenized:
        files.append(_find_companion(path, (".spm",)))
        tokenizer = subwords.TextTokenizer(words, subwords.read_pieces(files[-1]), make_normalizer)
    return _encoder(files, tokenizer, network, precision, ids if pretokenized else ())


def _encoder(
    files: Sequence[Path],
    tokenizer: subwords.TextTokenizer,
    network: nn.Module,
    precision: Precision,
    tokens: Iterable[str],
) -> NetworkEncoder:
    # To compare precisions, pretokenized encoders encode sentences of random tokens.
    sample: Sequence[str] = SAMPLE
    if tokens:
        draw, vocabulary = random.Random(0), sorted(tokens)
        sample = [" ".join(draw.choices(vocabulary, k=length)) for length in range(2, 50)]
    try:
        ready_network = prepare(network, precision, tokenizer.encode(sample))
    except ValueError as error:
        raise ValueError(f"{files[0]}: {error}") from None
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    name = f"{files[0].stem}@{digest.hexdigest()[:12]}-{ready_network.name}"
    return NetworkEncoder(name=name, tokenizer=tokenizer, network=ready_network)


def _part(path: Path, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    if not isinstance(content.get(key), dict):
        kind = "lacks" if key not in content else "has no dict as"
        raise ValueError(f"{path}: {kind} the part {key!r} of LASER's files; pass a LASER encoder")
    return content[key]


def _built(path: Path, build: Callable[[], Any]) -> Any:  # noqa: ANN401  # a network
    try:
        return build()
    except ValueError as error:
        raise ValueError(f"{path}: {error}; download it again, or pass a LASER encoder") from None


def _tensors(model: Mapping[str, Any]) -> Mapping[str, torch.Tensor]:
    for name, tensor in model.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"has a {type(tensor).__name__} as {name}, not a tensor")
    return model


def _bilstm(
    model: Mapping[str, Any], params: Mapping[str, Any], dictionary: Mapping[str, Any]
) -> BiLSTM:
    network = BiLSTM(_tensors(model))
    count = network.vocabulary
    sizes = {"num_embeddings": count, "embed_dim": network.lstm.input_size}
    for name in ("hidden_size", "num_layers", "bidirectional"):  # in LASER's files and in torch
        sizes[name] = getattr(network.lstm, name)
    for name, size in sizes.items():  # a size that the file lacks is that of the tensors
        if params.get(name, size) != size:
            raise ValueError(f"has {name} {params[name]!r}, but its tensors have {size!r}")
    for token, row in dictionary.items():
        if not isinstance(token, str) or not isinstance(row, int) or not 0 <= row < count:
            raise ValueError(
                f"its dictionary has {token!r} at {row!r}, but the encoder has vectors for "
                f"{count:,} tokens"
            )
    if count <= subwords.UNK:
        raise ValueError(f"has only {count} vectors, too few for the special tokens")
    return network


def _find_companion(path: Path, suffixes: Sequence[str]) -> Path:
    for suffix in suffixes:
        for candidate in (path.with_suffix(suffix), path.with_name(SHARED + suffix)):
            if candidate.is_file():
                return candidate
        candidates = sorted(path.parent.glob(f"*{suffix}"))
        if len(candidates) == 1:
            return candidates[0]
    names = " or ".join(path.with_suffix(suffix).name for suffix in suffixes)
    or_pass = "" if suffixes == (".spm",) else ", or pass it with --vocab"  # of LASER3's .cvocab
    raise ValueError(f"{path}: needs {names} in the same folder; copy it there{or_pass}")
