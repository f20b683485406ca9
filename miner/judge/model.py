"""The judge's model, boosted trees as plain arrays (Friedman 2001).

A pair's score is the sum of one leaf of each tree: the log of how much likelier its features are in
a right pair than in a wrong one. Leaves are whole numbers of 1 / ``LEAF``, so that sums are exact.

Axes: ``P`` pairs, ``F`` features, ``T`` trees, ``V`` nodes of all trees.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from miner.arrays import FloatArray
from miner.judge.facts import BUNDLED as BUNDLED_FACTS
from miner.judge.features import FEATURES, LANGUAGE, SEEN
from miner.judge.prior import Peak, Peaks
from miner.threads import blocks, run_in_threads

BUNDLED = Path(__file__).parents[1] / "assets" / "judge.safetensors"
LEAF = 1 << 16
THREAD_PAIRS = 4096
FOREIGN = 2  # times the log odds that a side is in its language


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Trees, arrays (V,) except for ``roots`` (T,) and ``peaks`` (2, 3).

    A pair goes from a node to ``left`` where ``feature`` is at most ``threshold``, or is NaN and
    ``missing_left``; else to ``right``. In a leaf ``left`` is -1 and ``value`` counts; that of
    another node is the mean of those below.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.int32]
    roots: NDArray[np.int32]
    peaks: FloatArray

    @property
    def reference_peaks(self) -> Peaks:
        """The peaks of wrong and correct pairs in the runs of training."""
        return Peak(*self.peaks[0].tolist()), Peak(*self.peaks[1].tolist())

    @property
    def name(self) -> str:
        """A hash of the model, since scores of two judges are not comparable."""
        arrays = [np.ascontiguousarray(array).tobytes() for array in vars(self).values()]
        rest = bytes([FOREIGN]), BUNDLED_FACTS.read_bytes()
        return hashlib.sha256(b"".join([*arrays, *rest])).hexdigest()[:12]

    def scores(self, features: NDArray[np.float32]) -> FloatArray:
        """Return log likelihood ratios, float64 (P,), of features (P, F)."""
        from miner.judge.compiled import sum_leaves  # loads Numba

        sums = np.zeros(len(features), dtype=np.int64)
        nodes = self.feature, self.threshold, self.missing_left, self.left, self.right, self.value
        run_in_threads(
            lambda block: sum_leaves(features[block], nodes, self.roots, sums[block]),
            blocks(len(features), THREAD_PAIRS),
        )
        return (sums + self._foreign(sums, features)) / LEAF

    def _foreign(self, sums: NDArray[np.int64], features: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return what a side in another language adds to the trees' sums, int64 (P,), at most 0.

        The trees learned from mined pairs, which are hardly ever in a wrong language. No pair is
        lowered below the usual wrong pairs: their scores say how probable the others are.
        """
        odds = np.minimum(np.nan_to_num(features[:, SEEN.index(LANGUAGE)].astype(np.float64)), 0)
        room = np.minimum(round(self.reference_peaks[0].place * LEAF) - sums, 0)
        return np.maximum(np.rint(odds * (FOREIGN * LEAF)).astype(np.int64), room)

    def feature_contributions(self, row: NDArray[np.float32]) -> dict[str, float]:
        """Return the contribution of each feature of a pair to its score.

        What a split on a feature changed counts for that feature (Saabas 2014); with the score of a
        pair of which nothing is known, they add up to the pair's own.
        """
        found, total = dict.fromkeys(SEEN, 0.0), 0
        for node in self.roots.tolist():
            while self.left[node] >= 0:
                number, value = row[self.feature[node]], int(self.value[node])
                unknown = np.isnan(number) and self.missing_left[node]
                to = self.left if unknown or number <= self.threshold[node] else self.right
                feature, node = FEATURES[self.feature[node]], int(to[node])
                found[feature] += (int(self.value[node]) - value) / LEAF
            total += int(self.value[node])
        found[LANGUAGE] = int(self._foreign(np.array([total]), row[None])[0]) / LEAF
        return found

    def save(self, path: Path, facts: dict[str, object]) -> None:
        """Write the model and its account of training."""
        about = {"features": json.dumps(FEATURES), "facts": json.dumps(facts, sort_keys=True)}
        save_file(dict(vars(self)), path, metadata=about)


@cache
def load_judge(path: Path = BUNDLED) -> Judge:
    """Load a model.

    Raises:
        ValueError: It is missing, damaged, or has other features.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}
            features = json.loads((file.metadata() or {}).get("features", "[]"))
        if features != list(FEATURES):
            raise ValueError(
                f"judge: {path} was trained on the features of another version; retrain it with "
                "'adit train-judge'"
            )
        return Judge(**arrays)
    except (OSError, SafetensorError, TypeError) as error:
        raise ValueError(
            f"judge: {path} is missing or damaged; install or copy it again"
        ) from error
