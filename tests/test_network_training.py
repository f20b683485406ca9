"""Training of the comparison network, on a made-up language whose words are those of English."""

import json
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
import pytest
import torch
from safetensors import safe_open

from encoder.training.reading import ParallelText
from encoder.words import Words
from miner.judge.network import load_network
from tests.benchmark import benchmark

network = benchmark("network_training")
changed_pairs = benchmark("changed_pairs")
CHANGES, KINDS, UNCHANGED = changed_pairs.CHANGES, changed_pairs.KINDS, changed_pairs.UNCHANGED
Corpus = changed_pairs.Corpus

_RANDOM = Random(1)
KNOWN = ["in", "May", "June", "Paris", "London", "is", "hot", "cold", *map(str, range(60, 100))]
TEXTS = [" ".join(_RANDOM.sample(KNOWN, _RANDOM.randint(4, 9))) for _ in range(300)]
LANGUAGES = ["de", "en"]


class Maker:
    """Word and sentence encoder in which each word has a vector, the same in all languages."""

    name, dim = "made", 32

    def for_language(self, language: str | None) -> "Maker":
        return self

    def encode(self, sentences: list[str]) -> np.ndarray:
        sums = [sum(map(self._vector, sentence.split())) for sentence in sentences]
        return np.stack([row / np.linalg.norm(row) for row in sums])

    def split(self, sentences: list[str]) -> list[list[str]]:
        return [sentence.split() for sentence in sentences]

    def words(self, sentences: list[str]) -> Words:
        parts = [sentence.split() for sentence in sentences]
        names = sorted({word for part in parts for word in part})
        return Words(
            vectors=np.stack([self._vector(one) for one in names]),
            weights=np.ones(len(names), np.float32),
            ids=np.array([names.index(one) for part in parts for one in part], np.int32),
            offsets=np.cumsum([0, *map(len, parts)]),
        )

    def _vector(self, word: str) -> np.ndarray:
        row = np.random.default_rng(crc32(word.encode())).standard_normal(self.dim)
        return (row / np.linalg.norm(row)).astype(np.float32)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    text = ParallelText(name="de-en", source=TEXTS, target=TEXTS, corpus=[""] * len(TEXTS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_pairs, "LENGTH", 16)
        patch.setattr(changed_pairs, "DEVICE", torch.device("cpu"))
        return changed_pairs.read_corpus([text], Maker())  # type: ignore[arg-type]


def changed(corpus: Corpus, kind: str) -> list[tuple[list[int], list[int], list[int], list[int]]]:
    """Words of source and target before and after a change, of changed pairs."""
    torch.manual_seed(3)
    pairs = torch.arange(len(TEXTS))
    kinds = torch.full_like(pairs, KINDS[kind])
    source, target, is_new, is_changed = changed_pairs.change_pairs(corpus, pairs, kinds)
    assert is_changed.sum() > 20
    found = []
    for row in is_changed.nonzero()[:, 0].tolist():
        sides = (corpus.sources[row], corpus.targets[row], source[row], target[row])
        words = tuple([word for word in side.tolist() if word] for side in sides)
        before, after = words[1], words[3]
        assert is_new[row].tolist()[: len(after)] == [word not in before for word in after]
        assert not is_new[row, len(after) :].any()
        found.append(words)
    return found  # type: ignore[return-value]


def test_unchanged_pairs_have_no_labels(corpus: Corpus) -> None:
    pairs = torch.arange(len(TEXTS))
    source, target, *labels = changed_pairs.change_pairs(
        corpus, pairs, torch.full_like(pairs, UNCHANGED)
    )
    assert torch.equal(source, corpus.sources.long())
    assert torch.equal(target, corpus.targets[: len(TEXTS)].long())
    assert not any(label.any() for label in labels)


@pytest.mark.parametrize("kind", ["similar word", "random word", "name", "sense", "number"])
def test_words_are_replaced(corpus: Corpus, kind: str) -> None:
    for source, target, new_source, new_target in changed(corpus, kind):
        assert new_source == source
        assert len(new_target) == len(target)
        differences = sum(one != other for one, other in zip(target, new_target, strict=True))
        assert differences >= 1 if kind == "number" else differences == 1


def test_a_negation_adds_a_word(corpus: Corpus) -> None:
    assert all(len(words[3]) == len(words[1]) + 1 for words in changed(corpus, "negation"))


def test_a_word_is_removed(corpus: Corpus) -> None:
    for _, target, _, new_target in changed(corpus, "removed word"):
        assert any(target[:place] + target[place + 1 :] == new_target for place in range(9))


@pytest.mark.parametrize(("kind", "side"), [("cut source", 0), ("cut target", 1)])
def test_one_part_is_cut(corpus: Corpus, kind: str, side: int) -> None:
    for words in changed(corpus, kind):
        before, after = words[side], words[2 + side]
        cut = len(before) - len(after)
        assert 1 <= cut <= 0.6 * len(before) + 0.5
        assert any(before[:one] + before[one + cut :] == after for one in range(len(after) + 1))
        assert words[1 - side] == words[3 - side]


@pytest.mark.parametrize(("kind", "side"), [("added to source", 0), ("added to target", 1)])
def test_another_sentence_is_added(corpus: Corpus, kind: str, side: int) -> None:
    for words in changed(corpus, kind):
        before, after = words[side], words[2 + side]
        assert len(after) > len(before)
        kept = min(len(before), 16)
        assert before in (after[:kept], after[-kept:]) or len(after) == 16
        assert words[1 - side] == words[3 - side]


def test_a_similar_target_is_another_target(corpus: Corpus) -> None:
    targets = corpus.targets[: len(TEXTS)].tolist()
    for source, _, new_source, new_target in changed(corpus, "similar target"):
        assert new_target + [0] * (16 - len(new_target)) in targets
        assert new_source == source


def test_texts_without_a_change_get_another_kind(corpus: Corpus) -> None:
    torch.manual_seed(1)
    no_name = (corpus.others[:, KINDS["name"], 0] < 0).nonzero()[:, 0]
    assert 0 < len(no_name) < len(TEXTS)
    kinds = changed_pairs.draw_kinds(corpus, no_name.repeat(50))
    assert KINDS["name"] not in kinds
    assert set(kinds.tolist()) == set(range(len(CHANGES))) - {KINDS["name"]}


def test_training_lowers_the_loss_and_the_network_is_saved(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "DEVICE", torch.device("cpu"))
    for name, value in {"BATCH": 32, "WARMUP": 5, "REPORT_STEPS": 10, "SCALED_PAIRS": 32}.items():
        monkeypatch.setattr(network, name, value)
    losses: list[float] = []
    trained = network.train_network(corpus, 150, 50, lambda _, loss: losses.append(loss))
    assert len(losses) == 5
    assert losses[-1] < 0.8 * losses[0]
    assert network.rate_changes(trained, corpus)["cut target"] > 0.8
    path = tmp_path / "network.safetensors"
    network.save_network(path, trained, corpus, {"languages": ["de"], "steps": 100})
    with safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["languages"]) == ["de"]
    saved, maker = load_network(path), Maker()
    assert saved.encoders == {"made"}
    targets = TEXTS[:20] + TEXTS[21:41]
    log_odds, *words = saved.judge(maker.words(TEXTS[:40]), maker.words(targets))
    rows = [*range(20), *range(21, 41)]
    lines = (corpus.look_up(side) for side in (corpus.sources[:40], corpus.targets[rows]))
    expected, *expected_words = (each.detach().numpy() for each in trained(*lines))
    assert np.corrcoef(log_odds, expected)[0, 1] > 0.999
    is_word = corpus.sources[:40, : expected_words[0].shape[1]].numpy() > 0
    assert np.corrcoef(words[0], expected_words[0][is_word])[0, 1] > 0.999
