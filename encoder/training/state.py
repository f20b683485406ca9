"""The state of a training on disk: one file of tensors, from which it goes on as if undisturbed.

All that is random follows from the seed and the step, so generators and the order of the data need
no state of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.checkpoint import replace_files


@dataclass(kw_only=True)
class State:
    """Where a training stands after ``step`` steps: weights and moments are ``tensors``.

    ``history`` has the figures of each evaluation, ``identity`` what decides the weights, both as
    JSON values.
    """

    identity: Mapping[str, Any]
    tokenizer_model: bytes = b""
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def save_state(path: Path, state: State) -> None:
    """Write the state; what was in ``path`` is kept until the new state is written in full."""
    from safetensors.numpy import save

    tokenizer = np.frombuffer(state.tokenizer_model, dtype=np.uint8)
    told = {"step": state.step, "seconds": state.seconds, "history": state.history}
    metadata = {"identity": json.dumps(state.identity), "told": json.dumps(told)}
    content = save({**state.tensors, "tokenizer": tokenizer}, metadata=metadata)
    replace_files(path.parent, {path.name: content})


def load_state(path: Path, identity: Mapping[str, Any]) -> State:
    """Read what ``save_state`` wrote of this training; a ValueError if it is damaged or another."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
            found, told = (json.loads(metadata[name]) for name in ("identity", "told"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            model = tensors.pop("tokenizer").tobytes()
            state = State(identity=found, tokenizer_model=model, tensors=tensors, **told)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: is not a checkpoint of a training, or is damaged; delete it to restart"
        ) from error
    check_identity(path.parent, found, identity)
    return state


def check_identity(
    folder: Path, found: Mapping[str, Any], wanted: Mapping[str, Any], what: str = "a training"
) -> None:
    """Refuse to go on, by a ValueError, in a folder where something else was begun.

    ``found`` was read from JSON.
    """
    wanted = json.loads(json.dumps(wanted))  # as it looks after a journey through JSON
    for name in sorted(wanted.keys() | found.keys()):
        if found.get(name) != wanted.get(name):
            raise ValueError(
                f"{folder}: {what} with {name} {found.get(name)!r} was started there, but "
                f"this one has {wanted.get(name)!r}; pass another folder, or delete it"
            )
