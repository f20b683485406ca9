"""The judge's model, boosted trees as plain arrays (Friedman 2001).

A pair's score is the sum of one leaf per tree and of corrections: the log of how much likelier its
features are in a correct pair than in a wrong one. All are multiples of 1 / ``LEAF``, so exact.
Axes: ``P`` pairs, ``F`` features in the order of ``COLUMNS``, NaN if unknown, ``T`` trees, ``V``
nodes of all trees.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from miner.arrays import FloatArray, IntArray, Matrix
from miner.judge.facts import BUNDLED as BUNDLED_FACTS
from miner.judge.features import (
    COLUMNS,
    CONTEXT,
    EXCHANGED,
    LANGUAGE,
    MIN_COVERAGE,
    MINED,
    NEGATED,
    NUMBERS,
    SEEN,
    SPLIT_LANGUAGES,
)
from miner.judge.network import BUNDLED as BUNDLED_NETWORK
from miner.judge.prior import NO_SCORES, SCORES, SHIFTS, Peak, Peaks, Probabilities, count_scores
from miner.threads import blocks, run_in_threads

BUNDLED = Path(__file__).parents[1] / "assets" / "judge.safetensors"
GIVEN = BUNDLED.with_name("judge-given.safetensors")  # for pairs that were not mined
LEAF = 1 << 16
THREAD_PAIRS = 4096
# Log odds of given pairs: per unit of the score, and at 0. Single errors are rarer than learned.
GIVEN_SLOPE, GIVEN_SHIFT = 2.0, 3.35
CONTEXT_WEIGHT = 0.25  # of the log odds of the comparison network, in the score of given pairs
# From where a feature lowers a score, and by how much per unit.
CORRECTIONS = {
    LANGUAGE: (0.0, 2.0),
    NUMBERS: (0.0, -6.0),
    EXCHANGED: (3.5, -10.0),
    NEGATED: (3.75, -20.0),
}
GIVEN_CORRECTIONS = {LANGUAGE: (0.0, 2.0), NUMBERS: (0.0, -1.0)}  # whose trees learned the facts


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Boosted trees as arrays (V,) of V nodes, except for the last three.

    Attributes:
        feature: Position in ``COLUMNS`` of the feature that a node compares.
        threshold: A pair goes left if its feature is at most this, else right.
        missing_left: Whether a pair goes left if its feature is NaN.
        left: Node to the left, -1 in a leaf.
        right: Node to the right, -1 in a leaf.
        value: Score of a leaf in units of 1 / ``LEAF``; of another node, its mean in training.
        roots: First node of each tree, (T,).
        peaks: Place, rise, fall of the reference peaks of wrong and correct pairs, (2, 3).
        learned: The tuple of features that the trees compare, ``MINED`` or ``SEEN``.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.int32]
    roots: NDArray[np.int32]
    peaks: FloatArray
    learned: Sequence[str] = MINED

    @property
    def reference_peaks(self) -> Peaks:
        """The reference peaks of wrong and correct pairs."""
        return Peak(*self.peaks[0].tolist()), Peak(*self.peaks[1].tolist())

    @property
    def name(self) -> str:
        """A hash of the model, rules and bundled files, in 12 hexadecimal digits."""
        arrays = [np.ascontiguousarray(array).tobytes() for array in self._arrays().values()]
        given, mined = (CONTEXT_WEIGHT, GIVEN_SLOPE, GIVEN_SHIFT), (MIN_COVERAGE, SPLIT_LANGUAGES)
        rules = self._correcting, SHIFTS, given if self.is_given else mined
        rest = [repr(rules).encode(), BUNDLED_FACTS.read_bytes(), BUNDLED_NETWORK.read_bytes()]
        return hashlib.sha256(b"".join([*arrays, *rest])).hexdigest()[:12]

    def _arrays(self) -> dict[str, NDArray[np.generic]]:
        return {name: value for name, value in vars(self).items() if name != "learned"}

    def probabilities(
        self, blocks: Iterable[FloatArray], known: FloatArray = NO_SCORES
    ) -> Probabilities:
        """Compute the function from a run's scores to probabilities.

        ``blocks`` are arrays of all pairs' scores, and ``known`` (N,) scores of leave-one-out
        pairs, maybe none. If ``is_given``, ``blocks`` decide only the share, ``known`` nothing.
        """
        if not self.is_given:
            return Probabilities.fit(self.reference_peaks, blocks, known)
        counts = sum(map(count_scores, blocks), np.zeros(len(SCORES)))
        probabilities = Probabilities(slope=GIVEN_SLOPE, shift=GIVEN_SHIFT)
        share = float(counts @ probabilities.predict(SCORES)) / max(1.0, float(counts.sum()))
        return replace(probabilities, share=share)

    @property
    def is_given(self) -> bool:
        """Whether it judges given pairs, not mined ones."""
        return self.learned == SEEN

    @property
    def _correcting(self) -> dict[str, tuple[float, float]]:
        return GIVEN_CORRECTIONS if self.is_given else CORRECTIONS

    def scores(self, features: Matrix) -> FloatArray:
        """Return the corrected scores, float64 (P,), of pairs by features (P, F)."""
        from miner.judge.compiled import sum_leaves  # loads Numba

        sums = np.zeros(len(features), dtype=np.int64)
        nodes = self.feature, self.threshold, self.missing_left, self.left, self.right, self.value
        run_in_threads(
            lambda block: sum_leaves(features[block], nodes, self.roots, sums[block]),
            blocks(len(features), THREAD_PAIRS),
        )
        return (sums + sum(self._corrections(sums, features).values())) / LEAF

    def _corrections(self, sums: IntArray, features: Matrix) -> dict[str, IntArray]:
        """Return the corrections of the trees' sums, int64 (P,) by feature.

        The trees learned from pairs that are hardly ever in a wrong language, and the mined ones
        seldom differ in one fact. No mined pair is lowered below the usual wrong pairs: their
        scores say how probable the others are. Log odds of the network are added for given pairs.
        """
        lowest = SCORES[0] if self.is_given else self.reference_peaks[0].place
        room, found = np.minimum(round(lowest * LEAF) - sums, 0), {}
        for name, (start, slope) in self._correcting.items():
            excess = features[:, SEEN.index(name)].astype(np.float64) - start
            lowered = np.minimum(np.nan_to_num(excess * slope), 0)
            found[name] = np.maximum(np.rint(lowered * LEAF).astype(np.int64), room)
            room = room - found[name]
        if self.is_given:
            log_odds = np.nan_to_num(features[:, COLUMNS.index(CONTEXT)].astype(np.float64))
            found[CONTEXT] = np.rint(log_odds * CONTEXT_WEIGHT * LEAF).astype(np.int64)
        return found

    def feature_contributions(self, row: NDArray[np.float32]) -> dict[str, float]:
        """Return the contribution of each feature of ``row`` (F,) to its score.

        It is the sum of the changes that the feature's splits make to the mean score (Saabas 2014),
        and of the term that a fixed rule adds for the feature, if any. Contributions and the mean
        scores of the roots add up to the score. Keys are all of ``COLUMNS``, 0 without a change.
        """
        found, total = dict.fromkeys(COLUMNS, 0.0), 0
        for node in self.roots.tolist():
            while self.left[node] >= 0:
                number, value = row[self.feature[node]], int(self.value[node])
                unknown = np.isnan(number) and self.missing_left[node]
                to = self.left if unknown or number <= self.threshold[node] else self.right
                feature, node = COLUMNS[self.feature[node]], int(to[node])
                found[feature] += (int(self.value[node]) - value) / LEAF
            total += int(self.value[node])
        for name, change in self._corrections(np.array([total]), row[None]).items():
            found[name] += int(change[0]) / LEAF
        return found

    def save(self, path: Path, facts: dict[str, object]) -> None:
        """Write or replace a model, with JSON values ``facts`` on its training.

        In the file, features are positions in ``learned``, which do not change with ``COLUMNS``.
        Raises SafetensorError if the file cannot be written.
        """
        places = {COLUMNS.index(name): place for place, name in enumerate(self.learned)}
        feature = np.array([places[column] for column in self.feature.tolist()], dtype=np.int32)
        about = {"features": json.dumps(self.learned), "facts": json.dumps(facts, sort_keys=True)}
        save_file(self._arrays() | {"feature": feature}, path, metadata=about)


@cache
def load_judge(path: Path = BUNDLED) -> Judge:
    """Load a judge from a safetensors file, once per path.

    Raises:
        ValueError: The file is missing, damaged, or has other features.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}
            learned = tuple(json.loads((file.metadata() or {}).get("features", "[]")))
        if learned not in (MINED, SEEN):
            raise ValueError(
                f"judge: {path} was trained on the features of another version; reinstall Adit"
            )
        columns = np.array([COLUMNS.index(name) for name in learned], dtype=np.int32)
        arrays["feature"] = columns[arrays["feature"]]
        return Judge(**arrays, learned=learned)
    except (OSError, SafetensorError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"judge: {path} is missing or damaged; reinstall Adit") from error


def bundled_judge(*, is_given: bool) -> Judge:
    """Load the bundled judge of given pairs, or else that of mined pairs.

    Errors are as in ``load_judge``.
    """
    return load_judge(GIVEN if is_given else BUNDLED)
