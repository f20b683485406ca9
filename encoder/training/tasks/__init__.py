"""Training objectives, by their options; one file each."""

from __future__ import annotations

from encoder.training.options import (
    AdditionOptions,
    DistillationOptions,
    ObjectiveOptions,
    RankingOptions,
    TranslationOptions,
)
from encoder.training.tasks.addition import Addition
from encoder.training.tasks.distillation import Distillation
from encoder.training.tasks.ranking import Ranking
from encoder.training.tasks.task import Setting, Task
from encoder.training.tasks.translation import Translation

__all__ = ["TASKS", "Setting", "Task", "make_task"]

TASKS: dict[type[ObjectiveOptions], type[Task]] = {
    RankingOptions: Ranking,
    TranslationOptions: Translation,
    DistillationOptions: Distillation,
    AdditionOptions: Addition,
}


def make_task(setting: Setting) -> Task:
    """Make the task of the options' objective."""
    return TASKS[type(setting.options.objective)].begin(setting)
