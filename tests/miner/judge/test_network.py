"""The comparison network against one without whole numbers, and in real sentences."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge import network as module
from miner.judge.compiled_attention import LANES
from miner.judge.facts import PARTS, whole_vectors
from miner.judge.features import read_texts
from miner.judge.network import Layer, Network, network_of, unmatched_words
from tests.miner.judge.words import Ragged, one, words_of

DIM, STEPS = 64, 40
LENGTHS = [3, 0, 5, 2, 1, 9, 3] * 9, [4, 2, 0, 0, 1, 2, 7] * 9


def layer(random: np.random.Generator, inputs: int, outputs: int) -> Layer:
    weight = random.integers(-127, 128, (inputs, outputs), dtype=np.int8)
    scale = np.full(outputs, 2 / STEPS / 127 / np.sqrt(inputs), dtype=np.float32)
    bias = random.normal(0, 0.2, outputs).astype(np.float32)
    return Layer(steps=np.full(inputs, STEPS, np.float32), weight=weight, scale=scale, bias=bias)


def made_network(dim: int = DIM, hidden: int = 2 * LANES, units: int = 5) -> Network:
    random = np.random.default_rng(2)
    shapes = {
        "inputs": (dim, hidden),
        "context": (3 * hidden, hidden),
        "attention": (hidden, 3 * hidden),
        "attended": (hidden, hidden),
        "queries": (hidden, hidden),
        "compare": (4 * hidden + 7, units),
        "compare_again": (units, units),
        "word": (units, 1),
        "pool": (3 * units, 9),
        "score": (9, 1),
    }
    layers = {name: layer(random, *shape) for name, shape in shapes.items()}
    mixing = np.array([5, 2, 0.5], dtype=np.float32)
    return Network(encoders=frozenset({"made"}), mixing=mixing, **layers)


def exactly(own: Layer, inputs: np.ndarray) -> np.ndarray:
    """The outputs for inputs in steps of whole numbers up to 127."""
    whole = np.clip(np.rint(inputs * own.steps), -127, 127)
    return (whole @ own.weight.astype(np.float64)) * own.scale + own.bias


def in_units(values: np.ndarray) -> np.ndarray:
    """Queries or keys in steps of 1/32 up to 511 of them."""
    return np.clip(np.rint(values * 32), -511, 511) / 32


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def in_context(network: Network, words: Ragged) -> np.ndarray:
    hidden = np.maximum(exactly(network.inputs, whole_vectors(words.vectors) / STEPS), 0)
    size = hidden.shape[1]
    zero = np.zeros((1, size))
    beside = np.hstack([np.vstack([zero, hidden])[:-1], hidden, np.vstack([hidden, zero])[1:]])
    hidden = hidden + np.maximum(exactly(network.context, beside), 0)
    attention = exactly(network.attention, hidden).reshape(len(hidden), 3, -1, LANES)
    heads = [
        softmax(in_units(query) @ in_units(key).T / np.sqrt(LANES)) @ value
        for query, key, value in attention.transpose(2, 1, 0, 3)
    ]
    return hidden + exactly(network.attended, np.hstack(heads))


def slowly(network: Network, source: Ragged, target: Ragged) -> tuple[float, list[np.ndarray]]:
    """Return the log odds of one pair, and of its words."""
    sides, total, words = (source, target), 0.0, []
    hidden = [in_context(network, side) for side in sides]
    alpha, apart, nothing = network.mixing
    for side, (own, other) in enumerate((sides, sides[::-1])):
        here, there = hidden[side], hidden[1 - side]
        whole = [whole_vectors(each.vectors).astype(int) for each in (own, other)]
        cosines = whole[0] @ whole[1].T / PARTS**2
        places = [(np.arange(len(each)) + 0.5) / len(each) for each in (here, there)]
        distance = abs(places[0][:, None] - places[1])
        products = in_units(exactly(network.queries, here)) @ in_units(there).T
        products = products / np.sqrt(here.shape[1])
        logits = alpha * cosines - apart * distance + products
        shares = softmax(np.hstack([logits, np.full((len(here), 1), nothing)]))
        unmatched, shares = shares[:, -1:], shares[:, :-1]
        attended = shares @ there
        best = np.sort(np.hstack([cosines, np.full((len(here), 1), -1)]), axis=1)[:, ::-1]
        weights = own.weights[:, None] / 10
        sums = [(shares * each).sum(axis=1)[:, None] for each in (cosines, distance)]
        parts = here, attended, here * attended, abs(here - attended), best[:, :2], sums[0]
        rest = unmatched, weights, sums[1], shares.max(axis=1)[:, None]
        units = np.maximum(exactly(network.compare, np.hstack([*parts, *rest])), 0)
        units = np.maximum(exactly(network.compare_again, units), 0)
        words.append(exactly(network.word, units)[:, 0])
        mean = (units * weights).sum(axis=0) / weights.sum()
        pooled = np.concatenate([units.max(axis=0), units.mean(axis=0), mean])
        total += float(exactly(network.score, np.maximum(exactly(network.pool, pooled), 0))[0])
    return total, words


def test_pairs_are_judged_as_step_by_step() -> None:
    network = made_network()
    source, target = (words_of(lengths, seed, DIM) for seed, lengths in enumerate(LENGTHS))
    scores, *words = network.judge(source, target)
    assert [len(side) for side in words] == [sum(lengths) for lengths in LENGTHS]
    for pair, lengths in enumerate(zip(*LENGTHS, strict=True)):
        if min(lengths) == 0:
            assert np.isnan(scores[pair])
            continue
        score, expected = slowly(network, one(source, pair), one(target, pair))
        assert scores[pair] == pytest.approx(score, abs=0.005)
        for side, words_of_side, all_of_side in zip((source, target), words, expected, strict=True):
            part = slice(*side.offsets[pair : pair + 2])
            np.testing.assert_allclose(words_of_side[part], all_of_side, atol=0.005)


def test_pairs_have_the_same_bits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    network = made_network()
    source, target = (words_of(lengths, seed, DIM) for seed, lengths in enumerate(LENGTHS))
    together, *_ = network.judge(source, target)
    alone = [network.judge(one(source, pair), one(target, pair))[0][0] for pair in range(63)]
    np.testing.assert_array_equal(together, alone)
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 5)
    np.testing.assert_array_equal(together, network.judge(source, target)[0])


def test_long_sentences_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    network = made_network()
    source, target = (words_of(lengths, seed, DIM) for seed, lengths in enumerate(LENGTHS))
    expected, *words = network.judge(source, target)
    monkeypatch.setattr(module, "LONGEST", 4)
    scores, *short = network.judge(source, target)
    is_judged = np.array([0 < min(both) <= max(both) <= 4 for both in zip(*LENGTHS, strict=True)])
    assert 0 < is_judged.sum() < np.isfinite(expected).sum()
    np.testing.assert_array_equal(scores, np.where(is_judged, expected, np.nan))
    for lengths, own, all_words in zip(LENGTHS, short, words, strict=True):
        kept = np.repeat(is_judged, lengths)
        np.testing.assert_array_equal(own, np.where(kept, all_words, np.nan))


def test_no_pairs_have_no_log_odds() -> None:
    nothing = words_of([], 1, DIM)
    assert [len(each) for each in made_network().judge(nothing, nothing)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("Er kommt heute nicht.", "He is not coming today.", "He is coming today."),
        ("Der Umsatz ist gesunken.", "Sales have fallen.", "Sales have risen."),
        ("Wir treffen uns am Dienstag.", "We meet on Tuesday.", "We meet on Friday."),
        (
            "Die Sitzung ist zu Ende, und alle gehen nach Hause.",
            "The session is over, and everybody goes home.",
            "The session is over.",
        ),
    ],
)
def test_a_changed_translation_is_less_probable(source: str, right: str, wrong: str) -> None:
    makers = word_encoders(load_encoder("mini"), ("de", "en"))
    network = network_of(makers)
    assert network is not None
    scores, *_ = network.judge(makers[0].words([source] * 2), makers[1].words([right, wrong]))
    assert scores[0] > scores[1] + 0.5


@pytest.mark.parametrize(
    ("language", "source", "target", "expected"),
    [
        ("de", "Das Haus ist rot.", "The house is blue.", ([], ["blue."])),
        ("zh", "他昨天没有去北京。", "He went to Beijing yesterday.", (["没有"], [])),
        ("ru", "Он не пришёл вчера на работу.", "He came to work yesterday.", (["не"], [])),
        ("de", "Das Haus ist rot.", "The house is red.", ([], [])),
        ("de", "", "The house is red.", ([], [])),
    ],
)
def test_words_without_a_counterpart_are_named(
    language: str, source: str, target: str, expected: tuple[list[str], list[str]]
) -> None:
    makers = word_encoders(load_encoder("mini"), (language, "en"))
    beside = ["Das ist gut."], ["That is good."]
    _, found = unmatched_words(makers, [*beside[0], source], [*beside[1], target])
    assert tuple([word for word, alone in side if alone] for side in found) == expected
    words = [maker.split([text])[0] for maker, text in zip(makers, (source, target), strict=True)]
    assert [[word for word, _ in side] for side in found] == words


@pytest.mark.parametrize("is_given", [False, True])
def test_clearly_wrong_pairs_are_judged_only_if_given(is_given: bool) -> None:
    makers = word_encoders(load_encoder("mini"), ("de", "en"))
    source = ["Das Haus ist rot.", "Das Haus ist rot.", ""]
    target = ["The house is blue.", "Prices fell sharply in Tokyo yesterday.", "No."]
    network = network_of(makers)
    assert network is not None
    words = [maker.words(side) for maker, side in zip(makers, (source, target), strict=True)]
    expected = network.judge(*words)[0]
    assert np.isfinite(expected).tolist() == [True, True, False]
    expected[1] = expected[1] if is_given else np.nan
    texts = read_texts(makers, source, target, is_given=is_given)
    np.testing.assert_array_equal(texts.context, expected)


def test_other_encoders_have_no_network() -> None:
    assert network_of([object()]) is None  # type: ignore[list-item]
