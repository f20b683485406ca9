"""Distillation: a student matches a teacher's vectors of both sides."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from encoder.training.data import join
from encoder.training.tasks.task import Rows, Setting, Task

if TYPE_CHECKING:
    from encoder import Encoder
    from encoder.tokenizer import Tokens
    from encoder.training.architectures.model import Model
    from encoder.training.data import TokenPairs
    from encoder.training.reading import ParallelText

logger = logging.getLogger(__name__)


class Distillation(Task):
    """Has a student match a teacher's vectors of both sides."""

    def __init__(self, teacher: Encoder, texts: Sequence[ParallelText]) -> None:
        """Encode all texts with the teacher: 2 D bytes of memory for each sentence."""
        super().__init__()
        self._vectors: Mapping[str, list[NDArray[np.float16]]] = {
            text.name: [
                teacher.encode(side).astype(np.float16) for side in (text.source, text.target)
            ]
            for text in texts
        }

    @classmethod
    def begin(cls, setting: Setting) -> Distillation:
        """Encode all texts with the teacher.

        Raises:
            ValueError: there is no teacher, or its vectors have other dimensions.
        """
        teacher = setting.teacher
        if teacher is None:
            raise ValueError("distillation needs a teacher; name an encoder to learn from")
        if teacher.dim != setting.dim:
            raise ValueError(
                f"the teacher's vectors have {teacher.dim} dimensions and the student's "
                f"{setting.dim}; give the student {teacher.dim}"
            )
        logger.info("encoding all sentences with the teacher")
        return cls(teacher, setting.texts)

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """See ``distillation``."""
        student = functional.normalize(model(join(sides)).float())
        teacher = [
            torch.from_numpy(vectors[rows]).to(student.device).float()
            for vectors in self._vectors[pairs.name]
        ]
        return distillation(*student.split(len(rows)), *teacher)


def distillation(
    source: torch.Tensor,
    target: torch.Tensor,
    teacher_source: torch.Tensor,
    teacher_target: torch.Tensor,
) -> torch.Tensor:
    """Return one minus the mean cosine of a student's vectors of a pair to its teacher's.

    Both sides are drawn to both of the teacher's vectors, so that what these differ in is averaged
    out (Reimers & Gurevych 2020, equation 1, with the cosine loss of Heffernan et al. 2022).

    Args:
        source: float tensor of shape (B, D), unit rows, as the other three.
        target: the student's vectors of the translations.
        teacher_source: the teacher's vectors of the sources.
        teacher_target: the teacher's vectors of the translations.
    """
    return 1 - ((source + target) * (teacher_source + teacher_target)).sum(dim=1).mean() / 4
