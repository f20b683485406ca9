"""Addition: languages are added to an encoder that stays as it is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from encoder.bag.encoder import BagEncoder
from encoder.bag.names import names
from encoder.training import parallel
from encoder.training.options import AdditionOptions
from encoder.training.tasks.ranking import translation_ranking
from encoder.training.tasks.task import Rows, Setting, Task

if TYPE_CHECKING:
    from encoder import Encoder
    from encoder.tokenizer import Tokens
    from encoder.training.architectures.model import Model
    from encoder.training.data import TokenPairs

logger = logging.getLogger(__name__)


class Addition(Task):
    """Ranks the sources of a batch against the teacher's vectors of all its targets.

    The targets' language is one of the teacher's, the sources' one is added to it. Names in the
    sources have the teacher's vectors beside their own (``encoder.bag.names``).
    """

    def __init__(self, setting: Setting, teacher: BagEncoder) -> None:
        """Encode the targets with the teacher: 2 D bytes of memory for each different one."""
        super().__init__()
        assert isinstance(setting.options.objective, AdditionOptions)
        self._options = setting.options.objective
        self._teacher = teacher
        self._languages = [text.name.partition("-")[0] for text in setting.texts]
        self._names = {text.name: names(text.source) for text in setting.texts}
        numbers: dict[str, int] = {}
        self._targets = {
            text.name: np.array(
                [numbers.setdefault(sentence, len(numbers)) for sentence in text.target]
            )
            for text in setting.texts
        }
        logger.info("encoding %d different target sentences with the teacher", len(numbers))
        self._vectors = teacher.encode(list(numbers)).astype(np.float16)

    @classmethod
    def begin(cls, setting: Setting) -> Addition:
        """Encode all targets with the teacher.

        Raises:
            ValueError: the teacher or what is trained is no bag, or has other dimensions.
        """
        teacher, architecture = setting.teacher, setting.options.architecture
        if not isinstance(teacher, BagEncoder) or architecture.name != "bag":
            raise ValueError(
                "languages are added by a bag to a bag; name as teacher mini, or a folder that "
                "train-encoder made"
            )
        if teacher.dim != setting.dim:
            raise ValueError(
                f"the encoder's vectors have {teacher.dim} dimensions and those to be added "
                f"{setting.dim}; give --dim {teacher.dim}"
            )
        return cls(setting, teacher)

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """See ``translation_ranking``; nothing is learnt by the targets."""
        named = [self._names[pairs.name][row] for row in rows]
        beside = torch.from_numpy(self._teacher.encode(named, normalize=False))
        own = model(sides[0])
        source = functional.normalize(own + beside.to(own.device))
        vectors = torch.from_numpy(self._vectors[self._targets[pairs.name][rows]])
        target = vectors.to(source.device).float()
        return translation_ranking(
            parallel.gather(source),
            parallel.gather(target),
            scale=self._options.scale,
            margin=self._options.margin,
        )

    def whole(self, encoder: Encoder) -> Encoder:
        """Return the teacher with the encoder's languages added to it."""
        assert isinstance(encoder, BagEncoder)
        added = encoder.with_names(self._teacher)
        return self._teacher.extended(self._languages, lambda: added)
