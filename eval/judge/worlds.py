"""Corpora of which it is known what translates what: made of parallel text, to be mined.

Axes: ``N`` source sentences, ``M`` target sentences.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from encoder.training.reading import ParallelText
from eval.data.bucc import text_key
from eval.judge.mined import Mined
from eval.judge.spoiling import KINDS, negation

SPOILED = 0.08  # of the sentences with a translation: that gets a near-copy in its place
RIGHT, WRONG, UNKNOWN = 1, 0, -1


class Known:
    """Which sentences translate which, in a whole corpus."""

    def __init__(self, *texts: ParallelText) -> None:
        self._targets: defaultdict[str, set[str]] = defaultdict(set)
        self._sources: defaultdict[str, set[str]] = defaultdict(set)
        for text in texts:
            for source, target in zip(text.source, text.target, strict=True):
                self._targets[_bare(source)].add(_bare(target))
                self._sources[_bare(target)].add(_bare(source))

    def may_translate(self, source: str, target: str) -> bool:
        """Return whether both translate each other, or may, by a translation in common."""
        own = self._targets.get(_bare(source), set())
        theirs = self._sources.get(_bare(target), set())
        return any(own & self._targets[other] for other in theirs)


@dataclass(frozen=True, kw_only=True)
class World:
    """Two corpora; ``gold`` are the pairs of texts that translate each other, ``known`` more."""

    name: str
    languages: tuple[str, str]
    source: Sequence[str]
    target: Sequence[str]
    gold: frozenset[tuple[str, str]]
    known: Known | None = None

    def labels(self, mined: Mined) -> NDArray[np.int8]:
        """Return what is known of mined pairs: ``RIGHT``, ``WRONG`` or ``UNKNOWN``, int8 (P,)."""
        rows = zip(mined.pairs.source.tolist(), mined.pairs.target.tolist(), strict=True)
        texts = ((mined.texts[0][own], mined.texts[1][other]) for own, other in rows)
        return np.array([self._label(*pair) for pair in texts], dtype=np.int8)

    def _label(self, own: str, other: str) -> int:
        if (own, other) in self.gold:
            return RIGHT
        return UNKNOWN if self.known and self.known.may_translate(own, other) else WRONG


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def make_world(
    text: ParallelText,
    known: Known,
    rows: Sequence[int],
    *,
    share: float,
    name: str,
    random: Random,
) -> World:
    """Make two corpora of some pairs, of which a share is in both.

    Of the others, one half has its source and the other half its target in them. A few of
    those in both have a near-copy in the place of a sentence, and no translation then.
    """
    pairs = _distinct((text_key(text.source[row]), text_key(text.target[row])) for row in rows)
    common = round(share * len(pairs) / (2 - share))
    half = (len(pairs) - common) // 2
    both, sources = pairs[:common], [pair[0] for pair in pairs[common : common + half]]
    targets = [pair[1] for pair in pairs[common + half :]]
    spoiled = round(SPOILED * len(both))
    own_language, other_language = text.name.split("-")
    for own, other in both[:spoiled]:
        kind, side = random.choice(KINDS), random.randrange(2)
        side = 1 if kind is negation else side
        changed = [own, other]
        changed[side] = text_key(kind(changed[side], random, (sources, targets)[side] or [own]))
        sources.append(changed[0])
        targets.append(changed[1])
    gold = both[spoiled:]
    gold_sources, gold_targets = {own for own, _ in gold}, {other for _, other in gold}
    sources = [one for one in dict.fromkeys(sources) if one and one not in gold_sources]
    targets = [one for one in dict.fromkeys(targets) if one and one not in gold_targets]
    sources, targets = sources + [own for own, _ in gold], targets + [other for _, other in gold]
    random.shuffle(sources)
    random.shuffle(targets)
    return World(
        name=name,
        languages=(own_language, other_language),
        source=sources,
        target=targets,
        gold=frozenset(both),  # with those that a change left as they were
        known=known,
    )


def _distinct(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs of which neither sentence was there before."""
    found, seen = [], (set[str](), set[str]())
    for pair in pairs:
        if pair[0] not in seen[0] and pair[1] not in seen[1] and pair[0] != pair[1]:
            found.append(pair)
            seen[0].add(pair[0])
            seen[1].add(pair[1])
    return found
