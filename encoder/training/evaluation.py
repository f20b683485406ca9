"""Keeps on the way: figures of each evaluation, the best encoder, the last state."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from encoder import Encoder
from encoder.checkpoint import replace_files
from encoder.training import curves
from encoder.training.architectures.model import Save
from encoder.training.loop import Training
from encoder.training.measures import Measure
from encoder.training.state import State, save_state

PROGRESS = "training"  # the folder, in the encoder's, that a training goes on from
STATE, LOG, CURVES = "state.safetensors", "log.jsonl", "curves.svg"

logger = logging.getLogger(__name__)


class Keeper:
    """Measures a training at each evaluation and writes what is kept of it.

    The encoder that is the best so far by the measure ``best_by`` goes to ``folder``, for that is
    what is used; of equal ones the later. The last state, from which a training goes on, goes to
    ``folder/training``, with a log and curves of all evaluations.
    """

    def __init__(
        self,
        folder: Path,
        state: State,
        *,
        measures: Sequence[Measure],
        best_by: Measure,
        finish: Callable[[], tuple[Encoder, Save]],
        facts: Mapping[str, Any],
    ) -> None:
        self.state = state
        self._folder = folder
        self._measures = measures
        self._best_by = best_by
        self._finish = finish
        self._facts = facts
        self._start = time.monotonic() - state.seconds

    def keep(self, training: Training, figures: Mapping[str, float]) -> None:
        """Evaluate; save the encoder if it is the best so far, then the state.

        ``figures`` are what else is known of the steps since the last time, the loss above all.
        """
        encoder, save = self._finish()
        parts = {measure.name: dict(measure.take(encoder)) for measure in self._measures}
        means = {name: float(np.mean(list(each.values()))) for name, each in parts.items()}
        state = self.state
        state.step, state.seconds = training.step, time.monotonic() - self._start
        state.tensors = {name: one.cpu().numpy() for name, one in training.tensors().items()}
        chosen = self._best_by.name
        current = {**figures, **means}[chosen]
        best = self._best_by.best([*(entry[chosen] for entry in state.history), current])
        shown = [f"{name} {value:.3f}" for name, value in figures.items()]
        shown += [f"{one.title} {100 * means[one.name]:.2f} %" for one in self._measures]
        logger.info(
            "step %d: %s, %.0f s%s",
            state.step,
            ", ".join(shown),
            state.seconds,
            "" if best else "; not the best",
        )
        entry = {"step": state.step, **figures, **means, "parts": parts}
        state.history.append({**entry, "seconds": round(state.seconds, 1), "best": best})
        if best:
            rounded = {
                name: {part: round(value, 4) for part, value in each.items()}
                for name, each in parts.items()
            }
            facts = {"steps": state.step, "seconds": round(state.seconds)}
            save(self._folder, {**self._facts, **facts, **rounded})
        # The encoder first: killed in between, a training writes it once more.
        (self._folder / PROGRESS).mkdir(parents=True, exist_ok=True)
        save_state(self._folder / PROGRESS / STATE, state)
        self._write_log()

    def best(self) -> Mapping[str, Mapping[str, float]]:
        """Return the figures of the encoder that was saved: by measure, each by its parts."""
        found: Mapping[str, Mapping[str, float]]
        found = [entry for entry in self.state.history if entry["best"]][-1]["parts"]
        return found

    def _write_log(self) -> None:
        history = self.state.history
        files = {LOG: "".join(json.dumps(entry) + "\n" for entry in history).encode()}
        try:
            titles = {measure.name: measure.title for measure in self._measures}
            files[CURVES] = curves.draw_curves(history, titles)
        except ImportError:
            if len(history) == 1:
                logger.info("curves are drawn where matplotlib is: pip install 'bitext-adit[plot]'")
        replace_files(self._folder / PROGRESS, files)
