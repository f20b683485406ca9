"""Training objectives by name, each in its own module."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from encoder.training import reading
from encoder.training.options import TaskBeside
from encoder.training.reading import ParallelText, Texts
from encoder.training.tasks import beside, language, paths, ranking, taught, translation
from encoder.training.tasks.task import Mixture, Setting, Task

TASKS: dict[str, type[Task]] = {
    "ranking": ranking.Ranking,
    "translation": translation.Translation,
    "distillation": taught.Distillation,
    "addition": taught.Addition,
    "alignment": taught.Alignment,
    "mlm": language.Masked,
    "tlm": language.TranslatedMasked,
    "clm": language.Causal,
    "nli": beside.Inference,
    "paths": paths.Paths,
}
AUXILIARY_TASKS: dict[str, tuple[Callable[..., ParallelText], Callable[[Setting], Task]]] = {
    "response": (reading.read_successors, beside.ResponsePrediction),
    "quick-thought": (reading.read_successors, beside.QuickThought),
    "skip-thought": (reading.read_successors, beside.SkipThought),
    "autoencoding": (reading.read_sentences, beside.Autoencoding),
    "mlm": (reading.read_sentences, partial(language.Masked, sides=1)),
    "clm": (reading.read_sentences, partial(language.Causal, sides=1)),
    "nli": (reading.read_labelled, beside.Inference),
}


def read_beside(tasks: Mapping[str, TaskBeside]) -> list[ParallelText]:
    """Read the text of each auxiliary task, in order, named by its key.

    ValueError says that a folder or text is missing, a file is malformed, or ``nli`` lacks a label.
    """
    suffixes = {name: ".tsv" if task.name == "nli" else ".txt" for name, task in tasks.items()}
    return [
        AUXILIARY_TASKS[task.name][0](name, reading.find_files(task.folder, suffixes[name]))
        for name, task in tasks.items()
    ]


def make_task(setting: Setting, tasks: Mapping[str, TaskBeside], texts: Texts) -> Task:
    """Make the task of the objective, mixed with auxiliary tasks.

    ``texts`` are from ``read_beside``. If they are empty, the result is the objective's task.
    ValueError says that ``setting`` does not suit a task.
    """
    objective = setting.options.objective.name
    main = TASKS[objective](setting)
    auxiliary = {}
    for text in texts:
        _, make = AUXILIARY_TASKS[tasks[text.name].name]
        auxiliary[text.name] = make(replace(setting, texts=[text], held_out=()))
    return Mixture(objective, main, auxiliary) if auxiliary else main
