"""What is measured and kept on the way: held-out retrieval, the best encoder, the last state."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from encoder.checkpoint import replace_files
from encoder.training.curves import draw_curves
from encoder.training.state import State, save_state

if TYPE_CHECKING:
    from encoder import Encoder
    from encoder.training.finishing import Save
    from encoder.training.loop import Training
    from encoder.training.reading import ParallelText

PROGRESS = "training"  # the folder, in the encoder's, that a training goes on from
STATE, LOG, CURVES = "state.safetensors", "log.jsonl", "curves.svg"

logger = logging.getLogger(__name__)


def retrieval_error(encoder: Encoder, text: ParallelText) -> float:
    """Share of sentences whose nearest neighbour by cosine is not their translation, both ways."""
    cosines = encoder.encode(text.source) @ encoder.encode(text.target).T
    own = np.arange(len(text))
    wrong = [(cosines.argmax(axis=axis) != own).mean() for axis in (0, 1)]
    return float(np.mean(wrong))


class Keeper:
    """Measures a training at each evaluation and writes what is kept of it.

    The encoder with the least held-out error so far goes to ``folder``, for that is what is used;
    of equal ones the later. The last state, from which a training goes on, goes to
    ``folder/training``, with a log and curves of all evaluations.
    """

    def __init__(
        self,
        folder: Path,
        state: State,
        *,
        held_out: Sequence[ParallelText],
        finish: Callable[[], tuple[Encoder, Save]],
        facts: Mapping[str, Any],
    ) -> None:
        self.state = state
        self._folder = folder
        self._held_out = held_out
        self._finish = finish
        self._facts = facts
        self._start = time.monotonic() - state.seconds

    def keep(self, training: Training, figures: Mapping[str, float]) -> None:
        """Evaluate; save the encoder if it is the best so far, then the state.

        ``figures`` are what else is known of the steps since the last time, the loss above all.
        """
        encoder, save = self._finish()
        errors = {text.name: retrieval_error(encoder, text) for text in self._held_out}
        state = self.state
        state.step, state.seconds = training.step, time.monotonic() - self._start
        state.tensors = training.tensors()
        error = float(np.mean(list(errors.values())))
        best = all(error <= earlier["error"] for earlier in state.history)
        logger.info(
            "step %d: %s, held-out error %.2f %%, %.0f s%s",
            state.step,
            ", ".join(f"{name} {value:.3f}" for name, value in figures.items()),
            100 * error,
            state.seconds,
            "" if best else "; not the best",
        )
        entry = {"step": state.step, **figures, "error": error, "errors": errors}
        state.history.append({**entry, "seconds": round(state.seconds, 1), "best": best})
        if best:
            told = {name: round(value, 4) for name, value in errors.items()}
            facts = {"steps": state.step, "seconds": round(state.seconds), "held_out_error": told}
            save(self._folder, {**self._facts, **facts})
        # The encoder first: killed in between, a training writes it once more.
        (self._folder / PROGRESS).mkdir(exist_ok=True)
        save_state(self._folder / PROGRESS / STATE, state)
        self._write_log()

    def best_errors(self) -> Mapping[str, float]:
        """The held-out error of each language pair, of the encoder that was saved."""
        errors: Mapping[str, float] = [e for e in self.state.history if e["best"]][-1]["errors"]
        return errors

    def _write_log(self) -> None:
        history = self.state.history
        files = {LOG: "".join(json.dumps(entry) + "\n" for entry in history).encode()}
        try:
            files[CURVES] = draw_curves(history)
        except ImportError:
            if len(history) == 1:
                logger.info("curves are drawn where matplotlib is: pip install 'bitext-adit[plot]'")
        replace_files(self._folder / PROGRESS, files)
