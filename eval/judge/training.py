"""Train the judge: examples of mined pairs that are right and wrong, and boosted trees."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from eval.judge.mined import mine_texts
from eval.judge.synthetic_corpora import RIGHT, UNKNOWN, LabelledCorpora
from miner.judge.features import FEATURES, NEIGHBOURHOOD
from miner.judge.model import LEAF, Judge
from miner.judge.prior import SCORES, count_scores, fit_peak

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier as Trees

ENCODERS = ("mini", "mini+use")  # to mine with
BUCC_WEIGHT = 0.85  # of all examples: they are few, and of sentences as they are in news
WITHOUT_NEIGHBOURS = 4  # of so many examples one is there again without what neighbours say
# Features of which more makes a right pair likelier, and those of which more makes a wrong one.
FOR = (
    *("words with", "mean match", "coverage", "mutual"),
    *("matched word pairs", "weight of near-equal"),
    *("shared numbers", "margin", "lesser gap", "greater gap"),
)
AGAINST = (
    *("heaviest", "second heaviest", "weight of the heaviest", "weight of unmatched"),
    *("longest unmatched", "ratio of", "difference in", "unmatched numbers"),
)
TREES, LEAVES, RATE, MIN_EXAMPLES, RIDGE, BINS = 150, 8, 0.08, 20, 10.0, 255
FOLDS = 4  # of languages, to see what pairs of other languages score


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Pairs mined of a world, comparable corpora or not: features (P, F), which are right (P,)."""

    world: str
    comparable: bool
    languages: tuple[str, str]
    features: NDArray[np.float32]
    right: NDArray[np.bool_]


def examples(world: LabelledCorpora, encoder: Encoder) -> Examples:
    """Mine a world and say which pairs are right; those of which it is not known are left out."""
    mined = mine_texts((world.source, world.target), encoder, world.languages)
    labels = world.labels(mined)
    known = labels != UNKNOWN
    return Examples(
        world=world.name,
        comparable=world.known is None,
        languages=world.languages,
        features=mined.features[known],
        right=labels[known] == RIGHT,
    )


def gather(worlds: Iterable[LabelledCorpora]) -> Iterator[Examples]:
    """Yield the examples of all worlds with each encoder that covers their languages."""
    loaded = [load_encoder(spec) for spec in ENCODERS]
    for world in worlds:
        own = (encoder.for_languages(world.languages) for encoder in loaded)
        for encoder in {each.name: each for each in own}.values():
            yield examples(world, encoder)


def train_judge(all_examples: Sequence[Examples]) -> Judge:
    """Train trees on examples, of which the comparable ones weigh ``BUCC_WEIGHT`` together.

    A part of them is there again without neighbours, to judge pairs that were not mined.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    seen = np.concatenate([one.features[:, : len(FEATURES)] for one in all_examples])
    right = np.concatenate([one.right for one in all_examples])
    sizes = [len(one.right) for one in all_examples]
    comparable = np.repeat([one.comparable for one in all_examples], sizes)
    counts = max(1, (~comparable).sum()), max(1, comparable.sum())
    weights = np.where(comparable, BUCC_WEIGHT / counts[1], (1 - BUCC_WEIGHT) / counts[0])
    alone = np.arange(0, len(seen), WITHOUT_NEIGHBOURS)
    bare = seen[alone]
    bare[:, -len(NEIGHBOURHOOD) :] = np.nan
    weights = np.concatenate([weights, weights[alone]]) * len(weights)
    right = np.concatenate([right, right[alone]])
    trees = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=MIN_EXAMPLES,
        l2_regularization=RIDGE,
        max_bins=BINS,
        monotonic_cst=[name.startswith(FOR) - name.startswith(AGAINST) for name in FEATURES],
        random_state=1,
    )
    share = float(np.average(right, weights=weights))
    offset = -float(np.log(share / (1 - share)))
    peaks = _reference_peaks(all_examples, trees, weights[: len(seen)], offset)
    trees.fit(np.concatenate([seen, bare]), right, sample_weight=weights)
    return judge_of(trees, offset=offset, peaks=peaks)


def _reference_peaks(
    all_examples: Sequence[Examples], trees: "Trees", weights: NDArray[np.float64], offset: float
) -> NDArray[np.float64]:
    """Return where wrong and right pairs score, each world alike: place, rise and fall, (2, 3).

    Each language's pairs, with their weights, are scored by trees that have not learned from it;
    where there is only one, each world's.
    """
    from sklearn.model_selection import GroupKFold, cross_val_predict

    names = [one.languages for one in all_examples]
    if len(set(names)) == 1:
        names = [(one.world, "") for one in all_examples]
    known = list(dict.fromkeys(names))
    sizes = [len(one.right) for one in all_examples]
    scores = offset + cross_val_predict(
        trees,
        np.concatenate([one.features[:, : len(FEATURES)] for one in all_examples]),
        np.concatenate([one.right for one in all_examples]),
        groups=np.repeat([known.index(name) for name in names], sizes),
        cv=GroupKFold(min(FOLDS, len(known))),
        method="decision_function",
        params={"sample_weight": weights},
    )
    counts = np.zeros((2, len(SCORES)))
    for one, own in zip(all_examples, np.split(scores, np.cumsum(sizes)[:-1]), strict=True):
        for kind, some in enumerate((~one.right, one.right)):
            if some.any():
                counts[kind] += count_scores(own[some]) / some.sum()
    return np.array([fit_peak(one) for one in counts])


def judge_of(trees: "Trees", *, offset: float, peaks: NDArray[np.float64]) -> Judge:
    """Return scikit-learn's trees as arrays, whose scores are its log odds plus an offset."""
    parts = [predictors[0].nodes for predictors in trees._predictors]
    sizes = [len(part) for part in parts]
    roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    nodes = np.concatenate(parts)
    start = np.repeat(roots[:-1], sizes)
    leaf = nodes["is_leaf"].astype(np.bool_)
    exact = nodes["num_threshold"]
    near = exact.astype(np.float32)
    threshold = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
    value = np.concatenate([_expected(part) for part in parts])
    base = float(trees._baseline_prediction.item()) + offset  # a last tree of one leaf
    return Judge(
        feature=np.append(nodes["feature_idx"], 0).astype(np.int32),
        threshold=np.append(threshold, 0).astype(np.float32),
        missing_left=np.append(nodes["missing_go_to_left"], 0).astype(np.bool_),
        left=np.append(np.where(leaf, -1, nodes["left"] + start), -1).astype(np.int32),
        right=np.append(np.where(leaf, -1, nodes["right"] + start), -1).astype(np.int32),
        value=np.rint(np.append(value, base) * LEAF).astype(np.int32),
        roots=roots,
        peaks=peaks,
    )


def _expected(nodes: NDArray[np.void]) -> NDArray[np.float64]:
    """Return the values of a tree's leaves, and of other nodes the mean of those below: (V,)."""
    value: NDArray[np.float64] = nodes["value"].copy()
    for node in np.flatnonzero(nodes["is_leaf"] == 0)[::-1].tolist():  # children come after it
        below = [int(nodes[side][node]) for side in ("left", "right")]
        value[node] = np.average(value[below], weights=nodes["count"][below])
    return value
