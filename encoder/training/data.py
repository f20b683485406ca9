"""Parallel text for training: reading, held-out split, tokenised store, batch sampling."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder.tokenizer import Tokenizer, Tokens


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """Sentence pairs of one language pair, with the corpus that each comes from."""

    name: str
    source: list[str]
    target: list[str]
    corpus: list[str]

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: NDArray[np.int64]) -> ParallelText:
        """The pairs at ``rows``, in that order."""
        return ParallelText(
            name=self.name,
            source=[self.source[row] for row in rows],
            target=[self.target[row] for row in rows],
            corpus=[self.corpus[row] for row in rows],
        )

    def corpus_sizes(self) -> dict[str, int]:
        """Pairs by corpus, largest first."""
        return dict(Counter(self.corpus).most_common())


def read_parallel_text(path: Path, *, exclude: frozenset[str]) -> ParallelText:
    """Read ``xx-yy.tsv.xz``: source, TAB, target, TAB, corpus name; leave ``exclude`` out.

    Raises:
        ValueError: the file is damaged, a line has not three columns, or nothing is left.
    """
    source, target, corpus = [], [], []
    for number, line in enumerate(_lines(path), start=1):
        columns = line.rstrip("\n").split("\t")
        if len(columns) != 3:
            raise ValueError(
                f"{path}:{number}: {len(columns)} columns; expected source, target and corpus"
            )
        if columns[2] not in exclude:
            source.append(columns[0])
            target.append(columns[1])
            corpus.append(columns[2])
    if not source:
        without = f" after excluding {', '.join(sorted(exclude))}" if exclude else ""
        raise ValueError(f"{path}: no sentence pairs left{without}")
    name = path.name.removesuffix(".tsv.xz")
    return ParallelText(name=name, source=source, target=target, corpus=corpus)


def _lines(path: Path) -> Iterator[str]:
    try:
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            yield from lines
    except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: not UTF-8 text compressed with xz, or cut short ({error})"
        ) from error


@dataclass(frozen=True, kw_only=True)
class TokenPairs:
    """One language pair, tokenised, with a sampling weight for every sentence pair."""

    name: str
    source: Tokens
    target: Tokens
    weight: NDArray[np.float32]


def tokenize_pairs(
    text: ParallelText, tokenizer: Tokenizer, corpus_weights: Mapping[str, float]
) -> TokenPairs:
    """Tokenise both sides; corpora without an entry in ``corpus_weights`` weigh 1."""
    return TokenPairs(
        name=text.name,
        source=tokenizer.encode(text.source),
        target=tokenizer.encode(text.target),
        weight=pair_weights(text, corpus_weights),
    )


def pair_weights(text: ParallelText, corpus_weights: Mapping[str, float]) -> NDArray[np.float32]:
    """The weight of each pair's corpus, float32 (P,)."""
    return np.array([corpus_weights.get(name, 1.0) for name in text.corpus], dtype=np.float32)


def hold_out(text: ParallelText, count: int, *, seed: int) -> tuple[ParallelText, ParallelText]:
    """Split off ``count`` random pairs: the others, and those.

    Raises:
        ValueError: fewer than twice as many pairs.
    """
    if len(text) < 2 * count:
        raise ValueError(
            f"{text.name}: {len(text)} pairs are too few to hold out {count}; give more text"
        )
    order = np.random.default_rng(seed).permutation(len(text))
    return text.take(np.sort(order[count:])), text.take(np.sort(order[:count]))


def sample_batches(
    pairs: list[TokenPairs], *, batch_size: int, temperature: float, seed: int
) -> Iterator[tuple[TokenPairs, NDArray[np.int64]]]:
    """Endless batches, each from one language pair: the pair and its row numbers.

    A language pair is drawn with probability proportional to (sum of its weights) **
    ``temperature``. Within it every pass is a fresh shuffle that keeps a sentence pair with
    probability equal to its weight, so that nothing is repeated before its pass is over.
    """
    generator = np.random.default_rng(seed)
    sizes = np.array([float(p.weight.sum()) for p in pairs]) ** temperature
    queues = [np.empty(0, dtype=np.int64) for _ in pairs]
    while True:
        chosen = int(generator.choice(len(pairs), p=sizes / sizes.sum()))
        weight = pairs[chosen].weight
        while len(queues[chosen]) < batch_size:
            kept = np.flatnonzero(generator.random(len(weight)) < weight)
            fresh = generator.permutation(kept).astype(np.int64)
            queues[chosen] = np.concatenate([queues[chosen], fresh])
        rows, queues[chosen] = queues[chosen][:batch_size], queues[chosen][batch_size:]
        yield pairs[chosen], rows
