"""Parallel text for training: N-way text, held-out split, tokenised store, batch sampling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from encoder.tokenizer import Tokenizer, Tokens
from encoder.training.reading import ParallelText, Texts

Rows = NDArray[np.int64]

LONGEST = 128  # tokens of a sentence that a network is trained on; the others are cut off


@dataclass(frozen=True, kw_only=True)
class TokenPairs:
    """A language pair, tokenised, with the sampling weight of each sentence pair.

    It is drawn ``times`` as often as its size says.
    """

    name: str
    source: Tokens
    target: Tokens
    weight: NDArray[np.float32]
    times: float = 1.0


Batch = tuple[TokenPairs, Rows]  # a language pair, and its rows


def join(sides: Sequence[Tokens]) -> Tokens:
    """Join all sentences of all sides, one side after the other."""
    lengths = np.concatenate([np.diff(side.offsets) for side in sides])
    offsets = np.concatenate(([0], lengths.cumsum()))
    return Tokens(ids=np.concatenate([side.ids for side in sides]), offsets=offsets)


def tokenize_pairs(
    text: ParallelText, tokenizer: Tokenizer, weights: Mapping[str, float], one_sided: bool = False
) -> TokenPairs:
    """Tokenise both sides, or the source, the targets then being empty."""
    return TokenPairs(
        name=text.name,
        source=tokenizer.encode(text.source),
        target=Tokens.of([()] * len(text)) if one_sided else tokenizer.encode(text.target),
        weight=pair_weights(text, weights),
    )


def pair_weights(text: ParallelText, weights: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the weight of each pair's corpus, 1 where it is not named: float32 (P,)."""
    return np.array([weights.get(name, 1.0) for name in text.corpus], dtype=np.float32)


def hold_out(text: ParallelText, count: int, *, seed: int) -> tuple[ParallelText, ParallelText]:
    """Split off ``count`` random pairs, at most half of all: the others, and those."""
    if len(text) < 2 * count:
        raise ValueError(
            f"{text.name}: {len(text)} pairs are too few to hold out {count}; use more text"
        )
    order = np.random.default_rng(seed).permutation(len(text))
    return text.take(np.sort(order[count:])), text.take(np.sort(order[:count]))


def count_tokens(pairs: TokenPairs) -> Rows:
    """Return the tokens of each pair's longer side, the one that ends it included: int64 (P,)."""
    longer = np.maximum(np.diff(pairs.source.offsets), np.diff(pairs.target.offsets))
    return 1 + np.minimum(longer, LONGEST)


def sample_batches(
    pairs: list[TokenPairs], *, batch_size: int, in_tokens: bool = False, exponent: float, seed: int
) -> Iterator[Batch]:
    """Yield endless batches, each of ``batch_size`` pairs or at most so many tokens.

    A language pair is drawn with probability proportional to (sum of its weights) **
    ``exponent``, times its own factor. Within it every pass is a fresh shuffle that keeps a
    sentence pair with probability equal to its weight, so that nothing is repeated before its pass
    is over. A batch has one sentence pair at least.
    """
    generator = np.random.default_rng(seed)
    sizes = np.array([float(p.weight.sum()) ** exponent * p.times for p in pairs])
    counts = [count_tokens(p) if in_tokens else np.ones(len(p.weight), np.int64) for p in pairs]
    queues = [np.empty(0, dtype=np.int64) for _ in pairs]
    while True:
        chosen = int(generator.choice(len(pairs), p=sizes / sizes.sum()))
        weight, counted = pairs[chosen].weight, counts[chosen]
        while counted[queues[chosen][:batch_size]].sum() < batch_size:
            kept = np.flatnonzero(generator.random(len(weight)) < weight)
            queues[chosen] = np.concatenate([queues[chosen], generator.permutation(kept)])
        sums = counted[queues[chosen][:batch_size]].cumsum()
        taken = max(1, int(np.searchsorted(sums, batch_size, side="right")))
        rows, queues[chosen] = np.split(queues[chosen], [taken])
        yield pairs[chosen], rows


def drop_tokens(tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
    """Remove each token with probability ``rate``."""
    keep = generator.random(len(tokens.ids)) >= rate
    kept_before = np.concatenate(([0], np.cumsum(keep)))
    return Tokens(ids=tokens.ids[keep], offsets=kept_before[tokens.offsets])


def join_targets(texts: Texts) -> list[ParallelText]:
    """Return the pairs of each text whose target all texts have, rows alike translating each other.

    Of several translations of a sentence the first is taken. A row one of whose sentences an
    earlier row has is left out, so that all sentences of a language are different.
    """
    languages = sorted({text.name.partition("-")[2] for text in texts})
    if len(languages) > 1:
        raise ValueError(
            f"N-way text needs one common target language, but these pairs have "
            f"{', '.join(languages)}; choose pairs with --pairs"
        )
    # Of each sentence its first row: it comes last here, in place of others.
    places = [{one: row for row, one in reversed([*enumerate(text.target)])} for text in texts]
    rows: list[list[int]] = []
    seen: set[tuple[str, str]] = set()
    for sentence in dict.fromkeys(texts[0].target):
        if all(sentence in each for each in places):
            row = [each[sentence] for each in places]
            found = {(text.name, text.source[n]) for text, n in zip(texts, row, strict=True)}
            if seen.isdisjoint(found):
                rows.append(row)
                seen |= found
    if not rows:
        names = ", ".join(text.name for text in texts)
        raise ValueError(f"{names}: share no target sentence, so they are not N-way text")
    return [text.take(column) for text, column in zip(texts, np.array(rows).T, strict=True)]


def sentences_by_language(texts: Texts) -> dict[str, list[str]]:
    """Return the sentences of each language of texts that ``join_targets`` made, row by row."""
    found = {text.name.partition("-")[0]: text.source for text in texts}
    return {**found, texts[0].name.partition("-")[2]: texts[0].target}


def all_pairs(texts: Texts, languages: Sequence[str]) -> list[ParallelText]:
    """Return texts of each two of the languages, of texts that ``join_targets`` made."""
    found, corpus = sentences_by_language(texts), texts[0].corpus
    return [
        ParallelText(name=f"{one}-{other}", source=found[one], target=found[other], corpus=corpus)
        for one, other in combinations(languages, 2)
    ]
