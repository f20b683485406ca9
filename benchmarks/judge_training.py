"""Train the judge, boosted trees, on mined pairs of labelled corpora."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from synthetic_corpora import RIGHT, UNKNOWN, LabelledCorpora

from encoder import Encoder, load_encoder
from eval.mined import mine_texts
from miner.arrays import FloatArray, Mask, Matrix
from miner.judge.features import COLUMNS, CONTEXT, MINED, NEIGHBOURHOOD
from miner.judge.model import LEAF, Judge
from miner.judge.prior import SCORES, count_scores, fit_peak

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier as Trees

ENCODERS = ("mini", "mini+use")  # that mine the corpora
BUCC_WEIGHT = 0.9  # share of comparable corpora, which are few but natural
MORE_WEIGHT = 0.02  # share of the smaller corpora of further languages
WITHOUT = NEIGHBOURHOOD, (CONTEXT,)  # features without which some examples are repeated
REPEATED = 4  # one example in 4 for each
# Features that raise the score, and features that lower it.
FOR = (
    *("words with", "mean match", "coverage", "mutual"),
    *("matched word pairs", "weight of near-equal"),
    *("shared numbers", "margin", "lesser gap", "greater gap", CONTEXT),
)
AGAINST = (
    *("heaviest", "second heaviest", "weight of the heaviest", "weight of unmatched"),
    *("longest unmatched", "ratio of", "difference in", "unmatched numbers"),
    *("contradicting", "second contradicting", "negation on", "name without"),
)
TREES, LEAVES, MIN_EXAMPLES, RIDGE, BINS = 300, 8, 20, 10.0, 255
RATE = 0.04  # learning rate of a tree
FOLDS = 4  # of languages, in cross-validation


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Mined pairs of one pair of corpora, with features and labels.

    ``features`` are float32 (P, F), and ``right``, bool (P,), says which pairs are correct.
    ``comparable`` is true for corpora not made of parallel text, and ``more`` for the smaller
    corpora of further languages. ``world`` is the corpora's name.
    """

    world: str
    comparable: bool
    languages: tuple[str, str]
    features: Matrix
    right: Mask
    more: bool = False


def examples(corpora: LabelledCorpora, encoder: Encoder) -> Examples:
    """Mine labelled corpora, and return the pairs with a known label.

    Errors of ``mine_texts`` and of ``Mined.makers`` are raised.
    """
    mined = mine_texts((corpora.source, corpora.target), encoder, corpora.languages)
    labels = corpora.labels(mined)
    is_known = labels != UNKNOWN
    return Examples(
        world=corpora.name,
        comparable=corpora.known is None,
        languages=corpora.languages,
        features=mined.features[is_known],
        right=labels[is_known] == RIGHT,
        more=corpora.more,
    )


def gather(all_corpora: Iterable[LabelledCorpora]) -> Iterator[Examples]:
    """Yield examples of all corpora, mined with each of ``ENCODERS``.

    Encoders drop parts that lack a language. Equal ones are used once. Errors are of ``examples``.
    """
    loaded = [load_encoder(spec) for spec in ENCODERS]
    for corpora in all_corpora:
        covering = (encoder.for_languages(corpora.languages) for encoder in loaded)
        for encoder in {each.name: each for each in covering}.values():
            yield examples(corpora, encoder)


def train_judge(all_examples: Sequence[Examples]) -> Judge:
    """Train the judge of mined pairs on examples.

    Two corpora and both labels are needed. Comparable corpora have 90% of the weight, those with
    ``more`` 2%, and others the rest, in proportion if a kind is missing. Corpora with ``more`` do
    not contribute to the reference peaks.
    """
    sizes = [len(one.right) for one in all_examples]
    kinds = np.repeat([2 if one.comparable else int(one.more) for one in all_examples], sizes)
    counts = np.bincount(kinds, minlength=3)
    more = MORE_WEIGHT if counts[1] else 0
    shares = np.array([1 - BUCC_WEIGHT - more, more, BUCC_WEIGHT])
    weights = (shares / np.maximum(counts, 1))[kinds]
    return fit_judge(all_examples, weights / weights.sum())


