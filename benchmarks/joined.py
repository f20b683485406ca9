"""Measure the F1 of joined encoders by weights and by means.

    python benchmarks/joined.py BUCC-STYLE --weights 0.35 0.5 0.7 1

prints the mean over the `training` splits, by margin, with each weight of `mini` beside `use`, and
with the default weights and means of the corpora themselves. The judge has learned from these sets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, load_encoder
from encoder.joined import JoinedEncoder
from eval.data.bucc import bucc_pairs, load_bucc
from eval.metrics.bucc import best_score
from eval.tasks.mined_splits import mine_split


class OwnMeans(JoinedEncoder):
    """A joined encoder that subtracts the mean of the encoded sentences."""

    def for_language(self, language: str | None) -> OwnMeans:
        return OwnMeans(super().for_language(language).parts)

    def for_languages(self, languages: Sequence[str | None]) -> OwnMeans:
        return OwnMeans(super().for_languages(languages).parts)

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        parts = [
            replace(part, mean=part.encoder.encode(sentences).mean(axis=0)) for part in self.parts
        ]
        return JoinedEncoder(parts)._embed(sentences, normalize=normalize)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.35, 0.5, 0.7, 1.0])
    args = parser.parse_args()
    for weight in args.weights:
        show(f"{weight:g} mini", args.folder, load_encoder(f"{weight}*mini+use"))
    joined = load_encoder("mini+use")
    assert isinstance(joined, JoinedEncoder)
    show("own means", args.folder, OwnMeans(joined.parts))
    return 0


def show(name: str, folder: Path, encoder: Encoder) -> None:
    found = [
        best_score(mine_split(load_bucc(folder, pair, "training"), encoder=encoder).judgements).f1
        for pair in bucc_pairs(folder)
    ]
    print(f"{name}: {100 * np.mean(found):.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
