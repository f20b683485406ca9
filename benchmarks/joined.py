"""F1 of joined encoders at the best thresholds, by weights, and by the corpora's own means.

    python benchmarks/joined.py BUCC-STYLE --weights 0.35 0.5 0.7 1

prints the mean over the `training` splits, by margin and by the judge, with each weight of `mini`
beside `use`, and with the default weights and means of the corpora themselves.
"""

from __future__ import annotations

import argparse
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
    """Joined encoders whose rows lose the mean of the sentences encoded together."""

    def for_language(self, language: str | None) -> OwnMeans:
        return OwnMeans(super().for_language(language).parts)

    def for_languages(self, languages: Sequence[str | None]) -> OwnMeans:
        return OwnMeans(super().for_languages(languages).parts)

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        parts = [
            replace(part, mean=part.encoder.encode(sentences).mean(axis=0)) for part in self.parts
        ]
        return JoinedEncoder(parts)._embed(sentences, normalize=normalize)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.35, 0.5, 0.7, 1.0])
    args = parser.parse_args()
    for weight in args.weights:
        show(f"{weight:g} mini", args.folder, load_encoder(f"{weight}*mini+use"))
    joined = load_encoder("mini+use")
    assert isinstance(joined, JoinedEncoder)
    show("own means", args.folder, OwnMeans(joined.parts))


def show(name: str, folder: Path, encoder: Encoder) -> None:
    splits = [load_bucc(folder, pair, "training") for pair in bucc_pairs(folder)]
    means = [
        np.mean(
            [
                best_score(mine_split(data, encoder=encoder, judged=judged).judgements).f1
                for data in splits
            ]
        )
        for judged in (False, True)
    ]
    print(f"{name}: by margin {100 * means[0]:.1f}, judged {100 * means[1]:.1f}", flush=True)


if __name__ == "__main__":
    main()