def fit_judge(
    all_examples: Sequence[Examples],
    weights: FloatArray,
    learned: Sequence[str] = MINED,
    rate: float = RATE,
) -> Judge:
    """Train a judge with the learning ``rate``, whose trees compare features ``learned``.

    ``learned`` are ``MINED``, or ``SEEN`` for the judge of given pairs. ``weights``, float64
    (P,) with the sum 1, are of the P pairs of all examples. One pair in 4 is repeated without
    features of neighbours, and one without that of the network, to judge pairs without these.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    columns = [COLUMNS.index(name) for name in learned]
    seen = np.concatenate([one.features[:, columns] for one in all_examples])
    right = np.concatenate([one.right for one in all_examples])
    rows, parts = [np.arange(len(seen))], [seen]
    for start, names in enumerate(WITHOUT):
        if missing := [learned.index(name) for name in names if name in learned]:
            rows.append(np.arange(start, len(seen), REPEATED))
            parts.append(seen[rows[-1]])
            parts[-1][:, missing] = np.nan
    repeated = np.concatenate(rows)
    weights = weights * len(seen)
    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=rate,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=MIN_EXAMPLES,
        l2_regularization=RIDGE,
        max_bins=BINS,
        monotonic_cst=[name.startswith(FOR) - name.startswith(AGAINST) for name in learned],
        random_state=1,
    )
    share = float(np.average(right[repeated], weights=weights[repeated]))
    offset = -float(np.log(share / (1 - share)))
    peaks = _reference_peaks(all_examples, seen, model, weights, offset)
    model.fit(np.concatenate(parts), right[repeated], sample_weight=weights[repeated])
    return judge_of(model, offset=offset, peaks=peaks, learned=learned)


def _reference_peaks(
    corpora: Sequence[Examples], seen: Matrix, trees: "Trees", weights: FloatArray, offset: float
) -> FloatArray:
    # Each language's pairs, or each corpus's of one language, are scored by trees of the others.
    from sklearn.model_selection import GroupKFold, cross_val_predict

    names = [example.languages for example in corpora]
    if len(set(names)) == 1:
        names = [(example.world, "") for example in corpora]
    known = list(dict.fromkeys(names))
    sizes = [len(example.right) for example in corpora]
    scores = offset + cross_val_predict(
        trees,
        seen,
        np.concatenate([example.right for example in corpora]),
        groups=np.repeat([known.index(name) for name in names], sizes),
        cv=GroupKFold(min(FOLDS, len(known))),
        method="decision_function",
        params={"sample_weight": weights},
    )
    counts = np.zeros((2, len(SCORES)))
    scores_of_corpora = np.split(scores, np.cumsum(sizes)[:-1])
    for example, corpus_scores in zip(corpora, scores_of_corpora, strict=True):
        if example.more:
            continue
        for kind, mask in enumerate((~example.right, example.right)):
            if mask.any():
                counts[kind] += count_scores(corpus_scores[mask]) / mask.sum()
    return np.array([fit_peak(example) for example in counts])


def judge_of(
    trees: "Trees", *, offset: float, peaks: FloatArray, learned: Sequence[str] = MINED
) -> Judge:
    """Convert scikit-learn's fitted trees to a judge.

    Scores are the log odds of ``trees``, with features ``learned``, plus ``offset``. ``peaks``, (2,
    3), have the place, rise and fall of the reference peak of wrong, then of correct pairs.
    """
    parts = [predictors[0].nodes for predictors in trees._predictors]
    columns = np.array([COLUMNS.index(name) for name in learned])
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
        feature=np.append(columns[nodes["feature_idx"]], 0).astype(np.int32),
        threshold=np.append(threshold, 0).astype(np.float32),
        missing_left=np.append(nodes["missing_go_to_left"], 0).astype(np.bool_),
        left=np.append(np.where(leaf, -1, nodes["left"] + start), -1).astype(np.int32),
        right=np.append(np.where(leaf, -1, nodes["right"] + start), -1).astype(np.int32),
        value=np.rint(np.append(value, base) * LEAF).astype(np.int32),
        roots=roots,
        peaks=peaks,
        learned=tuple(learned),
    )


def _expected(nodes: NDArray[np.void]) -> FloatArray:
    value: FloatArray = nodes["value"].copy()
    for node in np.flatnonzero(nodes["is_leaf"] == 0)[::-1].tolist():  # children come after parents
        below = [int(nodes[side][node]) for side in ("left", "right")]
        value[node] = np.average(value[below], weights=nodes["count"][below])
    return value
