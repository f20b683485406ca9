"""The evaluation tasks of ``adit evaluate``: a module and a line in ``TASKS`` for each.

A task's module has two functions (``TaskModule``). Modules are imported when their task is asked
for, so that ``adit evaluate --help`` is quick.
"""

import argparse
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from eval.tasks.suite import Suite


class TaskModule(Protocol):
    """The functions of a task's module: ``run``, or ``prepare`` where all of it is a suite.

    The module's docstring says in the task's help what it measures.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the task's own options."""

    def run(self, args: argparse.Namespace, show: Callable[[str], None]) -> dict[str, Any]:
        """Measure the encoder ``args.encoder`` and return the record that ``--json`` prints.

        Every line for people goes to ``show`` as soon as it is ready. A ValueError says that data
        or an option is wrong; all is checked before anything is encoded.
        """

    def prepare(self, args: argparse.Namespace) -> "Suite":
        """Load the data, with the same errors, for a suite that can be measured of any encoder."""


TASKS = {
    "bucc": "mine comparable corpora with gold pairs: F1",
    "tatoeba": "find translations by similarity search: error rate",
    "xsim": "the same by margin, among aligned texts",
    "xsim++": "the same among English sentences and falsified copies of them",
    "retrieval": "find translations among other sentences: P@1, P@5, P@10",
    "sts": "correlation of human and vector similarity: Pearson's r",
    "align": "align documents with their translations: F1",
    "fdr": "thresholds chosen without gold, judged by gold",
    "noise": "share of each kind of web-like noise that each filter removes",
    "filters": "effect of filters and of a second score: F1",
    "senteval": "classifiers on frozen vectors: sentiment, questions, SICK, STS",
    "probe": "what of a sentence's form can be read off its vector: accuracy",
    "nli": "inference learned from one language, tested in others: accuracy",
    "classify": "topics learned from one language, tested in others: accuracy",
    "words": "translation and similarity of words: P@1, P@5, P@10, correlation",
    "eigen": "how alike the graphs of sentences of two languages are",
    "compare": "several encoders on the same sets, with their differences",
}


def load_task(name: str) -> TaskModule:
    """Import a task's module."""
    return cast("TaskModule", importlib.import_module(f"eval.tasks.{name.replace('++', '_pp')}"))
