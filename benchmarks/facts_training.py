"""Train the judge's model of facts on parallel text.

A meaning is a frequent English word. Linear outputs over the vectors of words say whether the
English side of a pair contains it, given the words of one side. Its log odds are the level of
``find_levels`` plus a bias. This is logistic regression over bags of instances (Maron &
Lozano-Pérez 1998). English sentences also predict themselves, so that levels of both sides can be
compared.

Axes: ``B`` pairs of a batch, ``U`` different words, ``D`` dim, ``H`` hidden units, ``M`` meanings.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from synthetic_corpora import LISTED_GROUPS

from encoder.training.reading import ParallelText
from encoder.words import WordEncoder
from miner.compiling import compiled
from miner.judge.compiled import LEVEL
from miner.judge.facts import MAX_BYTE, PARTS, whole_vectors
from miner.numbers import with_ascii_digits

HIDDEN = 64
MEANINGS = 2048
MIN_COUNT = 15  # English sentences with a word that is listed
COUNTED = 9000  # English sentences per language that choose the meanings
COMMON = frozenset(
    "the of and to a in is for that on as with it be are by this an at from or was which you can "
    "your if i will we".split()
)  # words that most sentences have, whatever they say
BATCH = 256
ENGLISH = 0.15  # share of batches from the English side, per language
RATE, WARMUP, LAST_RATE = 0.02, 100, 0.02  # of learning; batches; share of the rate at the end
SIZE_POWER = 0.7  # of the number of sentences, for the share of a side
MAX_ODDS = 30.0
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.99  # of Adam, per step
REPORT_STEPS = 500
SAMPLED = 500  # words per side that scale hidden units
INSIDE = 0.9995  # share of values that need no clipping
_compile = compiled()
_WORD = re.compile(r"[a-z]+n['\u2019]t\b|[a-z]+|%")


def english_words(text: str) -> list[str]:
    """Split a text into lower-case words of a to z, in order.

    "Can't" becomes "not", "ca", like other negations. "%" is a word. All else separates words.
    """
    words = []
    for word in _WORD.findall(text.lower()):
        is_negated = word.endswith(("n't", "n\u2019t", "cannot"))
        words += ["not", word[:-3]] if is_negated else [word]
    return words


def choose_meanings(texts: Iterable[Sequence[str]]) -> list[str]:
    """Choose the meanings from the English texts of several languages.

    They are at most ``MEANINGS`` words: first the words of ``LISTED_GROUPS`` in at least
    ``MIN_COUNT`` sentences, sorted, then the most frequent other words of two letters or more,
    except for ``COMMON``, ties by first use. The first ``COUNTED`` sentences of each text count.
    """
    counts: Counter[str] = Counter()
    for lines in texts:
        for line in lines[:COUNTED]:
            counts.update([*dict.fromkeys(english_words(line))])  # ties keep the order of words
    listed = {word for group in LISTED_GROUPS for sense in group for word in sense}
    chosen = sorted(word for word in listed if counts[word] >= MIN_COUNT)
    ranked = (word for word, _ in counts.most_common() if word not in listed | COMMON)
    return [*chosen, *(word for word in ranked if len(word) > 1)][:MEANINGS]


@dataclass(frozen=True, kw_only=True)
class Side:
    """Sentences of one side, and the meanings in their English side.

    Attributes:
        vectors: Rows of the different words, int8 (U, D), in units of 1 / ``PARTS``.
        ids: Rows of the words of all sentences, int32 (W,).
        offsets: First word of each of S sentences, and W, int64 (S + 1,).
        meanings: Numbers of the meanings in each English sentence, int32, ascending, possibly none.
        share: Weight of the side in the choice of batches.
    """

    vectors: NDArray[np.int8]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    meanings: Sequence[NDArray[np.int32]]
    share: float

    def batch(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the words of sentences at positions ``rows`` (B,).

        The results are vectors of the batch's different words, float32 (U, D), each word's row in
        them, int32 (W,), and the first word of each sentence, and W, int64 (B + 1,).
        """
        counts = self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.concatenate([[0], counts.cumsum()])
        places = np.repeat(self.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
        used, ids = np.unique(self.ids[places], return_inverse=True)
        return self.vectors[used] / np.float32(PARTS), ids.astype(np.int32), offsets


def sides_of(
    text: ParallelText, makers: Sequence[WordEncoder], names: Sequence[str]
) -> Iterator[Side]:
    """Yield the source, then the target side of parallel text into English.

    ``makers`` are the word encoders of both sides, and ``names`` the words that are meanings.
    """
    numbers = {name: number for number, name in enumerate(names)}
    meanings = [
        np.array(sorted({numbers[word] for word in words if word in numbers}), dtype=np.int32)
        for words in map(english_words, text.target)
    ]
    for maker, lines, share in zip(makers, (text.source, text.target), (1, ENGLISH), strict=True):
        words = maker.words(with_ascii_digits(lines))
        yield Side(
            vectors=whole_vectors(words.vectors),
            ids=words.ids,
            offsets=words.offsets,
            meanings=meanings,
            share=share * len(lines) ** SIZE_POWER,
        )


@_compile
def find_levels(words: Any, ids: Any, offsets: Any, joining: Any, levels: Any, places: Any) -> None:
    """Find the level of each of M meanings in each of B sentences.

    The level is the highest of the sentence's words and pairs of neighbouring words. A pair has the
    sum of both levels and ``joining``. Without words, the level is -inf.

    Args:
        words: Levels of U words, float32 (U, M).
        ids: Rows in ``words`` of the words of all sentences, int32 (W,).
        offsets: First word of each sentence, and W, int64 (B + 1,).
        joining: Added to the level of two neighbouring words, a float.
        levels: Filled with levels, float32 (B, M).
        places: Filled with twice the index in ``ids`` of the word with the level, plus 1 if it is
            the first of two words, int32 (B, M). -1 without words. The first place wins ties.
    """
    for sentence in range(len(levels)):
        level, place = levels[sentence], places[sentence]
        level[:], place[:] = -np.inf, -1
        for at in range(offsets[sentence], offsets[sentence + 1]):
            word = words[ids[at]]
            for meaning in range(len(level)):
                if word[meaning] > level[meaning]:
                    level[meaning], place[meaning] = word[meaning], 2 * at
            if at + 1 < offsets[sentence + 1]:
                following = words[ids[at + 1]]
                for meaning in range(len(level)):
                    both = word[meaning] + following[meaning] + joining
                    if both > level[meaning]:
                        level[meaning], place[meaning] = both, 2 * at + 1


@_compile
def spread_gradients(gradients: Any, places: Any, ids: Any, of_words: Any) -> Any:
    """Add gradients of levels to words' gradients, and return ``joining``'s.

    ``gradients``, float32 (B, M), are of the levels at ``places``, int32 (B, M), which
    ``find_levels`` filled from ``ids``, int32 (W,). They are added to ``of_words``, float32 (U, M).
    """
    joining = 0.0
    for sentence in range(len(gradients)):
        for meaning in range(gradients.shape[1]):
            gradient, place = gradients[sentence, meaning], places[sentence, meaning]
            if place < 0:
                continue
            of_words[ids[place >> 1], meaning] += gradient
            if place & 1:
                of_words[ids[(place >> 1) + 1], meaning] += gradient
                joining += gradient
    return joining


class Learner:
    """Parameters of the model during training with Adam (Kingma & Ba 2015).

    ``values`` are float32 ``hidden`` (D, H), ``outputs`` (M, H), ``biases`` (M,), ``joining`` (1,).
    """

    def __init__(self, dim: int, rates: NDArray[np.float64]) -> None:
        """Draw random parameters for vectors of ``dim`` dimensions.

        ``rates`` (M,) are the shares, above 0, of sentences that have each meaning.
        """
        random = np.random.default_rng(1)
        self.values: dict[str, NDArray[np.float32]] = {
            "hidden": (random.standard_normal((dim, HIDDEN)) / 16).astype(np.float32),
            "outputs": (random.standard_normal((len(rates), HIDDEN)) / 2).astype(np.float32),
            "biases": (np.log(rates) - 1).astype(np.float32),
            "joining": np.array([-2], dtype=np.float32),
        }
        self._means = {name: np.zeros_like(value) for name, value in self.values.items()}
        self._squares = {name: np.zeros_like(value) for name, value in self.values.items()}
        self._steps = 0

    def step(self, side: Side, rows: NDArray[np.int64], rate: float) -> float:
        """Change the parameters by a batch, the sentences at ``rows`` of a side.

        ``rate`` is the learning rate. The result is the mean loss per sentence before the step.
        """
        values = self.values
        vectors, ids, offsets = side.batch(rows)
        hidden = vectors @ values["hidden"]
        word_levels = hidden @ values["outputs"].T
        levels = np.empty((len(rows), word_levels.shape[1]), dtype=np.float32)
        places = np.empty(levels.shape, dtype=np.int32)
        find_levels(word_levels, ids, offsets, values["joining"][0], levels, places)
        levels = np.clip(levels + values["biases"], -MAX_ODDS, MAX_ODDS)
        is_said = np.zeros(levels.shape, dtype=np.bool_)
        for number, row in enumerate(rows.tolist()):
            is_said[number, side.meanings[row]] = True
        loss = float(np.log1p(np.exp(np.where(is_said, -levels, levels))).sum()) / len(rows)
        gradients = (1 / (1 + np.exp(-levels)) - is_said).astype(np.float32) / len(rows)
        of_words = np.zeros_like(word_levels)
        joining = spread_gradients(gradients, places, ids, of_words)
        changes = {
            "hidden": vectors.T @ (of_words @ values["outputs"]),
            "outputs": of_words.T @ hidden,
            "biases": gradients.sum(axis=0),
            "joining": np.array([joining], dtype=np.float32),
        }
        self._steps += 1
        for name, gradient in changes.items():
            mean, square = self._means[name], self._squares[name]
            mean += (1 - MEAN_DECAY) * (gradient - mean)
            square += (1 - SQUARE_DECAY) * (gradient**2 - square)
            scale = np.sqrt(square / (1 - SQUARE_DECAY**self._steps)) + 1e-8
            values[name] -= rate / (1 - MEAN_DECAY**self._steps) * mean / scale
        return loss


def train_facts(
    sides: Sequence[Side], names: Sequence[str], steps: int, report: Callable[[int, float], object]
) -> Learner:
    """Train the model on ``steps`` batches of sentences, each of one side.

    ``names`` are the meanings. A batch has ``BATCH`` sentences. ``report`` is called every
    ``REPORT_STEPS`` steps with the step, from 1, and the mean loss since the last call.
    """
    rates, random = _base_rates(sides, len(names)), np.random.default_rng(2)
    learner, losses = Learner(sides[0].vectors.shape[1], rates), []
    shares = np.array([side.share for side in sides])
    for step in range(steps):
        side = sides[random.choice(len(sides), p=shares / shares.sum())]
        rows = random.integers(0, len(side.meanings), BATCH)
        rate = RATE * min(1, (step + 1) / WARMUP) * max(LAST_RATE, 1 - step / steps)
        losses.append(learner.step(side, rows, rate))
        if len(losses) == REPORT_STEPS:
            report(step + 1, float(np.mean(losses)))
            losses.clear()
    return learner


def _base_rates(sides: Sequence[Side], meanings: int) -> NDArray[np.float64]:
    counts = sum(
        (np.bincount(np.concatenate(side.meanings), minlength=meanings) for side in sides),
        np.ones(meanings),
    )
    return np.asarray(counts / (2 + sum(len(side.meanings) for side in sides)))


def save_facts(
    path: Path, learner: Learner, sides: Sequence[Side], names: Sequence[str], encoders: set[str]
) -> None:
    """Write or replace the model of the listed meanings, in whole numbers.

    ``miner.judge.facts`` reads it. Words of ``sides`` scale the hidden units. ``encoders`` name
    word encoders. ``names`` are the meanings of ``learner``. Of each group of ``LISTED_GROUPS``,
    they are written if they are in two senses or more, or in its only sense. ValueError says that
    none is.
    """
    values = learner.values
    unit = np.abs(values["hidden"]).max() / MAX_BYTE
    hidden = np.rint(values["hidden"] / unit)
    sample = np.concatenate([np.abs(side.vectors[:SAMPLED] @ hidden).ravel() for side in sides])
    width = np.quantile(sample, INSIDE) / MAX_BYTE
    height = np.quantile(np.abs(values["outputs"]), INSIDE) / MAX_BYTE
    outputs = np.clip(np.rint(values["outputs"].T / height), -MAX_BYTE, MAX_BYTE)
    groups = _numbered_groups(names)
    senses = [sense for group in groups for sense in group]
    used, members = np.unique(np.concatenate(senses), return_inverse=True)
    arrays = {
        "hidden": hidden.astype(np.int8),
        "outputs": np.ascontiguousarray(outputs[:, used], dtype=np.int8),
        "scales": np.array([1 / width, width * unit / PARTS * height * LEVEL], dtype=np.float32),
        "biases": np.rint(values["biases"][used] * LEVEL).astype(np.int16),
        "joining": np.rint(values["joining"] * LEVEL).astype(np.int16),
        "members": members.astype(np.int32),
        "senses": np.cumsum([0, *map(len, senses)]).astype(np.int32),
        "groups": np.cumsum([0, *map(len, groups)]).astype(np.int32),
    }
    kept = [names[meaning] for meaning in used]
    about = {"encoders": json.dumps(sorted(encoders)), "names": json.dumps(kept)}
    save_file(arrays, path, metadata=about)


def _numbered_groups(names: Sequence[str]) -> list[list[list[int]]]:
    numbers = {name: number for number, name in enumerate(names)}
    groups = []
    for group in LISTED_GROUPS:
        senses = [[numbers[word] for word in sense if word in numbers] for sense in group]
        known = [sense for sense in senses if sense]
        if known and (len(known) > 1 or len(group) == 1):
            groups.append(known)
    return groups
