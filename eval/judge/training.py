"""Train the judge: examples of mined pairs that are right and wrong, and boosted trees.

Two kinds of corpora: those made of parallel text that no encoder was trained on, as words match
better in text that their encoder has seen, and comparable ones with gold in the layout of BUCC.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from encoder.training.reading import ParallelText, find_parallel_text, read_parallel_text
from eval.data.bucc import bucc_pairs, bucc_splits, load_bucc, text_key
from eval.judge.mined import mine_texts
from eval.judge.worlds import UNKNOWN, Known, World, make_world
from miner.judge.features import FEATURES, NEIGHBOURHOOD
from miner.judge.model import LEAF, Judge
from miner.judge.prior import SCORES, count_scores, fit_peak

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

ENCODERS = ("mini", "mini+use")  # to mine with
# Shares of parallel sentences and how many others, which have no translation, are added a side.
WORLDS = ((0.15, 0), (0.6, 0), (0.5, 8000), (0.5, 2000))
MIN_WORDS, MIN_CHARACTERS = 4, 10  # of a sentence, the second where there are no spaces
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
class Sources:
    """Where examples come from: folders of parallel text and of comparable corpora.

    ``pairs`` are the language pairs of ``parallel``, ``among`` has text whose sentences are added
    without their translations. Corpora in ``exclude`` are left out.
    """

    parallel: Path
    pairs: Sequence[str]
    among: Path
    bucc: Path
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Pairs mined of a world: features (P, F), whether they are right (P,), and their world.

    ``comparable`` worlds are comparable corpora with gold.
    """

    world: str
    comparable: bool
    languages: tuple[str, str]
    features: NDArray[np.float32]
    right: NDArray[np.bool_]


