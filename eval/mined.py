"""Mine and judge two corpora in memory, like the stages of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from encoder import Encoder
from encoder.words import WordEncoder, word_encoders
from eval.data.languages import encoders_of_languages
from miner.arrays import IntArray, JudgedPairs, Matrix, Neighbours, Pairs
from miner.judge.features import (
    NeighbourhoodStats,
    RunStatistics,
    Texts,
    compute_features,
    mean_spacing,
    read_texts,
)
from miner.judge.model import Judge, load_judge
from miner.judge.prior import leave_one_out_pairs, sample_likely_pairs
from miner.knn.exact import search_both
from miner.selection import candidate_pairs, order_best_first, select


@dataclass(frozen=True, kw_only=True)
class Mined:
    """Two mined corpora in memory, with their neighbours and pairs.

    ``texts`` are source and target sentences with a vector. ``pairs``, best first, have positions
    in them and margins as scores. ``lists`` and ``languages`` (codes) are of sources, then targets.
    """

    texts: tuple[Sequence[str], Sequence[str]]
    lists: tuple[Neighbours, Neighbours]
    pairs: Pairs
    encoder: Encoder
    languages: Sequence[str]
    margin: str

    @cached_property
    def makers(self) -> Sequence[WordEncoder]:
        """The word encoders of both sides, or errors of ``word_encoders``."""
        return word_encoders(self.encoder, self.languages)

    @cached_property
    def seen(self) -> Texts:
        """The features of the pairs' texts, or errors of ``makers``."""
        return self._read(self.pairs.source, self.pairs.target)

    @cached_property
    def usual(self) -> RunStatistics:
        """The run statistics for features, or errors of ``makers``."""
        return RunStatistics.of(self.seen, mean_spacing(self.lists), makers=self.makers)

    @cached_property
    def features(self) -> Matrix:
        """The features of pairs, float32 (P, F), or errors of ``makers``."""
        return compute_features(self.seen, NeighbourhoodStats.of(self.pairs), self.usual)

    def left_out(self, places: IntArray) -> Matrix:
        """Compute the features of leave-one-out pairs, float32 (L, F).

        These pairs count as wrong. Each has a sentence of the pairs at indices ``places``, and its
        best neighbour other than its partner. Sources come first. Sentences without a pair of
        ``leave_one_out_pairs`` are omitted. Errors of ``makers`` are raised.
        """
        ends, parts = (self.pairs.source, self.pairs.target), []
        for own, other in ((0, 1), (1, 0)):
            lists = self.lists[own].take(ends[own][places])
            taken = np.full(len(self.lists[other]) + 1, -np.inf)  # and one for no neighbour
            taken[ends[other]] = self.pairs.score
            means = np.append(self.lists[other].means(), 0.0)[lists.ids]
            partners = ends[other][places]
            removed = leave_one_out_pairs(
                partners, lists, means, taken[lists.ids], margin=self.margin
            )
            rows = {own: ends[own][places][removed.queries], other: removed.rows}
            around = {own: removed.own_mean, other: removed.other_mean}
            stats = NeighbourhoodStats(removed.cosine, around[0], around[1])
            parts.append(compute_features(self._read(rows[0], rows[1]), stats, self.usual))
        return np.concatenate(parts)

    def judged(self, judge: Judge | None = None) -> JudgedPairs:
        """Return the pairs with a judge's scores and probabilities, best first.

        There must be a pair. The default is the bundled judge. Errors of ``makers`` are raised.
        """
        judge = judge or load_judge()
        scores = judge.scores(self.features)
        first = judge.probabilities([scores])
        order = np.argsort(-scores, kind="stable")
        places = order[sample_likely_pairs(first.predict(scores[order]))]
        wrong = judge.scores(self.left_out(places))
        likely = judge.probabilities([scores], wrong).predict(scores)
        columns = {"score": scores, "probability": likely, "margin": self.pairs.score}
        pairs = JudgedPairs(**vars(self.pairs) | columns)
        return pairs.take(order_best_first(pairs))

    def _read(self, sources: IntArray, targets: IntArray) -> Texts:
        sides = zip(self.texts, (sources, targets), strict=True)
        chosen = ([texts[row] for row in rows] for texts, rows in sides)
        return read_texts(self.makers, *chosen, languages=self.languages)


def mine_texts(
    texts: tuple[Sequence[str], Sequence[str]],
    encoder: Encoder,
    languages: Sequence[str],
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
) -> Mined:
    """Encode two corpora, source and target, and mine pairs.

    Sentences with a zero vector are dropped, duplicates are not. ``languages`` are both sides'
    codes. ``k``, ``margin`` and ``retrieval`` are as in ``adit mine``, or raise ValueError. A side
    without vectors gives no pairs. Errors of ``encoders_of_languages`` are raised.
    """
    vectors, kept = [], []
    for side, side_encoder in zip(texts, encoders_of_languages(encoder, languages), strict=True):
        rows = side_encoder.encode(list(side))
        used = np.flatnonzero(np.any(rows, axis=1))
        vectors.append(rows[used])
        kept.append([side[row] for row in used.tolist()])
    lists = search_both(*vectors, k=k)
    ids = [np.arange(len(neighbours)) for neighbours in lists]
    candidates = candidate_pairs(*lists, source_ids=ids[0], target_ids=ids[1], margin=margin)
    return Mined(
        texts=(kept[0], kept[1]),
        lists=lists,
        pairs=select(candidates, retrieval=retrieval),
        encoder=encoder,
        languages=languages,
        margin=margin,
    )
