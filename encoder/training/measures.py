"""Measures of an encoder while it is trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encoder import Encoder
from encoder.training import options
from encoder.training.reading import ParallelText


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure of an encoder, from 0 to 1, for each language or pair of languages.

    ``name`` is its name in the log, ``title`` that of its curves, ``parts`` the languages or pairs
    of them; ``take`` measures an encoder.
    """

    name: str
    title: str
    parts: Sequence[str]
    take: Callable[[Encoder], Mapping[str, float]]
    higher_is_better: bool = False

    def best(self, means: Sequence[float]) -> bool:
        """Return whether the last of these is as good as any; of equal ones the later is better."""
        return means[-1] == (max(means) if self.higher_is_better else min(means))


# By ``figure`` of an objective, by which the best encoder may be chosen, too.
OWN = {
    name: Measure(
        name=name,
        title=f"held-out {name}",
        parts=(),
        take=lambda encoder: {},
        higher_is_better=name == options.ACCURACY,
    )
    for name in (options.PERPLEXITY, options.ACCURACY)
}


def held_out_error(texts: Sequence[ParallelText]) -> Measure:
    """Measure retrieval among the held-out pairs of each language pair, see ``retrieval_error``."""
    return Measure(
        name=options.HELD_OUT_ERROR,
        title="held-out error",
        parts=[text.name for text in texts],
        take=lambda encoder: {text.name: retrieval_error(encoder, text) for text in texts},
    )


def retrieval_error(encoder: Encoder, text: ParallelText) -> float:
    """Return the share of sentences whose nearest neighbour is no translation, both ways."""
    source, target = map(encoder.for_language, text.name.partition("-")[::2])
    cosines = source.encode(text.source) @ target.encode(text.target).T
    own = np.arange(len(text))
    wrong = [(cosines.argmax(axis=axis) != own).mean() for axis in (0, 1)]
    return float(np.mean(wrong))
