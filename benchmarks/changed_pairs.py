"""Pairs of parallel text and changes of them, for training of the judge.

Axes: ``P`` pairs, ``B`` of a batch, ``T`` English texts, ``W`` words, ``R`` different, ``D`` dim.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from synthetic_corpora import Spoil, name, negation, number, sense
from torch import Tensor

from encoder import Encoder
from encoder.training.reading import ParallelText
from encoder.words import Words, word_encoders
from miner.judge.facts import PARTS, whole_vectors
from miner.judge.network import HEAVY
from miner.numbers import with_ascii_digits
from miner.threads import blocks

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LENGTH = 64  # words of a sentence that are read
SIMILAR_TEXTS, MAX_COSINE = [0, 3, 7], 0.92  # ranks of similar English texts; limit of cosines
SIMILAR_WORDS = list(range(2, 40))  # ranks of similar words
AT_ONCE = 2048  # rows whose cosines are in memory
PARTNERS = 50  # pairs whose sentences may be added to the pair before them
TEXT_CHANGES: tuple[Spoil, ...] = (name, negation, sense, number)
# Changes, how often they are drawn, and whether the words are labelled that they add to a target.
CHANGES = {
    "name": (2.2, True),
    "negation": (1.6, True),
    "sense": (3.4, True),
    "number": (0.8, True),
    "similar target": (1.3, False),
    "similar word": (2.0, True),
    "cut target": (1.5, False),
    "cut source": (1.5, False),
    "added to target": (0.5, True),
    "added to source": (0.5, False),
    "random word": (0.6, True),
    "removed word": (0.7, False),
}
KINDS = dict(zip(CHANGES, range(len(CHANGES)), strict=True))
UNCHANGED = -1  # kind of pairs without a change


class Lines(NamedTuple):
    """The words of B sentences, padded with zeros to W words.

    ``vectors`` are float32 (B, W, D). ``weights``, float32 (B, W), contain the factor ``HEAVY``.
    ``is_word``, bool (B, W), is False for padding, except in the first column.
    """

    vectors: Tensor
    weights: Tensor
    is_word: Tensor


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Pairs of other languages with English, as tensors on ``DEVICE``.

    Attributes:
        vectors: A zero row, E English words, then others, in units of 1 / ``PARTS``, int8 (R, D).
        weights: Weights of words times ``HEAVY``, float32 (R,).
        similar: The 38 rows similar to each of the first E + 1, among these, int64 (E + 1, 38).
        sources: Rows of the first words of P sources, 0 after the end, int32 (P, LENGTH).
        targets: The same of P targets, then of changed targets, int32 (T, LENGTH).
        others: Positions in ``targets``, int64 (P, C + 1, 3): three changed targets for each of C
            ``TEXT_CHANGES``, maybe duplicates, -1 if none; then three similar targets.
        encoders: Names of the word encoders.
    """

    vectors: Tensor
    weights: Tensor
    similar: Tensor
    sources: Tensor
    targets: Tensor
    others: Tensor
    encoders: frozenset[str]

    def look_up(self, rows: Tensor) -> Lines:
        """Return the words of sentences, with rows (B, LENGTH) as in ``sources``.

        W is the number of words of the longest, at least 2.
        """
        rows = rows[:, : max(2, int((rows > 0).sum(dim=1).max()))]
        is_word = rows > 0
        is_word[:, 0] = True
        return Lines(self.vectors[rows].float() / PARTS, self.weights[rows], is_word)


def read_corpus(texts: Sequence[ParallelText], encoder: Encoder) -> Corpus:
    """Read the words of texts whose target is English, and change the English.

    Each text needs 8 pairs, and all together 39 different English words. ``encoder`` must be a
    ``WordEncoder``. Errors of ``Encoder.for_language`` are raised.
    """
    english = [line for text in texts for line in text.target]
    others = np.full((len(english), len(TEXT_CHANGES) + 1, len(SIMILAR_TEXTS)), -1)
    first = 0
    for text in texts:
        random = Random(text.name)
        for row, line in enumerate(text.target, first):
            for kind, change in enumerate(TEXT_CHANGES):
                new = dict.fromkeys(change(line, random, text.target) for _ in range(2))
                new.pop(line, None)
                if new:
                    others[row, kind] = np.resize(
                        len(english) + np.arange(len(new)), len(SIMILAR_TEXTS)
                    )
                    english += new
        sentences = _tensor(encoder.for_language("en").encode(text.target))
        similar = _nearest(sentences, SIMILAR_TEXTS, MAX_COSINE).cpu().numpy()
        others[first : first + len(text), -1] = first + similar
        first += len(text)
    vectors, weights = [np.zeros((1, encoder.dim), np.int8)], [np.zeros(1, np.float32)]
    rows, sides = [], [english, *(text.source for text in texts)]
    makers = word_encoders(encoder, ["en", *(text.name.partition("-")[0] for text in texts)])
    for maker, lines in zip(makers, sides, strict=True):
        words = maker.words(with_ascii_digits(lines))
        rows.append(_rows(words, sum(map(len, vectors))))
        vectors.append(whole_vectors(words.vectors))
        weights.append(words.weights * HEAVY)
    table = _tensor(np.concatenate(vectors))
    return Corpus(
        vectors=table,
        weights=_tensor(np.concatenate(weights)),
        similar=_nearest(table[: 1 + len(vectors[1])].float() / PARTS, SIMILAR_WORDS, math.inf),
        sources=_tensor(np.concatenate(rows[1:])),
        targets=_tensor(rows[0]),
        others=_tensor(others),
        encoders=frozenset(maker.name for maker in makers),
    )


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(array).to(DEVICE)


