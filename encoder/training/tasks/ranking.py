"""Translation ranking, of a translation above the rest of a batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from encoder.tokenizer import Tokens, join
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs
from encoder.training.options import RankingOptions
from encoder.training.tasks.task import Setting, Task

BLOCK = 8192  # pairs that are searched for each pair's negatives
CHUNK = 1024  # sentences per batch of negatives to embed


class Ranking(Task):
    """The task to rank translations above a batch and ``prepare``'s negatives."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        assert isinstance(setting.options.objective, RankingOptions)
        self._options, self._seed = setting.options.objective, setting.options.seed
        self._negatives: dict[str, Rows] = {}

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return ``translation_ranking`` of all processes' batches, a scalar."""
        options, negative_rows, negatives = self._options, self._negatives.get(pairs.name), None
        if negative_rows is not None:
            sides = [*sides, pairs.target.take(negative_rows[rows].ravel())]
        vectors = functional.normalize(model(join(sides)))
        source, target, negative_vectors = vectors.tensor_split([len(rows), 2 * len(rows)])
        both = parallel.gather(source), parallel.gather(target)
        if negative_rows is not None:
            negatives = parallel.gather(negative_vectors.unflatten(0, negative_rows[rows].shape))
        return translation_ranking(
            *both, scale=options.scale, margin=options.margin, negatives=negatives
        )

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Mine hard negatives, if asked for, leaving ``model`` in evaluation mode."""
        if count := self._options.hard_negatives:
            self._negatives = {
                p.name: mine_negatives(model, p, count=count, seed=self._seed) for p in pairs
            }


def translation_ranking(
    source: Tensor, target: Tensor, *, scale: float, margin: float, negatives: Tensor | None = None
) -> Tensor:
    """Return the loss of ranking translations in both directions, a scalar.

    Row i of ``target`` (B, D) translates row i of ``source`` (B, D), and the other rows are its
    negatives. All are unit rows. Logits are ``scale * (cos(x_i, y_j) - margin * [i == j])``, and
    ``scale`` is up to 40. The loss is the mean of the softmax cross entropies over rows and columns
    (Yang et al. 2019, equations 3 and 4). ``negatives`` (B, H, D) are H more per source.
    """
    # Under autocast this product is bfloat16, five times as fast if the hardware has it. Its
    # rounding (0.04 in a logit at scale 20) is below the noise of the negatives.
    logits = ((scale * source) @ target.T).float()
    logits.diagonal().sub_(scale * margin)
    # No logit is above the scale, so one exponential serves both softmaxes without overflow. The
    # matrix is not transposed, which would take longer than the product.
    exponentials = (logits - scale).exp()
    rows, columns = exponentials.sum(dim=1), exponentials.sum(dim=0)
    if negatives is not None:
        hard = torch.einsum("bd,bhd->bh", scale * source, negatives).float()
        rows = rows + (hard - scale).exp().sum(dim=1)
    normalisers = (rows.log() + columns.log()) / 2 + scale
    return (normalisers - logits.diagonal()).mean()


def mine_negatives(model: Model, pairs: TokenPairs, *, count: int, seed: int) -> Rows:
    """Find targets similar to each pair's, as positions (P, ``count``), int64.

    The most similar by the model's vectors are first, among up to 8192 random pairs (Chidambaram et
    al. 2019, section 2.2). A pair's own target, and targets of pairs that share a sentence with it,
    come last. If pairs are fewer than ``count``, they repeat. ``model`` is left in evaluation mode.
    """
    vectors = _embed(model, pairs.target)
    equal = [torch.from_numpy(_number_sentences(side)) for side in (pairs.source, pairs.target)]
    order = np.random.default_rng(seed).permutation(len(pairs.weight))
    negatives = np.empty((len(order), count), dtype=np.int64)
    for rows in np.array_split(order, -(-len(order) // BLOCK)):
        block = torch.from_numpy(rows)
        cosines = vectors[block] @ vectors[block].T
        for numbers in equal:
            is_same = numbers[block, None] == numbers[None, block]
            cosines[is_same.to(cosines.device)] = -torch.inf
        nearest = cosines.topk(min(count, len(rows)), dim=1).indices.cpu().numpy()
        negatives[rows] = rows[nearest[:, np.arange(count) % nearest.shape[1]]]
    return negatives


@torch.inference_mode()
def _embed(model: Model, tokens: Tokens) -> Tensor:
    model.eval()
    order = np.argsort(np.diff(tokens.offsets), kind="stable")
    chunks = np.split(order, range(CHUNK, len(order), CHUNK))
    vectors = [functional.normalize(model(tokens.take(rows)).float()) for rows in chunks]
    return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]


def _number_sentences(tokens: Tokens) -> Rows:
    numbers: dict[bytes, int] = {}
    rows = np.split(tokens.ids, tokens.offsets[1:-1])
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], np.int64)
