"""PyTorch files of other programs, read as data: nothing in them is executed.

torch's own restricted unpickler reads them. Configurations were pickled as objects; the classes
that LASER's and fairseq's files use are read as plain mappings, and any other class or function in
the file is refused by its name.
"""

import argparse
import re
import warnings
from pathlib import Path
from typing import Any

import torch


class _Node:
    """Stands for an OmegaConf object: it takes the state, and has no behaviour."""


def _stand_in(path: str) -> type:
    module, _, name = path.rpartition(".")
    return type(name, (_Node,), {"__module__": module, "__qualname__": name})


_NODES = [
    _stand_in(f"omegaconf.{path}")
    for path in (
        "dictconfig.DictConfig",
        "listconfig.ListConfig",
        "base.ContainerMetadata",
        "base.Metadata",
        "nodes.AnyNode",
        "nodes.BooleanNode",
        "nodes.FloatNode",
        "nodes.IntegerNode",
        "nodes.StringNode",
    )
]
_TYPES = [_stand_in("typing.Any"), dict, list, str, int, float, bool]


def read_torch_file(path: Path) -> dict[str, Any]:
    """Read what ``torch.save`` wrote: tensors on the CPU, plain values, configurations as dicts.

    Raises:
        ValueError: not such a file, damaged, or with something in it that is not data.
    """
    if not path.is_file():
        raise ValueError(f"{path}: there is no such checkpoint file")
    try:
        with (
            torch.serialization.safe_globals([argparse.Namespace, *_NODES, *_TYPES]),
            warnings.catch_warnings(action="ignore"),  # of formats that are then refused, or read
        ):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"{path}: {_reason(error)}") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: holds a {type(content).__name__}, not the mapping that a checkpoint is"
        )
    return {str(key): plain(value) for key, value in content.items()}


def plain(value: Any) -> Any:  # noqa: ANN401  # whatever a pickle holds
    """Return the value with configuration objects in it as dicts, lists and scalars."""
    if isinstance(value, argparse.Namespace):
        return plain(vars(value))
    if isinstance(value, _Node):
        state = vars(value)
        return plain(state.get("_content", state.get("_val")))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _reason(error: Exception) -> str:
    message = str(error)
    named = re.search(r"GLOBAL (\S+)", message) or re.search(r"function (\S+)", message)
    if named:
        return (
            f"names {named[1]}, which is code and not data; it was not run. "
            "Take the file from its publisher, or save its tensors alone"
        )
    first = (message or type(error).__name__).splitlines()[0].split(". ")[0]
    return f"is no checkpoint file, or damaged ({first}); download it again"
