"""Reading, splitting and sampling parallel text."""

import lzma
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoder.tokenizer import Tokenizer
from encoder.training.data import (
    ParallelText,
    TokenPairs,
    hold_out,
    pair_weights,
    read_parallel_text,
    sample_batches,
    tokenize_pairs,
)
from tests.encoder.test_tokenizer import tokens_of
from tests.encoder.training.language import write_pairs

NONE: frozenset[str] = frozenset()


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(lzma.compress(text.encode() if isinstance(text, str) else text))
    return path


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


def test_read(tmp_path: Path) -> None:
    path = write(tmp_path / "xx-yy.tsv.xz", "a b\tc\tone\n \u2028é\t\ttwo\nd\te\rf\tone")
    text = read_parallel_text(path, exclude=NONE)
    assert text == ParallelText(
        name="xx-yy",
        source=["a b", " \u2028é", "d"],
        target=["c", "", "e\rf"],
        corpus=["one", "two", "one"],
    )
    assert (len(text), text.corpus_sizes()) == (3, {"one": 2, "two": 1})
    assert read_parallel_text(path, exclude=frozenset({"one", "three"})).source == [" \u2028é"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\tb\tc\na\tb\n", ":2: 2 columns; expected source, target and corpus"),
        ("a\tb\tc\td\n", ":1: 4 columns"),
        ("a\tb\tc\n\n", ":2: 1 columns"),
        ("", ": no sentence pairs left"),
        ("a\tb\tbad\n", ": no sentence pairs left after excluding bad, worse"),
        (b"a\tb\tc\n\xff\tb\tc\n", ": not UTF-8 text compressed with xz, or cut short ("),
    ],
)
def test_read_refuses(tmp_path: Path, text: str | bytes, reason: str) -> None:
    path = write(tmp_path / "xx-yy.tsv.xz", text)
    exclude = frozenset({"bad", "worse"}) if "bad" in str(text) else NONE
    with pytest.raises(ValueError) as caught:
        read_parallel_text(path, exclude=exclude)
    assert str(caught.value).startswith(f"{path}{reason}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kept", [0, 4, 60, -20, -1])
def test_read_refuses_what_is_cut_short(tmp_path: Path, kept: int) -> None:
    path = write_pairs(tmp_path / "xx-yy.tsv.xz", [(f"s{i}", f"t{i}") for i in range(200)])
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="cut short"):
        read_parallel_text(path, exclude=NONE)


def test_read_refuses_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "xx-yy.tsv.xz"
    path.write_text("a\tb\tc\n" * 50)
    with pytest.raises(ValueError, match="not UTF-8 text compressed with xz"):
        read_parallel_text(path, exclude=NONE)


@given(count=st.integers(0, 30), out=st.integers(0, 15), seed=st.integers(0, 9))
def test_hold_out_is_disjoint_and_complete(count: int, out: int, seed: int) -> None:
    text = numbered(count)
    if count < 2 * out:
        with pytest.raises(ValueError, match=f"^xx-yy: {count} pairs are too few to hold out"):
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
    temperature: float = 0.5,
    seed: int = 1,
) -> list[tuple[str, list[int]]]:
    endless = sample_batches(pairs, batch_size=batch_size, temperature=temperature, seed=seed)
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


@pytest.mark.parametrize(("temperature", "share"), [(0.0, 1 / 2), (0.5, 1 / 5), (1.0, 1 / 17)])
def test_the_temperature_flattens_sizes(temperature: float, share: float) -> None:
    """The second language pair weighs 16 times the first; half of its pairs weigh nothing."""
    pairs = [token_pairs([1] * 10, "small"), token_pairs([1, 0] * 160, "large")]
    batches = sampled(pairs, 4000, batch_size=2, temperature=temperature)
    found = sum(name == "small" for name, _ in batches) / len(batches)
    assert found == pytest.approx(share, abs=0.03)


def test_a_language_pair_without_weight_is_never_drawn() -> None:
    pairs = [token_pairs([0] * 10, "nothing"), token_pairs([1], "something")]
    assert {name for name, _ in sampled(pairs, 50, batch_size=3)} == {"something"}


def test_the_seed_decides() -> None:
    pairs = [token_pairs([1, 0.5] * 30, "a"), token_pairs([1] * 50, "b")]
    first, same, other = (sampled(pairs, 30, batch_size=8, seed=seed) for seed in (4, 4, 5))
    assert first == same != other
