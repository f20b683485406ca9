"""The tasks of ``adit evaluate``, each a module and a line in ``TASKS``."""

import argparse
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from eval.tasks.suite import Suite


class TaskModule(Protocol):
    """The functions of a task's module in ``eval.tasks``.

    It has ``run``, or ``prepare`` for a suite, or both. The help shows the module's docstring.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the task."""

    def run(self, args: argparse.Namespace, show: Callable[[str], None]) -> dict[str, Any]:
        """Measure the encoder or encoders of ``args``, and return the record.

        ``args`` has the options of ``add_arguments``, and ``encoder`` as for ``load_encoder``. The
        record can be written as JSON. ``show`` is called with each line when it is ready.

        Raises:
            ValueError: The data, an option or an encoder is wrong.
            OSError: A file of results cannot be written.
            ModuleNotFoundError: A package that the task or an encoder needs is not installed.
        """

    def prepare(self, args: argparse.Namespace) -> "Suite":
        """Load or find the data of a suite, or raise errors as in ``run``."""


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
    """Import the module of a task, by its key in ``TASKS``."""
    return cast("TaskModule", importlib.import_module(f"eval.tasks.{name.replace('++', '_pp')}"))