def _rows(words: Words, first: int) -> NDArray[np.int32]:
    counts = np.diff(words.offsets)
    sentences = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(words.ids)) - np.repeat(words.offsets[:-1], counts)
    rows, is_kept = np.zeros((len(counts), LENGTH), dtype=np.int32), places < LENGTH
    rows[sentences[is_kept], places[is_kept]] = words.ids[is_kept] + first
    return rows


def _nearest(vectors: Tensor, ranks: list[int], most: float) -> Tensor:
    nearest = []
    for part in blocks(len(vectors), AT_ONCE):
        cosines = vectors[part] @ vectors.T
        cosines.diagonal(part.start).fill_(-1)
        cosines[cosines > most] = -1
        nearest.append(cosines.topk(max(ranks) + 1).indices[:, ranks])
    return torch.cat(nearest)


def draw_kinds(corpus: Corpus, pairs: Tensor) -> Tensor:
    """Draw a change of each pair by the frequencies in ``CHANGES``.

    ``pairs`` are positions in ``corpus``, int64 (B,), and the result positions in ``CHANGES``,
    int64 (B,). A similar word or a cut target replaces a change for which a pair has no text.
    """
    frequencies = torch.tensor([[frequency for frequency, _ in CHANGES.values()]], device=DEVICE)
    frequencies = frequencies.repeat(len(pairs), 1)
    texts = corpus.others.shape[1]
    missing = frequencies[:, :texts] * (corpus.others[pairs, :, 0] < 0)
    frequencies[:, :texts] -= missing
    for kind in ("similar word", "cut target"):
        frequencies[:, KINDS[kind]] += missing.sum(dim=1) / 2
    return frequencies.multinomial(1)[:, 0]


def change_pairs(
    corpus: Corpus, pairs: Tensor, kinds: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Change pairs by ``kinds``, at random places and by random texts.

    ``pairs`` are positions in ``corpus``, and ``kinds`` positions in ``CHANGES`` or ``UNCHANGED``,
    both int64 (B,). A pair whose change is impossible, such as of absent numbers, stays as it is.
    The results are rows of the words of sources, and of targets, int64 (B, LENGTH); whether a word
    of a new target is not in the correct one, bool (B, LENGTH); whether a pair changed, bool (B,).
    """
    partners = (pairs + torch.randint_like(pairs, 1, PARTNERS)) % len(corpus.sources)
    source, target = corpus.sources[pairs].long(), corpus.targets[pairs].long()
    other_source, other = corpus.sources[partners].long(), corpus.targets[partners].long()
    kinds_of_texts = kinds.clamp(0, corpus.others.shape[1] - 1)
    texts = corpus.others[pairs, kinds_of_texts, torch.randint_like(pairs, len(SIMILAR_TEXTS))]
    text = corpus.targets[torch.where(texts < 0, pairs, texts)].long()
    place, random_word = _draw_place(corpus, target), other.gather(1, _draw_place(corpus, other))
    similar = corpus.similar[target.gather(1, place)[:, 0]]
    similar_word = similar.gather(1, torch.randint_like(pairs, similar.shape[1])[:, None])
    sources = {"cut source": _cut(source), "added to source": _add(source, other_source)}
    targets = {
        **dict.fromkeys(list(CHANGES)[: corpus.others.shape[1]], text),
        "similar word": target.scatter(1, place, similar_word),
        "random word": target.scatter(1, place, random_word),
        "removed word": _compact(target.scatter(1, place, 0)),
        "cut target": _cut(target),
        "added to target": _add(target, other),
    }
    new_source, new_target = source, target
    for kind, changed in sources.items():
        new_source = torch.where((kinds == KINDS[kind])[:, None], changed, new_source)
    for kind, changed in targets.items():
        new_target = torch.where((kinds == KINDS[kind])[:, None], changed, new_target)
    is_new = (new_target[:, :, None] != target[:, None]).all(dim=2) & (new_target > 0)
    is_changed = ((new_source != source) | (new_target != target)).any(dim=1)
    return new_source, new_target, is_new, is_changed


def _draw_place(corpus: Corpus, rows: Tensor) -> Tensor:
    return corpus.weights[rows].clamp(min=1e-6).multinomial(1)


def _compact(rows: Tensor) -> Tensor:
    return rows.gather(1, (rows == 0).byte().argsort(dim=1, stable=True))


def _uniform(rows: Tensor) -> Tensor:
    return torch.rand(len(rows), 1, device=rows.device)


def _cut(rows: Tensor) -> Tensor:
    counts = (rows > 0).sum(dim=1, keepdim=True)
    removed = (counts * (0.15 + 0.45 * _uniform(rows))).round().long().clamp(min=1)
    where, start = _uniform(rows), (_uniform(rows) * (counts - removed + 1)).long()
    start = torch.where(where < 0.65, counts - removed, start) * (where >= 0.3)
    places = torch.arange(rows.shape[1], device=rows.device)
    return _compact(rows * ((places < start) | (places >= start + removed)))


def _add(rows: Tensor, others: Tensor) -> Tensor:
    shares = torch.where(_uniform(rows) < 0.6, 0.25 + 0.5 * _uniform(rows), 1)
    counts = ((others > 0).sum(dim=1, keepdim=True) * shares).long().clamp(min=1)
    others = others * (torch.arange(rows.shape[1], device=rows.device) < counts)
    after, before = torch.cat([rows, others], dim=1), torch.cat([others, rows], dim=1)
    both = torch.where(_uniform(rows) < 0.5, before, after)
    return _compact(both)[:, : rows.shape[1]]
