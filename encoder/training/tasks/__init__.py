"""Training objectives, by their options; one file each."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from encoder.training.options import TaskBeside
from encoder.training.reading import (
    ParallelText,
    Texts,
    files_of,
    read_labelled,
    read_sentences,
    read_successors,
)
from encoder.training.tasks.beside import (
    Autoencoding,
    Inference,
    QuickThought,
    ResponsePrediction,
    SkipThought,
)
from encoder.training.tasks.language import Causal, Masked, TranslatedMasked
from encoder.training.tasks.paths import Paths
from encoder.training.tasks.ranking import Ranking
from encoder.training.tasks.task import Mixture, Setting, Task
from encoder.training.tasks.taught import Addition, Alignment, Distillation
from encoder.training.tasks.translation import Translation

TASKS: dict[str, type[Task]] = {
    "ranking": Ranking,
    "translation": Translation,
    "distillation": Distillation,
    "addition": Addition,
    "alignment": Alignment,
    "mlm": Masked,
    "tlm": TranslatedMasked,
    "clm": Causal,
    "nli": Inference,
    "paths": Paths,
}
Read = Callable[[str, tuple[Path, ...]], ParallelText]
BESIDE: dict[str, tuple[Read, Callable[[Setting], Task]]] = {
    "response": (read_successors, ResponsePrediction),
    "quick-thought": (read_successors, QuickThought),
    "skip-thought": (read_successors, SkipThought),
    "autoencoding": (read_sentences, Autoencoding),
    "mlm": (read_sentences, partial(Masked, sides=1)),
    "clm": (read_sentences, partial(Causal, sides=1)),
    "nli": (read_labelled, Inference),
}


def read_beside(tasks: Mapping[str, TaskBeside]) -> list[ParallelText]:
    """Read the text of each task beside the objective, under the task's name.

    Raises:
        ValueError: there is none, or it is malformed.
    """
    found = []
    for name, task in tasks.items():
        read = BESIDE[task.name][0]
        files = files_of(task.folder, ".tsv" if read is read_labelled else ".txt")
        found.append(read(name, files))
    return found


def make_task(setting: Setting, tasks: Mapping[str, TaskBeside], beside: Texts) -> Task:
    """Make the task of the options' objective, and those beside it of the text given."""
    objective = setting.options.objective.name
    main = TASKS[objective](setting)
    made = {
        text.name: BESIDE[tasks[text.name].name][1](replace(setting, texts=[text], held_out=()))
        for text in beside
    }
    return Mixture(objective, main, made) if made else main
