"""Evaluations of a training, which save the best encoder and the state."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from encoder import Encoder
from encoder.checkpoint import replace_files
from encoder.training import curves
from encoder.training.architectures.model import Trained
from encoder.training.loop import Training
from encoder.training.options import ACCURACY, HELD_OUT_ERROR
from encoder.training.reading import ParallelText, Texts
from encoder.training.state import State, save_state

PROGRESS = "training"  # the subfolder from which a training resumes
STATE, LOG, CURVES = "state.safetensors", "log.jsonl", "curves.svg"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure of an encoder per language or language pair.

    Attributes:
        name: its name in the log.
        title: its name in messages and plots.
        parts: the languages or language pairs.
        take: returns an encoder's figure by part, 0 to 1.
        higher_is_better: whether the best figure is the highest.
    """

    name: str
    title: str
    parts: Sequence[str] = ()
    take: Callable[[Encoder], Mapping[str, float]] = lambda encoder: {}
    higher_is_better: bool = False

    def best(self, means: Sequence[float]) -> bool:
        """Return whether the last of ``means`` (not empty) is as good as any."""
        return means[-1] == (max(means) if self.higher_is_better else min(means))


Measures = Sequence[Measure]


def choose(measures: Measures, name: str, figure: str) -> Measure:
    """Return the measure called ``name``, which chooses the best encoder.

    It may also be the objective's own, called ``figure`` unless "", whose ``take`` returns {}.

    Raises:
        ValueError: No measure has that name.
    """
    measure = Measure(name=figure, title=f"held-out {figure}", higher_is_better=figure == ACCURACY)
    by_name = {one.name: one for one in (*measures, *([measure] if figure else []))}
    if name not in by_name:
        raise ValueError(
            f"--best-by {name}: this training does not measure it; choose one of "
            f"{', '.join(by_name)}"
        )
    return by_name[name]


def held_out_error(texts: Texts) -> Measure:
    """Return the measure of ``retrieval_error`` in each held-out text."""
    return Measure(
        name=HELD_OUT_ERROR,
        title="held-out error",
        parts=[text.name for text in texts],
        take=lambda encoder: {text.name: retrieval_error(encoder, text) for text in texts},
    )


def retrieval_error(encoder: Encoder, text: ParallelText) -> float:
    """Return the share of sentences with a wrong nearest neighbour, 0 to 1.

    It is the mean of both directions of ``text``, not empty, by cosine. Of ties, the first counts.
    The text's name has its languages (``de-en``). Errors of ``Encoder.for_language`` are raised.
    """
    source, target = map(encoder.for_language, text.name.partition("-")[::2])
    cosines = source.encode(text.source) @ target.encode(text.target).T
    gold = np.arange(len(text))
    return float(np.mean([(cosines.argmax(axis=axis) != gold).mean() for axis in (0, 1)]))


@dataclass
class Keeper:
    """Evaluator of a training, which saves the state and the best encoder.

    The best encoder by ``best_by``, of equal ones the latest, is saved in ``folder`` with ``facts``
    and its figures. The state, a log and, if matplotlib is installed, curves of all evaluations are
    saved in ``folder/training``. ``finish`` returns the result of ``Model.export``. ``state``,
    changed in place, may have earlier evaluations, and its time counts from now on.
    """

    folder: Path
    state: State
    _: KW_ONLY
    measures: Measures
    best_by: Measure
    finish: Callable[[], Trained]
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._start = time.monotonic() - self.state.seconds

    def keep(self, training: Training, figures: Mapping[str, float]) -> None:
        """Take ``measures``, save the encoder if none was better, and the state.

        ``figures`` are further figures by name, and include ``best_by`` if no measure is it. Errors
        of measures, of the deployed encoder, are raised. OSError says that writing failed.
        """
        exported, save = self.finish()
        encoder = training.task.deploy(exported)
        parts = {measure.name: dict(measure.take(encoder)) for measure in self.measures}
        means = {name: float(np.mean(list(values.values()))) for name, values in parts.items()}
        state = self.state
        state.step, state.seconds = training.step, time.monotonic() - self._start
        state.tensors = {name: one.cpu().numpy() for name, one in training.tensors().items()}
        entry: dict[str, Any] = {"step": state.step, **figures, **means, "parts": parts}
        best_by = self.best_by.name
        is_best = self.best_by.best([one[best_by] for one in (*state.history, entry)])
        texts = [f"{name} {value:.3f}" for name, value in figures.items()]
        texts += [f"{one.title} {100 * means[one.name]:.2f}%" for one in self.measures]
        remark = "" if is_best else "; not the best"
        logger.info("step %d: %s, %.0f s%s", state.step, ", ".join(texts), state.seconds, remark)
        state.history.append({**entry, "seconds": round(state.seconds, 1), "best": is_best})
        if is_best:
            rounded = {
                name: {part: round(value, 4) for part, value in values.items()}
                for name, values in parts.items()
            }
            facts = {"steps": state.step, "seconds": round(state.seconds)}
            save(self.folder, facts={**self.facts, **facts, **rounded})
            training.task.save_extras(self.folder)
        # Save the encoder first, so that an interrupted training saves it once more.
        (self.folder / PROGRESS).mkdir(parents=True, exist_ok=True)
        save_state(self.folder / PROGRESS / STATE, state)
        self._write_log()

    def best(self) -> Mapping[str, Mapping[str, float]]:
        """Return the saved encoder's ``measures`` by name and part after ``keep``."""
        return [entry for entry in self.state.history if entry["best"]][-1]["parts"]

    def _write_log(self) -> None:
        history = self.state.history
        files = {LOG: "".join(json.dumps(entry) + "\n" for entry in history).encode()}
        try:
            titles = {measure.name: measure.title for measure in self.measures}
            files[CURVES] = curves.draw_curves(history, titles)
        except ImportError:
            if len(history) == 1:
                logger.info(
                    "no curves were drawn; to draw them, run: pip install 'bitext-adit[plot]'"
                )
        replace_files(self.folder / PROGRESS, files)