def worlds(sources: Sources) -> Iterator[World]:
    """Yield all corpora that the judge learns from."""
    for pair in bucc_pairs(sources.bucc):
        for split in bucc_splits(sources.bucc, pair):
            yield comparable_world(sources.bucc, pair, split)
    parallel, among = find_parallel_text(sources.parallel), find_parallel_text(sources.among)
    for pair in sources.pairs:
        text = _long(read_parallel_text(parallel[pair], exclude=sources.exclude))
        others = _long(read_parallel_text(among[pair], exclude=sources.exclude))
        known = Known(text, others)
        random = Random(pair)
        for number, (share, added) in enumerate(WORLDS):
            rows = list(range(len(text)))
            random.shuffle(rows)
            name = f"{pair} {number}"
            world = make_world(text, known, rows, share=share, name=name, random=random)
            yield _among(world, others, min(added, len(others) // 2), random)


def comparable_world(directory: Path, pair: str, split: str) -> World:
    """Return a split of comparable corpora with gold as a world."""
    data = load_bucc(directory, pair, split)
    texts = [
        {name: text_key(text) for name, text in zip(side.ids, side.texts, strict=True)}
        for side in (data.source, data.target)
    ]
    source, target = (list(dict.fromkeys(side.values())) for side in texts)
    own, _, other = pair.partition("-")
    return World(
        name=f"{split} {pair}",
        languages=(own, other),
        source=source,
        target=target,
        gold=frozenset((texts[0][one], texts[1][two]) for one, two in data.gold),
    )


def _long(text: ParallelText) -> ParallelText:
    """Return the pairs of two whole sentences, as far as their lengths say."""

    def is_long(sentence: str) -> bool:
        words = sentence.split()
        spaced = len(sentence) < MIN_CHARACTERS * len(words)
        return len(words) >= MIN_WORDS if spaced else len(sentence) >= MIN_CHARACTERS

    sides = enumerate(zip(text.source, text.target, strict=True))
    return text.take(np.array([row for row, pair in sides if all(map(is_long, pair))]))


def _among(world: World, others: ParallelText, count: int, random: Random) -> World:
    """Return the world with sentences of others on both sides, none with its translation."""
    rows = random.sample(range(len(others)), 2 * count)
    source = [*world.source, *(text_key(others.source[row]) for row in rows[:count])]
    target = [*world.target, *(text_key(others.target[row]) for row in rows[count:])]
    random.shuffle(source)
    random.shuffle(target)
    return replace(world, source=list(dict.fromkeys(source)), target=list(dict.fromkeys(target)))


def examples(world: World, encoder: Encoder) -> Examples:
    """Mine a world and say which pairs are right; those of which it is not known are left out."""
    mined = mine_texts((world.source, world.target), encoder, world.languages)
    labels = world.labels(mined)
    known = labels != UNKNOWN
    return Examples(
        world=world.name,
        comparable=world.known is None,
        languages=world.languages,
        features=mined.features[known],
        right=labels[known] == 1,
    )


def gather(sources: Sources) -> Iterator[Examples]:
    """Yield the examples of all worlds with each encoder that covers their languages."""
    loaded = [load_encoder(spec) for spec in ENCODERS]
    for world in worlds(sources):
        for encoder in {
            own.name: own for own in (e.for_languages(world.languages) for e in loaded)
        }.values():
            yield examples(world, encoder)


def train_judge(all_examples: Sequence[Examples]) -> Judge:
    """Train trees on examples, of which the comparable ones weigh ``BUCC_WEIGHT`` together.

    A part of the examples is there again without neighbours, so that pairs can be judged that were
    not mined.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    sizes = [
        sum(len(one.right) for one in all_examples if one.comparable is kind)
        for kind in (False, True)
    ]
    shares = (1 - BUCC_WEIGHT) / max(1, sizes[0]), BUCC_WEIGHT / max(1, sizes[1])
    seen = np.concatenate([one.features for one in all_examples])
    right = np.concatenate([one.right for one in all_examples])
    weights = np.concatenate(
        [np.full(len(one.right), shares[one.comparable]) for one in all_examples]
    )
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
    each = seen, right[: len(seen)], weights[: len(seen)]
    peaks = _usual_peaks(all_examples, trees, each, offset)
    trees.fit(np.concatenate([seen, bare]), right, sample_weight=weights)
    return judge_of(trees, offset=offset, peaks=peaks)


def _usual_peaks(
    all_examples: Sequence[Examples],
    trees: "HistGradientBoostingClassifier",
    each: tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float64]],
    offset: float,
) -> NDArray[np.float64]:
    """Return where wrong and right pairs score, each world alike: place, rise and fall, (2, 3).

    ``each`` are the features, labels and weights of all examples' pairs, one after the other.

    Each language's pairs are scored by trees that have not learned from it; where there is only
    one, each world's.
    """
    from sklearn.model_selection import GroupKFold, cross_val_predict

    names = [one.languages for one in all_examples]
    if len(set(names)) == 1:
        names = [(one.world, "") for one in all_examples]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    seen, right, weights = each
    sizes = [len(one.right) for one in all_examples]
    scores = offset + cross_val_predict(
        trees,
        seen,
        right,
        groups=np.repeat([numbers[name] for name in names], sizes),
        cv=GroupKFold(min(FOLDS, len(numbers))),
        method="decision_function",
        params={"sample_weight": weights},
    )
    counts = np.zeros((2, len(SCORES)))
    starts = np.cumsum(sizes)[:-1]
    for own, labels in zip(np.split(scores, starts), np.split(right, starts), strict=True):
        for kind in (False, True):
            if (labels == kind).any():
                counts[int(kind)] += count_scores(own[labels == kind]) / (labels == kind).sum()
    return np.array([fit_peak(one) for one in counts])


def judge_of(
    trees: "HistGradientBoostingClassifier", *, offset: float, peaks: NDArray[np.float64]
) -> Judge:
    """Return scikit-learn's trees as arrays, whose scores are its log odds plus an offset."""
    parts = [predictors[0].nodes for predictors in trees._predictors]
    sizes = [len(part) for part in parts]
    roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    nodes = np.concatenate(parts)
    start = np.repeat(roots[:-1], sizes)
    leaf = nodes["is_leaf"].astype(np.bool_)
    exact = nodes["num_threshold"]
    threshold = exact.astype(np.float32)
    threshold = np.where(threshold > exact, np.nextafter(threshold, np.float32(-np.inf)), threshold)
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
