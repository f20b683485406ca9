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
    "xsim": "find translations by margin among aligned texts: error rate",
    "xsim++": "find translations among English sentences and falsified copies: error rate",
    "retrieval": "find translations among other sentences: P@1, P@5, P@10",
    "sts": "correlate human and vector similarity: Pearson's r",
    "align": "align documents with their translations: F1",
    "fdr": "compare estimated and true error rates of thresholds",
    "noise": "measure the share of web noise that each filter removes",
    "filters": "measure filters and the judge: F1",
    "senteval": "train classifiers on frozen vectors: sentiment, questions, SICK, STS",
    "probe": "read properties of a sentence's form from its vector: accuracy",
    "nli": "learn inference in one language, test in others: accuracy",
    "classify": "learn topics in one language, test in others: accuracy",
    "words": "translate and compare words: P@1, P@5, P@10, correlation",
    "eigen": "compare the sentence graphs of two languages: Psi",
    "compare": "compare encoders on the same sets",
}


def load_task(name: str) -> TaskModule:
    """Import a task's module."""
    return cast("TaskModule", importlib.import_module(f"eval.tasks.{name.replace('++', '_pp')}"))
