"""Splitting, tokenising and sampling parallel text."""

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoder.tokenizer import Tokenizer, join
from encoder.training.data import (
    TokenPairs,
    count_tokens,
    hold_out,
    pair_weights,
    sample_batches,
    tokenize_pairs,
)
from encoder.training.reading import ParallelText
from tests.encoder.test_tokenizer import lists_of, tokens_of


def numbered(count: int) -> ParallelText:
    """Pairs that tell their own number."""
    return ParallelText(
        name="xx-yy",
        source=[f"s{row}" for row in range(count)],
        target=[f"t{row}" for row in range(count)],
        corpus=[f"c{row % 3}" for row in range(count)],
    )


def token_pairs(weights: list[float], name: str = "xx-yy") -> TokenPairs:
    empty = tokens_of([[] for _ in weights])
    weight = np.array(weights, dtype=np.float32)
    return TokenPairs(name=name, source=empty, target=empty, weight=weight)


@given(count=st.integers(0, 30), out=st.integers(0, 15), seed=st.integers(0, 9))
def test_hold_out_is_disjoint_and_complete(count: int, out: int, seed: int) -> None:
    text = numbered(count)
    if count < 2 * out:
        with pytest.raises(ValueError, match=f": xx-yy has too few pairs, {count}, less"):
            hold_out(text, out, seed=seed)
        return
    kept, held = hold_out(text, out, seed=seed)
    assert (len(held), len(kept)) == (out, count - out)
    rows = [(s, t, c) for part in (kept, held) for s, t, c in triples(part)]
    assert sorted(rows) == sorted(triples(text))
    assert hold_out(text, out, seed=seed) == (kept, held)


def triples(text: ParallelText) -> list[tuple[str, str, str]]:
    return list(zip(text.source, text.target, text.corpus, strict=True))


def test_hold_out_depends_on_the_seed() -> None:
    held = [hold_out(numbered(200), 20, seed=seed)[1].source for seed in range(3)]
    assert held[0] != held[1] != held[2]


def test_weights_are_those_of_the_corpora(tokenizer: Tokenizer) -> None:
    text = numbered(4)
    assert pair_weights(text, {"c1": 0.25, "other": 0}).tolist() == [1, 0.25, 1, 1]
    pairs = tokenize_pairs(text, tokenizer, {"c0": 0})
    assert (len(pairs.source), len(pairs.target), pairs.name) == (4, 4, "xx-yy")
    assert pairs.weight.tolist() == [0, 1, 1, 0]
    assert np.array_equal(pairs.target.ids, tokenizer.encode(text.target).ids)


def sampled(
    pairs: list[TokenPairs],
    batches: int,
    *,
    batch_size: int,
    exponent: float = 0.5,
    seed: int = 1,
) -> list[tuple[str, list[int]]]:
    endless = sample_batches(pairs, batch_size=batch_size, exponent=exponent, seed=seed)
    return [(pair.name, rows.tolist()) for pair, rows in islice(endless, batches)]


@pytest.mark.parametrize("batch_size", [1, 4, 7, 10, 25])
def test_every_pass_uses_every_row_once(batch_size: int) -> None:
    """Passes run on across batches, also where a batch is larger than a pass."""
    batches = sampled([token_pairs([1] * 10)], 40, batch_size=batch_size)
    assert all(len(rows) == batch_size for _, rows in batches)
    stream = [row for _, rows in batches for row in rows]
    passes = [stream[start : start + 10] for start in range(0, len(stream) - 9, 10)]
    assert all(sorted(rows) == list(range(10)) for rows in passes)
    assert len(set(map(tuple, passes))) > 1


def test_weights_are_probabilities_in_a_pass() -> None:
    weights = [1.0] * 20 + [0.3] * 20 + [0.0] * 20
    stream = np.concatenate(
        [rows for _, rows in sampled([token_pairs(weights)], 800, batch_size=13)]
    )
    counts = np.bincount(stream, minlength=60)
    passes = len(stream) / (20 + 0.3 * 20)
    assert (np.abs(counts[:20] - passes) <= 2).all()
    assert counts[20:40].mean() == pytest.approx(0.3 * passes, rel=0.05)
    assert not counts[40:].any()


@pytest.mark.parametrize(("exponent", "share"), [(0.0, 1 / 2), (0.5, 1 / 5), (1.0, 1 / 17)])
def test_the_exponent_flattens_sizes(exponent: float, share: float) -> None:
    """The second language pair weighs 16 times the first; half of its pairs weigh nothing."""
    pairs = [token_pairs([1] * 10, "small"), token_pairs([1, 0] * 160, "large")]
    batches = sampled(pairs, 4000, batch_size=2, exponent=exponent)
    found = sum(name == "small" for name, _ in batches) / len(batches)
    assert found == pytest.approx(share, abs=0.03)


def test_a_language_pair_without_weight_is_never_drawn() -> None:
    pairs = [token_pairs([0] * 10, "nothing"), token_pairs([1], "something")]
    assert {name for name, _ in sampled(pairs, 50, batch_size=3)} == {"something"}


def test_the_seed_decides() -> None:
    pairs = [token_pairs([1, 0.5] * 30, "a"), token_pairs([1] * 50, "b")]
    first, same, other = (sampled(pairs, 30, batch_size=8, seed=seed) for seed in (4, 4, 5))
    assert first == same != other


lists = st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=1, max_size=12)


@given(source=lists, target=lists)
def test_joining_is_laying_end_to_end(source: list[list[int]], target: list[list[int]]) -> None:
    joined = join([tokens_of(source), tokens_of(target)])
    assert lists_of(joined) == source + target
    assert (joined.ids.dtype, joined.offsets.dtype) == (np.int32, np.int64)


@given(lists=lists, size=st.integers(1, 30))
def test_batches_by_tokens_are_as_full_as_they_can_be(lists: list[list[int]], size: int) -> None:
    target = tokens_of([tokens[:3] for tokens in lists])
    weight = np.ones(len(lists), dtype=np.float32)
    pairs = TokenPairs(name="xx-yy", source=tokens_of(lists), target=target, weight=weight)
    counts = [1 + len(tokens) for tokens in lists]
    assert count_tokens(pairs).tolist() == counts
    endless = sample_batches([pairs], batch_size=size, in_tokens=True, exponent=1.0, seed=3)
    batches = [rows.tolist() for _, rows in islice(endless, 40)]
    for rows, following in pairwise(batches):
        total = sum(counts[row] for row in rows)
        assert rows and (total <= size or len(rows) == 1)
        assert total + counts[following[0]] > size
    stream = [row for rows in batches for row in rows]
    assert sorted(stream[: len(lists)]) == list(range(len(lists)))
