"""Translation ranking: a translation is nearer than the other sentences of a batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from encoder.tokenizer import Tokens
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs, join
from encoder.training.options import RankingOptions
from encoder.training.tasks.task import Setting, Task

BLOCK = 8192  # pairs among which each one's negatives are looked for
CHUNK = 1024  # sentences that are embedded at once


class Ranking(Task):
    """Translation ranking; from the first evaluation on also against hard negatives, if asked."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        assert isinstance(setting.options.objective, RankingOptions)
        self._options, self._seed = setting.options.objective, setting.options.seed
        self._negatives: dict[str, Rows] = {}

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Rank against the batch of all processes, see ``translation_ranking``."""
        options, hard, negatives = self._options, self._negatives.get(pairs.name), None
        if hard is not None:
            sides = [*sides, pairs.target.take(hard[rows].ravel())]
        vectors = functional.normalize(model(join(sides)))
        source, target, others = vectors.tensor_split([len(rows), 2 * len(rows)])
        both = parallel.gather(source), parallel.gather(target)
        if hard is not None:
            negatives = parallel.gather(others.unflatten(0, hard[rows].shape))
        return translation_ranking(
            *both, scale=options.scale, margin=options.margin, negatives=negatives
        )

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Mine hard negatives with the model as it stands."""
        if count := self._options.hard_negatives:
            self._negatives = {
                one.name: mine_negatives(model, one, count=count, seed=self._seed) for one in pairs
            }


def translation_ranking(
    source: Tensor, target: Tensor, *, scale: float, margin: float, negatives: Tensor | None = None
) -> Tensor:
    """Return the loss of in-batch translation ranking in both directions with an additive margin.

    Row ``i`` of ``target`` (B, D) translates row ``i`` of ``source`` (B, D); the other B - 1 rows
    are its negatives. All are unit rows. The logits are ``scale * (cos(x_i, y_j) - margin * [i ==
    j])``, and the loss is the mean of the softmax cross entropies over rows and over columns
    (Chidambaram et al. 2019, equation 2, which has one direction, with both and the additive margin
    of Yang et al. 2019, equations 3 and 4). Hard ``negatives`` (B, H, D) are H wrong translations
    of each source, which it is ranked against, too (Chidambaram et al. 2019, section 2.2).
    """
    # Under autocast this product is bfloat16, five times as fast where the hardware has it; its
    # rounding (0.04 in a logit at scale 20) is below the noise of the negatives.
    logits = ((scale * source) @ target.T).float()
    logits.diagonal().sub_(scale * margin)
    # No logit is above the scale, so one exponential serves both softmaxes without overflow, and
    # the matrix is never transposed: that would cost more than the product.
    exponentials = (logits - scale).exp()
    rows, columns = exponentials.sum(dim=1), exponentials.sum(dim=0)
    if negatives is not None:
        hard = torch.einsum("bd,bhd->bh", scale * source, negatives).float()
        rows = rows + (hard - scale).exp().sum(dim=1)
    normalisers = (rows.log() + columns.log()) / 2 + scale
    return (normalisers - logits.diagonal()).mean()


def mine_negatives(model: Model, pairs: TokenPairs, *, count: int, seed: int) -> Rows:
    """Return rows of the ``count`` targets most like each pair's own: int64 (P, count).

    "Semantically similar to the correct translation" (Chidambaram et al. 2019, section 2.2), as
    the model stands, among ``BLOCK`` pairs drawn at random. Targets of an equal sentence on either
    side may be right and are left out; where too few are left, the nearest of them stand in.
    """
    vectors = _embed(model, pairs.target)
    equal = [torch.from_numpy(_numbers(side)) for side in (pairs.source, pairs.target)]
    order = np.random.default_rng(seed).permutation(len(pairs.weight))
    found = np.empty((len(order), count), dtype=np.int64)
    for rows in np.array_split(order, -(-len(order) // BLOCK)):
        there = torch.from_numpy(rows)
        cosines = vectors[there] @ vectors[there].T
        for numbers in equal:
            same = numbers[there, None] == numbers[None, there]
            cosines[same.to(cosines.device)] = -torch.inf
        nearest = cosines.topk(min(count, len(rows)), dim=1).indices.cpu().numpy()
        found[rows] = rows[nearest[:, np.arange(count) % nearest.shape[1]]]
    return found


@torch.inference_mode()
def _embed(model: Model, tokens: Tokens) -> Tensor:
    """Return unit vectors (S, D), without dropout."""
    model.eval()
    order = np.argsort(np.diff(tokens.offsets), kind="stable")
    chunks = np.split(order, range(CHUNK, len(order), CHUNK))
    vectors = [functional.normalize(model(tokens.take(rows)).float()) for rows in chunks]
    return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]


def _numbers(tokens: Tokens) -> Rows:
    """Return equal numbers for equal sentences: int64 (S,)."""
    numbers: dict[bytes, int] = {}
    ids = np.split(tokens.ids, tokens.offsets[1:-1])
    return np.array([numbers.setdefault(one.tobytes(), len(numbers)) for one in ids], np.int64)
