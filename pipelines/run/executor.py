"""The steps of a run, done one after the other in this process, without an engine."""

import time
from collections.abc import Sequence
from typing import Any

from pipelines.context import RunContext
from pipelines.job import WHOLE, Of
from pipelines.memory import release
from pipelines.references import element_name
from pipelines.run.ledger import Ledger
from pipelines.run.steps import Each, Gather, Step


class StageRunner:
    """Calls stages' functions in this process, and notes in the ledger what they have done."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._ledger = Ledger(run.folder)

    def __call__(self, step: Each, element: Of) -> list[Of]:
        """Return what a stage makes of one reference, or of the list of a group."""
        start = time.perf_counter()
        try:
            result = step.stage(self._run.of(element.part), element.reference)
        except BaseException as error:
            self._ledger.note_failed(step.name, error)
            raise
        made = result if step.many else [result]
        release()
        seconds = time.perf_counter() - start
        name = f"{element.part} {element_name(element.reference)}"
        self._ledger.note_done(step.name, name, made=len(made), seconds=seconds)
        self._run.monitor.note(step.name, seconds)
        return made if step.deals else [Of(element.part, reference) for reference in made]


def execute(run: RunContext, steps: Sequence[Step]) -> list[Of]:
    """Interpret the steps in this process; return the references that the last one makes."""
    call = StageRunner(run)
    found = list(run.job.corpora)
    for step in steps:
        if isinstance(step, Each):
            found = [made for element in found for made in call(step, element)]
        elif isinstance(step, Gather):
            groups: dict[tuple[str, str], list[Any]] = {}
            for part, reference in found:
                group = WHOLE if step.whole else part, step.key(reference)
                groups.setdefault(group, []).append(reference)
            found = [Of(part, references) for (part, _), references in groups.items()]
    return found
