"""Parallel text for training, held-out pairs, N-way text and batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.tokenizer import Tokenizer, Tokens
from encoder.training.reading import ParallelText, Texts

Rows = NDArray[np.int64]

LONGEST = 128  # tokens per sentence in training; a network ignores the rest


@dataclass(frozen=True, kw_only=True)
class TokenPairs:
    """P tokenised sentence pairs of a language pair.

    ``name`` is as in ``ParallelText``. ``weight``, float32 (P,), is the probability that a pass
    uses a sentence pair. ``times`` is a factor of the share of batches.
    """

    name: str
    source: Tokens
    target: Tokens
    weight: NDArray[np.float32]
    times: float = 1.0


Batch = tuple[TokenPairs, Rows]  # a language pair, and its rows


def tokenize_pairs(
    text: ParallelText, tokenizer: Tokenizer, weights: Mapping[str, float], one_sided: bool = False
) -> TokenPairs:
    """Tokenise a text with ``pair_weights``, targets empty if ``one_sided``."""
    return TokenPairs(
        name=text.name,
        source=tokenizer.encode(text.source),
        target=Tokens.of([()] * len(text)) if one_sided else tokenizer.encode(text.target),
        weight=pair_weights(text, weights),
    )


def pair_weights(text: ParallelText, weights: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the weight of each pair's corpus, float32 (P,), by default 1."""
    return np.array([weights.get(name, 1.0) for name in text.corpus], dtype=np.float32)


def hold_out(text: ParallelText, count: int, *, seed: int) -> tuple[ParallelText, ParallelText]:
    """Divide a text into training pairs and ``count`` held-out pairs.

    Held-out pairs are random. ``count`` is 1 or more. Results keep the order, not ``excluded``.

    Raises:
        ValueError: The text has fewer than ``2 * count`` pairs.
    """
    if len(text) < 2 * count:
        raise ValueError(
            f"--held-out {count}: {text.name} has too few pairs, {len(text)}, less than twice as "
            "many; lower it, or use more text"
        )
    order = np.random.default_rng(seed).permutation(len(text))
    return text.take(np.sort(order[count:])), text.take(np.sort(order[:count]))


def count_tokens(pairs: TokenPairs) -> Rows:
    """Count each pair's longer side, up to 128 tokens and the end, int64 (P,)."""
    longer = np.maximum(np.diff(pairs.source.offsets), np.diff(pairs.target.offsets))
    return 1 + np.minimum(longer, LONGEST)


def sample_batches(
    pairs: list[TokenPairs], *, batch_size: int, in_tokens: bool = False, exponent: float, seed: int
) -> Iterator[Batch]:
    """Yield random batches of sentence pairs without end.

    A batch is an item of ``pairs``, and positions in it, int64. It has ``batch_size`` sentence
    pairs or, with ``in_tokens``, as many as have up to ``batch_size`` tokens by ``count_tokens``,
    at least one. The item is drawn with probability proportional to (sum of its weights) **
    ``exponent``, multiplied by its ``times``. Each pass over it, which may end within a batch, is a
    new shuffle that keeps a pair with probability equal to its weight. Each item has one above 0.
    """
    generator = np.random.default_rng(seed)
    sizes = np.array([float(p.weight.sum()) ** exponent * p.times for p in pairs])
    counts = [count_tokens(p) if in_tokens else np.ones(len(p.weight), np.int64) for p in pairs]
    queues = [np.empty(0, dtype=np.int64) for _ in pairs]
    while True:
        drawn = int(generator.choice(len(pairs), p=sizes / sizes.sum()))
        weights, sizes_of_pairs = pairs[drawn].weight, counts[drawn]
        while sizes_of_pairs[queues[drawn][:batch_size]].sum() < batch_size:
            kept_rows = np.flatnonzero(generator.random(len(weights)) < weights)
            queues[drawn] = np.concatenate([queues[drawn], generator.permutation(kept_rows)])
        sums = sizes_of_pairs[queues[drawn][:batch_size]].cumsum()
        count = max(1, int(np.searchsorted(sums, batch_size, side="right")))
        rows, queues[drawn] = np.split(queues[drawn], [count])
        yield pairs[drawn], rows


def join_targets(texts: Texts) -> list[ParallelText]:
    """Make N-way text of the pairs whose target sentence all texts have.

    Row i of each result translates row i of the others, in the first text's order. A sentence's
    first translation is used. Rows that repeat a sentence are skipped, and so is ``excluded``.

    Raises:
        ValueError: The texts have several target languages, or no target sentence in common.
    """
    languages = sorted({text.name.partition("-")[2] for text in texts})
    if len(languages) > 1:
        raise ValueError(
            f"--objective paths requires one common target language, but the pairs have "
            f"{', '.join(languages)}; choose pairs with --pairs"
        )
    # The first row of each sentence, which overwrites later ones here.
    places = [{line: row for row, line in reversed([*enumerate(text.target)])} for text in texts]
    rows: list[list[int]] = []
    seen: set[tuple[str, str]] = set()
    for sentence in dict.fromkeys(texts[0].target):
        if all(sentence in each for each in places):
            row = [each[sentence] for each in places]
            sentences = {(text.name, text.source[n]) for text, n in zip(texts, row, strict=True)}
            if seen.isdisjoint(sentences):
                rows.append(row)
                seen |= sentences
    if not rows:
        names = ", ".join(text.name for text in texts)
        raise ValueError(
            f"{names}: no target sentence is in all of them, as --objective paths requires; choose "
            "others with --pairs"
        )
    return [text.take(column) for text, column in zip(texts, np.array(rows).T, strict=True)]


def sentences_by_language(texts: Texts | Sequence[TokenPairs]) -> dict[str, Any]:
    """Return ``join_targets``' sentences, or tokens, by language, target last."""
    sources = {text.name.partition("-")[0]: text.source for text in texts}
    return {**sources, texts[0].name.partition("-")[2]: texts[0].target}


def all_pairs(texts: Texts, languages: Sequence[str]) -> list[ParallelText]:
    """Return text of each two of ``languages``, from that of ``join_targets``."""
    texts_of, corpus = sentences_by_language(texts), texts[0].corpus
    return [
        ParallelText(name=f"{a}-{b}", source=texts_of[a], target=texts_of[b], corpus=corpus)
        for a, b in combinations(languages, 2)
    ]
