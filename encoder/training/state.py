"""The state of a training on disk, from which it resumes exactly."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from encoder.checkpoint import replace_files


@dataclass(kw_only=True)
class State:
    """The state of a training after ``step`` steps.

    Attributes:
        identity: JSON values by name that must be equal to resume, such as options.
        tokenizer_model: the serialised SentencePiece model.
        tensors: weights and the optimisers' moments, by name.
        seconds: the time of training so far.
        history: the figures of each evaluation, as JSON values.
    """

    identity: Mapping[str, Any]
    tokenizer_model: bytes = b""
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def save_state(path: Path, state: State) -> None:
    """Write or replace a state's file in an existing folder, or raise OSError."""
    tokenizer = np.frombuffer(state.tokenizer_model, dtype=np.uint8)
    progress = {"step": state.step, "seconds": state.seconds, "history": state.history}
    metadata = {"identity": json.dumps(state.identity), "told": json.dumps(progress)}
    content = save({**state.tensors, "tokenizer": tokenizer}, metadata=metadata)
    replace_files(path.parent, {path.name: content})


def load_state(path: Path, identity: Mapping[str, Any]) -> State:
    """Read the state of a training with the given identity from a file.

    Raises:
        ValueError: The file is missing, damaged, or of another training.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
            saved, progress = (json.loads(metadata[name]) for name in ("identity", "told"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            model = tensors.pop("tokenizer").tobytes()
            state = State(identity=saved, tokenizer_model=model, tensors=tensors, **progress)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: is not a checkpoint of a training, or is damaged ({error}); delete it to "
            "restart"
        ) from error
    check_identity(path.parent, saved, identity)
    return state


def check_identity(
    folder: Path, saved: Mapping[str, Any], expected: Mapping[str, Any], work: str = "a training"
) -> None:
    """Check that saved work has the identity of the present work.

    Identities are JSON values by name, None if missing, and ``saved`` is as read, with lists for
    tuples. ``folder`` and ``work`` are for the error.

    Raises:
        ValueError: The identities differ.
    """
    expected = json.loads(json.dumps(expected))  # as after reading from JSON
    for name in sorted(expected.keys() | saved.keys()):
        if saved.get(name) != expected.get(name):
            raise ValueError(
                f"{folder}: contains {work} with {name} {saved.get(name)!r}, but this one has "
                f"{expected.get(name)!r}; pass another folder, or delete {folder} to restart"
            )
