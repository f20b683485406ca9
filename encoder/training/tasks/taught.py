"""Objectives with a teacher, which are distillation and added languages."""

import logging

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from encoder import Encoder
from encoder.bag.encoder import BagEncoder, find_names
from encoder.tokenizer import Tokens, join
from encoder.trained import TrainedNetwork
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs
from encoder.training.options import AdditionOptions, AlignmentOptions
from encoder.training.tasks.ranking import translation_ranking
from encoder.training.tasks.task import Setting, Task

logger = logging.getLogger(__name__)


class Taught(Task):
    """Base class of objectives that learn the vectors of a setting's teacher.

    It encodes targets, and sources unless ``one_sided``, at once. Distinct ones take 6, later 2
    bytes per dimension. ValueError says that the teacher is missing or has other dimensions.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        teacher = setting.teacher
        if teacher is None:
            name = setting.options.objective.name
            raise ValueError(f"--objective {name} requires --teacher ENCODER")
        if teacher.dim != setting.dim:
            raise ValueError(
                f"--dim {setting.dim}: the --teacher has {teacher.dim} dimensions; pass --dim "
                f"{teacher.dim}"
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

    def _teacher_vectors(self, pairs: TokenPairs, rows: Rows, like: Tensor) -> list[Tensor]:
        vectors = (self._vectors[side[rows]] for side in self._rows[pairs.name])
        return [torch.from_numpy(matrix).to(like.device).float() for matrix in vectors]


class Distillation(Taught):
    """The task to match a teacher's vectors of both sides."""

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return ``distillation`` of both sides of the pairs, a scalar."""
        student = functional.normalize(model(join(sides)).float())
        return distillation(*student.split(len(rows)), *self._teacher_vectors(pairs, rows, student))


class Alignment(Taught):
    """The task to match a teacher's vectors of the sources' translations.

    ValueError says that the teacher is not a bag or trained network of the same dimensions.
    """

    def __init__(self, setting: Setting) -> None:
        if not isinstance(setting.teacher, BagEncoder | TrainedNetwork):
            name = getattr(setting.teacher, "name", None)
            raise ValueError(
                f"--teacher: languages cannot be added to {name}; pass mini, or a folder that "
                "'adit train' wrote"
            )
        super().__init__(setting)
        self._teacher = setting.teacher

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return ``alignment`` of ``sides[0]`` in all processes' batches."""
        assert isinstance(self._options, AlignmentOptions)
        source = functional.normalize(model(sides[0]).float())
        (target,) = self._teacher_vectors(pairs, rows, source)
        both = parallel.gather(target), parallel.gather(source)
        return alignment(*both, negatives=self._options.negatives)

    def deploy(self, encoder: Encoder) -> Encoder:
        """Return a copy of the teacher, with ``encoder`` for sources' languages."""
        return self._teacher.with_languages(self._languages, lambda: encoder)


class Addition(Alignment):
    """The task to rank targets, by a teacher's vectors, for each source.

    Names in the sources also have the teacher's vectors (``encoder.bag.encoder.find_names``).
    ValueError says that the teacher and the architecture are not bags of the same dimensions.
    """

    def __init__(self, setting: Setting) -> None:
        architecture = setting.options.architecture.name
        if not isinstance(setting.teacher, BagEncoder) or architecture != "bag":
            if architecture != "bag":
                wrong, right = f"--architecture {architecture}", "use --architecture bag"
            else:
                wrong = f"--teacher {getattr(setting.teacher, 'name', None)}"
                right = "pass mini, or another bag that 'adit train' wrote"
            raise ValueError(f"{wrong} conflicts with --objective addition; {right}")
        super().__init__(setting)
        self._names = {text.name: find_names(text.source) for text in setting.texts}

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return ``translation_ranking`` of all processes' ``sides[0]``."""
        assert isinstance(self._options, AdditionOptions)
        names_of_rows = [self._names[pairs.name][row] for row in rows]
        name_vectors = torch.from_numpy(self._teacher.encode(names_of_rows, normalize=False))
        own_vectors = model(sides[0])
        source = functional.normalize(own_vectors + name_vectors.to(own_vectors.device))
        (target,) = self._teacher_vectors(pairs, rows, source)
        both = parallel.gather(source), parallel.gather(target)
        return translation_ranking(*both, scale=self._options.scale, margin=self._options.margin)

    def deploy(self, encoder: Encoder) -> Encoder:
        """Return ``Alignment.deploy`` of the bag's ``with_names(teacher)``."""
        assert isinstance(encoder, BagEncoder) and isinstance(self._teacher, BagEncoder)
        return super().deploy(encoder.with_names(self._teacher))


def distillation(
    source: Tensor, target: Tensor, teacher_source: Tensor, teacher_target: Tensor
) -> Tensor:
    """Return 1 minus the mean cosine of a student's and a teacher's vectors.

    All are unit rows (B, D). Each side is compared with both of the teacher's vectors (Reimers &
    Gurevych 2020, equation 1, with the cosine loss of Heffernan et al. 2022).
    """
    return 1 - ((source + target) * (teacher_source + teacher_target)).sum(dim=1).mean() / 4


def alignment(x: Tensor, y: Tensor, *, negatives: float) -> Tensor:
    """Return the loss of vectors that should match their translations.

    It is the mean of ``|x - y| - negatives * (|x_c - y| + |x - y_c|)``, L_align of Conneau's thesis
    (2018, section 4.2.4), for unit vectors (B, D) of sentences ``x`` and of their translations
    ``y``. ``x_c`` and ``y_c`` are of the pair before, at random because batches are shuffled.
    """

    def distance(first: Tensor, second: Tensor) -> Tensor:
        return torch.linalg.vector_norm(first - second, dim=1)

    wrong_distances = distance(x.roll(1, dims=0), y) + distance(x, y.roll(1, dims=0))
    return (distance(x, y) - negatives * wrong_distances).mean()
