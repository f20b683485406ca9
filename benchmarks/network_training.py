"""Train the judge's comparison network on changed pairs of parallel text.

The network reads the vectors of all words of a pair. A convolution and self-attention (Vaswani et
al. 2017) add context to words. Each word attends to the words of the other side, and is compared
with their mean (Parikh et al. 2016). Outputs are log odds that words have no counterpart, and that
the sides translate each other.

Axes: ``B`` pairs, ``N`` and ``M`` words of both sides, ``K`` inputs and ``O`` outputs of a layer.
"""

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from changed_pairs import (
    CHANGES,
    DEVICE,
    UNCHANGED,
    Corpus,
    Lines,
    change_pairs,
    draw_kinds,
)
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional

from miner.judge.compiled_attention import LANES
from miner.judge.facts import MAX_BYTE, PARTS

HIDDEN, POOLED = 64, 64
MIXING = 12.0, 2.0, 0.0  # initial factors of cosines and of distances; score of no counterpart
INPUT_FACTOR = 4.0  # of vectors
BATCH, VIEWS = 512, 6  # correct pairs; pairs that each becomes, one of them unchanged
RATE, WARMUP, LAST_RATE, DECAY = 2e-3, 300, 0.02, 0.01  # of AdamW; batches; share; per step
NOISE, NOISY, NOISES = 0.03, 0.6, 65521  # greatest factor; share of pairs; different vectors
NEW_WEIGHT, ORDER_WEIGHT, SOURCE_WEIGHT = 4.0, 0.5, 0.3  # in the loss
REPORT_STEPS = 100
INSIDE, SCALED, SCALED_PAIRS = 0.9995, 6, 256  # share of inputs within 127 steps; batches; pairs
GROUPS = {"compare": [HIDDEN] * 4 + [1] * 7, "pool": [HIDDEN] * 3}  # inputs with equal steps


