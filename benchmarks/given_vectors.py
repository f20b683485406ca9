"""Measure F1 of given vectors by margin and by words of two encoders.

    python benchmarks/given_vectors.py BUCC encoders/wide

BUCC has splits as of ``adit evaluate bucc``; thresholds are chosen on sample, F1 is of training.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from encoder import Encoder, load_encoder
from encoder.base import BaseEncoder
from eval.data.bucc import bucc_pairs, load_bucc
from eval.tasks.mined_splits import mine_split, tune_and_test

if TYPE_CHECKING:
    from numpy.typing import NDArray


class VectorsOnly(BaseEncoder):
    """An encoder without word vectors."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dim, self.precision = encoder.name, encoder.dim, encoder.precision
        self._encoder = encoder

    def for_language(self, language: str | None) -> VectorsOnly:
        """Return the same for a language."""
        return VectorsOnly(self._encoder.for_language(language))

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        return self._encoder.encode(sentences, normalize=normalize)


def f1(folder: Path, pair: str, encoder: Encoder, *, align: bool) -> float:
    """Return the F1 on the training split in percent."""
    tune, test = (
        mine_split(load_bucc(folder, pair, split), encoder=encoder, judged=align)
        for split in ("sample", "training")
    )
    return tune_and_test(tune, test)[1].score.f1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("encoder")
    args = parser.parse_args()
    own = load_encoder(args.encoder)
    given = VectorsOnly(own)
    figures = []
    print("        margin  bundled words  own words")
    for pair in bucc_pairs(args.folder):
        ways = ((given, False), (given, True), (own, True))
        figures.append([f1(args.folder, pair, way, align=align) for way, align in ways])
        print("{:6} {:7.2f} {:14.2f} {:10.2f}".format(pair, *figures[-1]))
    print("{:6} {:7.2f} {:14.2f} {:10.2f}".format("mean", *np.mean(figures, axis=0)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
