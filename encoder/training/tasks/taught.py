"""Objectives that learn from a teacher: distillation, and languages added to one that stays."""

import logging

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from encoder import Encoder
from encoder.bag.encoder import BagEncoder, names
from encoder.tokenizer import Tokens
from encoder.trained import TrainedNetwork
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs, join
from encoder.training.options import AdditionOptions, AlignmentOptions
from encoder.training.tasks.ranking import translation_ranking
from encoder.training.tasks.task import Setting, Task

logger = logging.getLogger(__name__)


class Taught(Task):
    """Keeps a teacher's vectors of what it teaches: 2 D bytes for each different sentence."""

    def __init__(self, setting: Setting) -> None:
        """Encode the targets with the teacher, and the sources if they are taught, too."""
        super().__init__()
        teacher = setting.teacher
        if teacher is None:
            raise ValueError("no teacher; pass an encoder with --teacher")
        if teacher.dim != setting.dim:
            raise ValueError(
                f"--dim {setting.dim} is not the teacher's dimension; use --dim {teacher.dim}"
            )
        self._options = setting.options.objective
        self._languages = [text.name.partition("-")[0] for text in setting.texts]
        numbers: dict[str, int] = {}
        self._rows = {
            text.name: [
                np.array([numbers.setdefault(sentence, len(numbers)) for sentence in side])
                for side in (text.source, text.target)[self._options.one_sided :]
            ]
            for text in setting.texts
        }
        logger.info("encoding %d distinct sentences with the teacher", len(numbers))
        self._vectors = teacher.encode(list(numbers)).astype(np.float16)

    def taught(self, pairs: TokenPairs, rows: Rows, like: Tensor) -> list[Tensor]:
        """Return the teacher's vectors of each side that it teaches, float32 (B, D)."""
        found = (self._vectors[side[rows]] for side in self._rows[pairs.name])
        return [torch.from_numpy(each).to(like.device).float() for each in found]


class Distillation(Taught):
    """Has a student match a teacher's vectors of both sides."""

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """See ``distillation``."""
        student = functional.normalize(model(join(sides)).float())
        return distillation(*student.split(len(rows)), *self.taught(pairs, rows, student))


class Alignment(Taught):
    """Brings each source near the teacher's vector of its target; the teacher stays.

    X-BiLSTM of a network, X-CBOW of a bag (Conneau 2018, thesis, section 4.2.4).
    """

    def __init__(self, setting: Setting) -> None:
        if not isinstance(setting.teacher, BagEncoder | TrainedNetwork):
            raise ValueError(
                "--teacher: languages can only be added to a bag or a network; pass mini, or a "
                "folder that 'adit train' wrote"
            )
        super().__init__(setting)
        self._teacher = setting.teacher

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """See ``alignment``; negatives are of the batch of all processes."""
        assert isinstance(self._options, AlignmentOptions)
        source = functional.normalize(model(sides[0]).float())
        (target,) = self.taught(pairs, rows, source)
        both = parallel.gather(target), parallel.gather(source)
        return alignment(*both, negatives=self._options.negatives)

    def whole(self, encoder: Encoder) -> Encoder:
        """Return the teacher with the encoder's languages added to it."""
        return self._teacher.extended(self._languages, lambda: encoder)


class Addition(Alignment):
    """Ranks the sources of a batch against the teacher's vectors of all its targets.

    The targets' language is one of the teacher's, the sources' one is added to it. Names in the
    sources have the teacher's vectors beside their own (``encoder.bag.names``).
    """

    def __init__(self, setting: Setting) -> None:
        architecture = setting.options.architecture.name
        if not isinstance(setting.teacher, BagEncoder) or architecture != "bag":
            raise ValueError(
                "--teacher: a bag can only add languages to a bag; pass mini, or a bag that 'adit "
                "train' wrote"
            )
        super().__init__(setting)
        self._names = {text.name: names(text.source) for text in setting.texts}

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """See ``translation_ranking``; nothing is learnt by the targets."""
        assert isinstance(self._options, AdditionOptions)
        named = [self._names[pairs.name][row] for row in rows]
        beside = torch.from_numpy(self._teacher.encode(named, normalize=False))
        own = model(sides[0])
        source = functional.normalize(own + beside.to(own.device))
        (target,) = self.taught(pairs, rows, source)
        both = parallel.gather(source), parallel.gather(target)
        return translation_ranking(*both, scale=self._options.scale, margin=self._options.margin)

    def whole(self, encoder: Encoder) -> Encoder:
        """Return the teacher with the encoder's languages, and its own names, added to it."""
        assert isinstance(encoder, BagEncoder) and isinstance(self._teacher, BagEncoder)
        return super().whole(encoder.with_names(self._teacher))


def distillation(
    source: Tensor, target: Tensor, teacher_source: Tensor, teacher_target: Tensor
) -> Tensor:
    """Return one minus the mean cosine of a student's vectors of a pair to its teacher's.

    Both sides are drawn to both of the teacher's vectors, so that what these differ in is averaged
    out (Reimers & Gurevych 2020, equation 1, with the cosine loss of Heffernan et al. 2022). All
    four are unit rows, float (B, D).
    """
    return 1 - ((source + target) * (teacher_source + teacher_target)).sum(dim=1).mean() / 4


def alignment(x: Tensor, y: Tensor, *, negatives: float) -> Tensor:
    """Return the mean of |x - y| - lambda (|x_c - y| + |x - y_c|), L2 norms of rows (B, D).

    The thesis's L_align (section 4.2.4): ``x`` are vectors of sentences, ``y`` those of their
    translations, ``negatives`` is lambda. ``x_c`` and ``y_c`` are those of the pair before, one at
    random as a batch is shuffled. There vectors are as long as the network makes them, here unit
    rows, as the classifier sees them.
    """

    def distance(one: Tensor, other: Tensor) -> Tensor:
        return torch.linalg.vector_norm(one - other, dim=1)

    wrong = distance(x.roll(1, dims=0), y) + distance(x, y.roll(1, dims=0))
    return (distance(x, y) - negatives * wrong).mean()