class Network(nn.Module):
    """The comparison network of word vectors with ``dim`` dimensions."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(dim, HIDDEN)
        self.context = nn.Linear(3 * HIDDEN, HIDDEN)
        self.attention = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.attended = nn.Linear(HIDDEN, HIDDEN)
        self.queries = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.compare = nn.Linear(4 * HIDDEN + 7, HIDDEN)
        self.compare_again = nn.Linear(HIDDEN, HIDDEN)
        self.word = nn.Linear(HIDDEN, 1)
        self.pool = nn.Linear(3 * HIDDEN, POOLED)
        self.score = nn.Linear(POOLED, 1)
        self.mixing = nn.Parameter(torch.tensor(MIXING))

    def forward(self, source: Lines, target: Lines) -> tuple[Tensor, Tensor, Tensor]:
        """Return log odds of B pairs, which mean nothing for padding.

        The first, (B,), are that the sides translate each other. The others are that the N words of
        each source, (B, N), and the M words of each target, (B, M), have no counterpart.
        """
        own, other = self._with_context(source), self._with_context(target)
        score, words = self._compare(source, own, target, other)
        other_score, other_words = self._compare(target, other, source, own)
        return score + other_score, words, other_words

    def _with_context(self, lines: Lines) -> Tensor:
        is_word = lines.is_word[..., None]
        hidden = torch.relu(self.inputs(lines.vectors * INPUT_FACTOR)) * is_word
        before, after = (functional.pad(hidden, (0, 0, shift, -shift)) for shift in (1, -1))
        three = torch.cat([before, hidden, after], dim=2)
        hidden = (hidden + torch.relu(self.context(three))) * is_word
        query, key, value = (
            self.attention(hidden).unflatten(2, (3, -1, LANES)).permute(2, 0, 3, 1, 4)
        )
        mask = lines.is_word[:, None, None]
        means = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended: Tensor = self.attended(means.transpose(1, 2).flatten(2))
        return (hidden + attended) * is_word

    def _compare(
        self, own: Lines, hidden: Tensor, other: Lines, other_hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        cosines = own.vectors @ other.vectors.mT
        distances = (_positions(own) - _positions(other).mT).abs()
        is_absent, is_word = ~other.is_word[:, None], own.is_word[..., None]
        alpha, posw, null = self.mixing
        scores = self.queries(hidden) @ other_hidden.mT / math.sqrt(HIDDEN)
        scores = alpha * cosines - posw * distances + scores
        scores = scores.masked_fill(is_absent, -1e4)
        shares = torch.cat([scores, null.expand(*hidden.shape[:2], 1)], dim=2).softmax(dim=2)
        shares, unmatched = shares[..., :-1], shares[..., -1:]
        match, weights = shares @ other_hidden, own.weights[..., None]
        parts = [
            *(hidden, match, hidden * match, (hidden - match).abs()),
            cosines.masked_fill(is_absent, -1).topk(2).values,
            (shares * cosines).sum(dim=2, keepdim=True),
            *(unmatched, weights),
            (shares * distances).sum(dim=2, keepdim=True),
            shares.amax(dim=2, keepdim=True),
        ]
        compared = torch.relu(self.compare(torch.cat(parts, dim=2)))
        compared = torch.relu(self.compare_again(compared)) * is_word
        weighted = (compared * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-3)
        mean = compared.sum(dim=1) / is_word.sum(dim=1)
        pooled = torch.relu(self.pool(torch.cat([compared.amax(dim=1), mean, weighted], dim=1)))
        return self.score(pooled)[:, 0], self.word(compared)[..., 0]


def _positions(lines: Lines) -> Tensor:
    places = torch.arange(lines.is_word.shape[1], device=lines.is_word.device) + 0.5
    return (places / lines.is_word.sum(dim=1, keepdim=True)).clamp(max=1)[..., None]


def loss_of(
    odds: Sequence[Tensor],
    sides: Sequence[Lines],
    kinds: Tensor,
    is_new: Tensor,
    is_changed: Tensor,
) -> Tensor:
    """Return the loss, a scalar, of log ``odds`` of pairs in ``VIEWS`` views.

    All pairs of a view come before the next, and the first view is unchanged. ``odds`` are the
    results of ``forward`` for ``sides``. ``kinds`` are the argument, ``is_new`` and ``is_changed``
    the results of ``change_pairs``. The loss is a weighted sum of cross entropies of pairs, of
    target words of kinds with labels or ``UNCHANGED``, and of source words of kind ``UNCHANGED``,
    and of the softplus of each changed pair's score less that of its first view.
    """
    entropy = partial(functional.binary_cross_entropy_with_logits, reduction="none")
    scores, source_odds, target_odds = (each.float() for each in odds)
    of_pairs = entropy(scores, (~is_changed).float()) * torch.where(is_changed, 1, VIEWS - 1)
    gaps = functional.softplus(scores - scores[: len(scores) // VIEWS].repeat(VIEWS))
    has_labels = [*(has_labels for _, has_labels in CHANGES.values()), True]  # last of UNCHANGED
    is_labelled = sides[1].is_word & torch.tensor(has_labels, device=DEVICE)[kinds][:, None]
    labels = is_new[:, : target_odds.shape[1]].float()
    of_targets = entropy(target_odds, labels) * torch.where(labels > 0, NEW_WEIGHT, 1)
    is_known = sides[0].is_word & (kinds == UNCHANGED)[:, None]
    return (
        of_pairs.mean()
        + ORDER_WEIGHT * _mean(gaps, is_changed)
        + _mean(of_targets, is_labelled)
        + SOURCE_WEIGHT * _mean(functional.softplus(source_odds), is_known)
    )


def _mean(values: Tensor, is_counted: Tensor) -> Tensor:
    return (values * is_counted).sum() / is_counted.sum().clamp(min=1)


def _add_noise(lines: Lines, rows: Tensor, noise: Tensor, factors: Tensor) -> Lines:
    added = noise[rows[:, : lines.vectors.shape[1]] % NOISES]
    return lines._replace(vectors=lines.vectors + added * factors.repeat(VIEWS)[:, None, None])


def train_network(
    corpus: Corpus, seen: int, steps: int, report: Callable[[int, float], object]
) -> Network:
    """Train a network on changed pairs.

    The first ``seen`` pairs, at least one and not all, are of text that encoders were trained on.
    They are half of each of ``steps`` batches. ``report`` is called every ``REPORT_STEPS`` steps
    with the step, from 1, and the mean loss since the last call. Torch's global seed is set.
    """
    torch.manual_seed(1)
    network = Network(corpus.vectors.shape[1]).to(DEVICE)
    noise = torch.randn(NOISES, corpus.vectors.shape[1], device=DEVICE)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    total = torch.zeros((), device=DEVICE)
    parts = (0, seen), (seen, len(corpus.sources))
    for step in range(steps):
        decay = LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.param_groups[0]["lr"] = RATE * min(1, step / WARMUP) * decay
        halves = [torch.randint(*part, (BATCH // 2,), device=DEVICE) for part in parts]
        pairs = torch.cat(halves).repeat(VIEWS)
        kinds = draw_kinds(corpus, pairs)
        kinds[:BATCH] = UNCHANGED
        *rows, is_new, is_changed = change_pairs(corpus, pairs, kinds)
        factors = NOISE * torch.rand(BATCH, device=DEVICE)
        factors *= torch.rand(BATCH, device=DEVICE) < NOISY
        sides = [_add_noise(corpus.look_up(side), side, noise, factors) for side in rows]
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=DEVICE.type == "cuda"):
            loss = loss_of(network(*sides), sides, kinds, is_new, is_changed)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
        if (step + 1) % REPORT_STEPS == 0:
            report(step + 1, float(total) / REPORT_STEPS)
            total.zero_()
    return network


@torch.no_grad()
def rate_changes(network: Network, corpus: Corpus) -> dict[str, float]:
    """Rate how well scores tell correct pairs from each of ``CHANGES``.

    Values by name are areas under ROC curves, without impossible changes. Torch's seed is set.
    """
    torch.manual_seed(5)
    pairs, by_kind = torch.arange(len(corpus.sources), device=DEVICE), []
    for kind in range(UNCHANGED, len(CHANGES)):
        rated = []
        for part in torch.split(pairs, BATCH):
            *rows, _, is_changed = change_pairs(corpus, part, torch.full_like(part, kind))
            scores = network(*map(corpus.look_up, rows))[0]
            rated.append(scores[is_changed == (kind != UNCHANGED)])
        by_kind.append(_array(torch.cat(rated)))
    right = by_kind[0]
    return {
        name: float(roc_auc_score([1] * len(right) + [0] * len(wrong), [*right, *wrong]))
        for name, wrong in zip(CHANGES, by_kind[1:], strict=True)
        if len(wrong)
    }


def save_network(path: Path, network: Network, corpus: Corpus, about: dict[str, object]) -> None:
    """Write or replace a network in whole numbers.

    A layer is ``clip(rint(x * steps), -127, 127) @ weight * scale + bias``. ``NAME.steps`` is
    float32 (K,), ``NAME.weight`` int8 (K, O), and ``NAME.scale`` and ``NAME.bias`` float32 (O,).
    Changed pairs of ``corpus`` choose the steps, except for ``PARTS`` of ``inputs``. Torch's global
    seed is set. ``mixing`` is float32 (3,). The metadata are the encoders and ``about``, whose
    values become JSON.
    """
    arrays, steps = {"mixing": _array(network.mixing)}, _steps_of(network, corpus)
    for name, layer in network.named_children():
        assert isinstance(layer, nn.Linear)
        weight = _array(layer.weight).T / steps[name][:, None].astype(np.float64)
        weight *= INPUT_FACTOR if name == "inputs" else 1
        scale = np.abs(weight).max(axis=0) / MAX_BYTE
        scale[scale == 0] = 1
        bias = np.zeros(len(scale), np.float32) if layer.bias is None else _array(layer.bias)
        arrays |= {f"{name}.steps": steps[name], f"{name}.bias": bias}
        arrays[f"{name}.weight"] = np.ascontiguousarray(np.rint(weight / scale), dtype=np.int8)
        arrays[f"{name}.scale"] = scale.astype(np.float32)
    about = {"encoders": sorted(corpus.encoders), **about}
    save_file(arrays, path, metadata={key: json.dumps(value) for key, value in about.items()})


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy()


@torch.no_grad()
def _steps_of(network: Network, corpus: Corpus) -> dict[str, NDArray[np.float32]]:
    torch.manual_seed(3)
    most: dict[str, NDArray[np.float64]] = {}

    def see(name: str, layer: nn.Module, inputs: tuple[Tensor]) -> None:
        values = _array(inputs[0].abs().flatten(0, -2))
        sizes = GROUPS.get(name, [values.shape[1]])
        parts = np.split(values, np.cumsum(sizes)[:-1], axis=1)
        found = [np.quantile(part[part > 0], INSIDE) if part.any() else 0 for part in parts]
        most[name] = np.maximum(most.get(name, 1e-6), np.repeat(found, sizes))

    layers = network.named_children()
    hooks = [layer.register_forward_pre_hook(partial(see, name)) for name, layer in layers]
    for _ in range(SCALED):
        pairs = torch.randint(len(corpus.sources), (SCALED_PAIRS,), device=DEVICE)
        rows = change_pairs(corpus, pairs, draw_kinds(corpus, pairs))[:2]
        network(*map(corpus.look_up, rows))
    for hook in hooks:
        hook.remove()
    steps = {name: (MAX_BYTE / value).astype(np.float32) for name, value in most.items()}
    return steps | {"inputs": np.full_like(steps["inputs"], PARTS)}
