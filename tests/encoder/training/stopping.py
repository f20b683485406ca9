"""A training that is interrupted, as by a key."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from encoder.training.loop import Training


@contextmanager
def stopped_after(steps: int) -> Iterator[None]:
    """Interrupt what is trained meanwhile, before its next step."""
    advance = Training.advance

    def stopped(training: Training, batches: list) -> float:
        if training.step == steps:
            raise KeyboardInterrupt
        return advance(training, batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "advance", stopped)
        yield
