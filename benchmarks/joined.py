"""What joining encoders brings in mining, and what was tried of it.

    python benchmarks/joined.py weights BUCC-STYLE --weights 0.35 0.5 0.7 1
    python benchmarks/joined.py means BUCC-STYLE
    python benchmarks/joined.py states BUCC-STYLE

`weights` and `means` print F1 on the `training` splits at the best threshold, by margin and by
words: with weights of `mini` beside `use`, and with the corpora's own means in place of fixed ones.
`states` does so for pairs scored by words, by the states of the network's tokens in their place,
and by both.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from encoder.joined import JoinedEncoder
from encoder.use import compiled
from encoder.use.compiled import EMBEDDING, HIDDEN, normalize
from encoder.use.encoder import UseEncoder, load_use
from encoder.use.network import _channels
from encoder.words import word_encoders
from eval.data.bucc import bucc_pairs, load_bucc
from eval.metrics.bucc import Candidates, best_score, judge, rank
from eval.tasks.mined_splits import MinedSplit, mine_split, mined_texts
from miner.mining import mine
from miner.word_match import align_texts, aligned_scores, usual_log_ratio

WORDS_OF = 512  # sentences whose tokens are computed at once
Matrix = NDArray[np.float32]


class OwnMeans(JoinedEncoder):
    """Joined encoders whose rows lose the mean of the sentences encoded together."""

    def for_language(self, language: str | None) -> OwnMeans:
        return OwnMeans(super().for_language(language).parts)

    def for_languages(self, languages: Sequence[str | None]) -> OwnMeans:
        return OwnMeans(super().for_languages(languages).parts)

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        parts = [
            replace(part, mean=part.encoder.encode(sentences).mean(axis=0)) for part in self.parts
        ]
        return JoinedEncoder(parts)._embed(sentences, normalize=normalize)


def oracles(folder: Path, encoder: Encoder) -> tuple[float, float]:
    """Return mean F1 at the best thresholds, by margin and by words."""
    return tuple(
        np.mean(
            [
                best_score(mined(folder, pair, encoder, align=align).judgements).f1
                for pair in bucc_pairs(folder)
            ]
        )
        for align in (False, True)
    )


def mined(folder: Path, pair: str, encoder: Encoder, *, align: bool) -> MinedSplit:
    how = functools.partial(mine, k=4, margin="ratio")
    return mine_split(load_bucc(folder, pair, "training"), encoder=encoder, mine=how, align=align)


@dataclass(frozen=True)
class States:
    """``miner.word_match.Words`` of tokens in their context; each token is a word of its own."""

    vectors: Matrix
    weights: NDArray[np.float32]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]


class StateMaker:
    """Makes the states of the network's tokens before they are summed, projected as the sum is."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._use: UseEncoder = load_use(precision="float32")
        tokens = self._use._tokenizer.encode(texts)
        counts = np.bincount(tokens.ids, minlength=200_000) + 1
        self._weights = -np.log(counts / counts.sum()).astype(np.float32)
        self._mean = np.zeros(512, np.float32)
        self._mean = self._states(texts[:WORDS_OF])[0].mean(axis=0)

    def words(self, sentences: Sequence[str]) -> States:
        states, ids, offsets = self._states(sentences)
        states = states - self._mean
        states /= np.linalg.norm(states, axis=1, keepdims=True)
        places = np.arange(len(ids), dtype=np.int32)
        return States(states, self._weights[ids], places, offsets)

    def _states(
        self, sentences: Sequence[str]
    ) -> tuple[Matrix, NDArray[np.int32], NDArray[np.int64]]:
        network, tokens = self._use._network, self._use._tokenizer.encode(sentences)
        parts = []
        for start in range(0, len(sentences), WORDS_OF):
            some = tokens.take(np.arange(start, min(start + WORDS_OF, len(sentences))))
            pieces, slots = self._use._prepared.find(some.ids)
            hidden = np.empty((len(slots), HIDDEN), dtype=np.float32)
            rows = pieces.numbers, pieces.scales, slots, some.offsets
            compiled.first_layer(*rows, network._biases, hidden)
            for branch, layer in enumerate(network._second):
                own = hidden[:, _channels(branch)]
                found = layer(own)
                bias = network._second_biases[_channels(branch)]
                given = found.products, found.rows, found.columns, some.offsets
                compiled.second_layer(*given, branch, bias, own)
            features = np.concatenate([pieces.numbers[slots, :EMBEDDING], hidden], axis=1)
            even, zero = (
                np.ones(features.shape[1], np.float32),
                np.zeros(features.shape[1], np.float32),
            )
            normalize(features, network._epsilon, even, zero, features)
            parts.append(network._out.multiplied(features))
        return np.concatenate(parts), tokens.ids, tokens.offsets


def states(folder: Path) -> None:
    encoder = load_encoder("mini+use")
    figures = []
    for pair in bucc_pairs(folder):
        languages = pair.split("-")
        if len(encoder.for_languages(languages).parts) < 2:
            continue
        found = mined(folder, pair, encoder, align=False)
        texts = mined_texts(found)
        by_words = align_texts(word_encoders(encoder, languages), *texts)
        by_states = align_texts([StateMaker(side) for side in texts], *texts)
        usual = [usual_log_ratio(one) for one in (by_words, by_states)]
        margins = found.ranked.scores
        scores = aligned_scores(margins, by_words, usual=usual[0])
        ways = (
            scores,
            aligned_scores(margins, by_states, usual=usual[1]),
            scores + by_states.coverage,
        )
        figures.append([f1(found, way) for way in ways])
    print(
        "states: words {:.2f}, states {:.2f}, both {:.2f}".format(*100 * np.mean(figures, axis=0))
    )


def f1(found: MinedSplit, scores: NDArray[np.float64]) -> float:
    ranked = rank(
        Candidates(scores=scores, sources=found.ranked.sources, targets=found.ranked.targets)
    )
    return best_score(judge(ranked, found.data.gold)).f1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("weights", "means", "states"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.35, 0.5, 0.7, 1.0])
    args = parser.parse_args()
    if args.what == "states":
        states(args.folder)
        return
    ways: dict[str, Callable[[], Encoder]] = {
        "own": lambda: OwnMeans(load_encoder("mini+use").parts)
    }
    ways["fixed"] = lambda: load_encoder("mini+use")
    if args.what == "weights":
        ways = {f"{w:g}": lambda w=w: load_encoder(f"{w}*mini+use") for w in args.weights}
    for name, make in ways.items():
        margin, words = oracles(args.folder, make())
        print(f"{name}: margin {100 * margin:.2f}, words {100 * words:.2f}")


if __name__ == "__main__":
    main()
