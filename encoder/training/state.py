"""The state of a training on disk: one file of tensors, from which it goes on as if undisturbed.

It holds the weights and the optimisers' moments, the vocabulary, and as metadata the step, what
was measured so far and what decides the training. All that is random follows from the seed and the
step, so generators and the order of the data need no state of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from encoder.checkpoint import replace_files


@dataclass(kw_only=True)
class State:
    """Where a training stands after ``step`` steps.

    ``history`` has the figures of each evaluation, ``identity`` what decides the weights;
    ``seconds`` is the time spent. All three are JSON values.
    """

    identity: dict[str, Any]
    tokenizer_model: bytes
    tensors: dict[str, Tensor] = field(default_factory=dict)
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def save_state(path: Path, state: State) -> None:
    """Write the state; what was in ``path`` is kept until the new state is written in full."""
    from safetensors.torch import save

    tokenizer = torch.frombuffer(bytearray(state.tokenizer_model), dtype=torch.uint8)
    told = {"step": state.step, "seconds": state.seconds, "history": state.history}
    metadata = {"identity": json.dumps(state.identity), "told": json.dumps(told)}
    content = save({**state.tensors, "tokenizer": tokenizer}, metadata=metadata)
    replace_files(path.parent, {path.name: content})


def load_state(path: Path, identity: Mapping[str, Any]) -> State:
    """Read a state that ``save_state`` wrote.

    Raises:
        ValueError: the file is damaged, or of a training that ``identity`` does not describe.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            found, told = (json.loads(metadata[name]) for name in ("identity", "told"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            model = tensors.pop("tokenizer").numpy().tobytes()
            state = State(identity=found, tokenizer_model=model, tensors=tensors, **told)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: is no state of a training, or damaged; remove it to begin anew"
        ) from error
    wanted = json.loads(json.dumps(identity))  # as it looks after a journey through JSON
    for name in sorted(wanted.keys() | found.keys()):
        if found.get(name) != wanted.get(name):
            raise ValueError(
                f"{path.parent}: a training with {name} {found.get(name)!r} was begun there, and "
                f"this one has {wanted.get(name)!r}; name another folder, or remove it"
            )
    return state
