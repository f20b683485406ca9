"""Each objective and each architecture learns a made-up language pair, through the command."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from encoder import load_encoder
from encoder.training.architectures import make_model
from encoder.training.architectures.bag import Bag
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import pad
from encoder.training.data import TokenPairs
from encoder.training.evaluation import LOG, PROGRESS
from encoder.training.loop import Training, train
from encoder.training.options import training_options
from encoder.training.tasks.ranking import Ranking, mine_negatives, translation_ranking
from encoder.training.tasks.task import Decoder
from encoder.training.tasks.taught import distillation
from encoder.training.tasks.translation import Translation, sequence_translation
from pipelines.cli.train import train_encoder
from tests.encoder.bag.test_features import one_word_each
from tests.encoder.test_tokenizer import lists_of, tokens_of
from tests.encoder.training.language import made_up_pairs, made_up_triples, setting_of, write_pairs
from tests.encoder.training.test_objectives import unit_rows

PAIRS = 1200
FRESH = 200
RECURRENT = ("lstm-last", "gru-last", "bigru-last", "bilstm-last", "bilstm-mean", "attention")
COMMON = ("--vocabulary-size", "300", "--held-out", "100", "--quiet")
BAG = ("--dim", "32", "--batch-size", "64", "--learning-rate", "0.03")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_pairs(folder / "xx-yy.tsv.xz", made_up_pairs(PAIRS, seed=1))
    return folder


def trained(data: Path, output: Path, *options: str) -> tuple[float, list[dict[str, float]]]:
    """The share of sentences never seen whose translation is found, and the log."""
    assert train_encoder([str(data), "-o", str(output), *COMMON, *options]) == 0
    encoder = load_encoder(str(output))
    fresh = made_up_pairs(PAIRS + FRESH, seed=1)[PAIRS:]
    source, target = (encoder.encode(list(side)) for side in zip(*fresh, strict=True))
    found = (source @ target.T).argmax(axis=1) == np.arange(FRESH)
    log = (output / PROGRESS / LOG).read_text().splitlines()
    return float(found.mean()), [json.loads(line) for line in log]


@pytest.fixture(scope="module")
def teacher(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag that ranks, from the middle of its training on against hard negatives, too."""
    output = tmp_path_factory.mktemp("teacher") / "enc"
    found, _ = trained(
        data, output, *BAG, "--steps", "100", "--evaluate-every", "50", "--hard-negatives", "5"
    )
    assert found > 0.9  # chance is 1 in 200, here and below
    return output


def test_ranking_with_hard_negatives(teacher: Path) -> None:
    assert load_encoder(str(teacher)).dim == 32


def test_distillation(data: Path, teacher: Path, tmp_path: Path) -> None:
    options = ("--objective", "distillation", "--teacher", str(teacher), "--steps", "100")
    found, _ = trained(data, tmp_path / "enc", *BAG, *options)
    assert found > 0.9
    sentences = [source for source, _ in made_up_pairs(50, seed=1)]
    both = [load_encoder(str(place)).encode(sentences) for place in (teacher, tmp_path / "enc")]
    assert (both[0] * both[1]).sum(axis=1).mean() > 0.8


@pytest.mark.slow
def test_translation(tmp_path: Path) -> None:
    """Two target languages, for with one pair alone nothing makes its two languages share a space.

    Chance is an error of 0.99.
    """
    triples = made_up_triples(300, words=20, seed=1)
    for name, one, two in (("xx-yy", 0, 1), ("xx-zz", 0, 2), ("yy-zz", 1, 2)):
        write_pairs(tmp_path / f"{name}.tsv.xz", [(each[one], each[two]) for each in triples])
    options = (
        *("--architecture", "bilstm", "--objective", "translation", "--targets", "yy,zz"),
        *("--dim", "64", "--decoder-dim", "32", "--batch-size", "400", "--steps", "100"),
        *("--evaluate-every", "50", "--learning-rate", "0.02", "--vocabulary-size", "90"),
    )
    command = (str(tmp_path), "-o", str(tmp_path / "enc"), "--held-out", "100", "--quiet")
    assert train_encoder([*command, *options]) == 0
    log = [json.loads(line) for line in (tmp_path / "enc" / PROGRESS / LOG).open()]
    assert log[1]["perplexity"] < 0.7 * log[0]["perplexity"] < 20
    assert log[1]["held_out_error"] < min(log[0]["held_out_error"], 0.94)


# Each begins with the layers it has by itself, or with as many as are asked for.
LAYERED = {"bilstm": 2, "transformer": 2, **dict.fromkeys(RECURRENT, 2)}
CONVOLUTIONAL = ("hierarchical", "gated")


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "steps"), [("bilstm", 60), ("transformer", 110)])
def test_networks_rank(data: Path, tmp_path: Path, architecture: str, steps: int) -> None:
    options = ("--dim", "32", "--layers", "1", "--batch-size", "64", "--steps", str(steps))
    more = ("--architecture", architecture, "--learning-rate", "0.01")
    found, _ = trained(data, tmp_path / "enc", *options, *more)
    assert found > 0.2


LISTS = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9, 1], [2, 2]]


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("architecture", [*LAYERED, *CONVOLUTIONAL])
def test_padding_changes_no_vector(
    architecture: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("encoder.training.architectures.network.MAX_GROUPS", groups)
    monkeypatch.setattr("encoder.training.architectures.network.MIN_GROUP_SENTENCES", 1)
    torch.manual_seed(0)
    layers = {"layers": LAYERED[architecture]} if architecture in LAYERED else {}
    options = training_options(architecture=architecture, dim=16, dropout=0.5, **layers)
    network = make_model(options, one_word_each(10)).eval()
    with torch.inference_mode():
        together = network(tokens_of(LISTS))
        alone = torch.cat([network.network(torch.tensor([[*one, 10]])) for one in LISTS])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
    network.train()
    assert not torch.equal(network(tokens_of(LISTS)), together)


@pytest.mark.parametrize("architecture", ["bilstm", "transformer"])
def test_activations_that_are_computed_twice_give_the_same_gradients(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same dropout: of 40 sentences, 16 groups are embedded in either case."""
    monkeypatch.setattr("encoder.training.architectures.network.MIN_GROUP_SENTENCES", 1)
    pairs = numbered([token % 9 for token in range(20)], [token % 7 for token in range(20)])
    gradients, losses = [], []
    for at_once in (40, 3):
        torch.manual_seed(0)
        options = training_options(
            architecture=architecture, dim=16, layers=2, dropout=0.5, at_once=at_once
        )
        network = make_model(options, one_word_each(10)).train()
        loss = Ranking(setting_of(options)).loss(
            network, pairs, np.arange(20), [pairs.source, pairs.target]
        )
        loss.backward()
        losses.append(loss.item())
        gradients.append({name: one.grad for name, one in network.named_parameters()})
    assert losses[0] == pytest.approx(losses[1])
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-6, rtol=1e-5)


def test_memory_is_bounded_by_what_is_embedded_at_once() -> None:
    """What autograd keeps of a batch, in numbers."""
    pairs = numbered([token % 9 for token in range(400)], [token % 7 for token in range(400)])
    kept = []
    for at_once in (800, 50):
        options = training_options(architecture="transformer", dim=16, layers=2, at_once=at_once)
        network, sizes = make_model(options, one_word_each(10)), [0]

        def note(tensor: torch.Tensor, sizes: list[int] = sizes) -> torch.Tensor:
            sizes[0] += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            network(pairs.source)
        kept.append(sizes[0])
    assert kept[1] < kept[0] / 10


def test_padding() -> None:
    ids, lengths = pad(tokens_of([[1, 2], [], [3]]), end=9)
    assert ids.tolist() == [[1, 2, 9], [9, 9, 9], [3, 9, 9]]
    assert lengths.tolist() == [3, 1, 2]
    ids, lengths = pad(tokens_of([[7] * 300, [1]]), end=9)
    assert ids.shape == (2, 129) and lengths.tolist() == [129, 2] and ids[0, -1] == 9


@pytest.mark.parametrize(
    ("architecture", "dim"),
    [
        *(("bilstm", 15), ("transformer", 12), ("transformer", 4)),
        *(("bigru-last", 15), ("attention", 12), ("hierarchical", 6)),
    ],
)
def test_dimensions_that_an_architecture_cannot_have(architecture: str, dim: int) -> None:
    with pytest.raises(ValueError, match=rf"^--dim {dim}: --architecture "):
        make_model(training_options(architecture=architecture, dim=dim), one_word_each(10))


def test_the_decoder_is_an_lstm_fed_one_token_at_a_time() -> None:
    torch.manual_seed(0)
    options = training_options("bilstm", dim=6, word_dim=5, dropout=0.0)
    decoder = Decoder(setting_of(options, vocabulary=10), languages=2, hidden=8)
    assert decoder.embed_tokens.weight.shape == (11, 5)
    vectors = torch.randn(len(LISTS), 6)
    logits, right = decoder(vectors, tokens_of(LISTS), 1)
    expected, tokens = [], []
    for vector, sentence in zip(vectors, LISTS, strict=True):
        state = decoder.start(vector).view(2, 1, 8).unbind()
        for before, token in zip([10, *sentence], [*sentence, 10], strict=True):
            language = decoder.embed_language.weight[1]
            fed = torch.cat([decoder.embed_tokens.weight[before], vector, language])
            output, state = decoder.lstm(fed[None], state)
            expected.append(decoder.output(output[0]))
            tokens.append(token)
    rows = sorted(zip(right.tolist(), logits.tolist(), strict=True))
    wanted = sorted(zip(tokens, torch.stack(expected).tolist(), strict=True))
    assert [token for token, _ in rows] == [token for token, _ in wanted]
    np.testing.assert_allclose([r for _, r in rows], [w for _, w in wanted], atol=1e-5)


def test_sequence_translation_is_the_logarithm_of_the_perplexity() -> None:
    uniform = torch.zeros(7, 50)
    assert sequence_translation(uniform, torch.arange(7)).exp().item() == pytest.approx(50)


def test_distillation_is_the_mean_over_all_four_cosines() -> None:
    student, teacher = ([unit_rows(5, 4, seed=s + t) for t in (0, 1)] for s in (1, 5))
    four = [(s * t).sum(dim=1).mean().item() for s in student for t in teacher]
    assert distillation(*student, *teacher).item() == pytest.approx(1 - np.mean(four), abs=1e-6)
    assert distillation(*student, *student).item() > 0
    same = [student[0], student[0]]
    assert distillation(*same, *same).item() == pytest.approx(0, abs=1e-6)


def test_hard_negatives_are_columns_of_their_own_row() -> None:
    source, target = unit_rows(4, 6, seed=1), unit_rows(4, 6, seed=2)
    hard = unit_rows(12, 6, seed=3).unflatten(0, (4, 3))
    found = translation_ranking(source, target, scale=20, margin=0.2, negatives=hard)
    logits = 20 * (source @ target.T - 0.2 * torch.eye(4))
    wide = torch.cat([logits, 20 * torch.stack([hard[i] @ source[i] for i in range(4)])], dim=1)
    labels = torch.arange(4)
    both = functional.cross_entropy(wide, labels) + functional.cross_entropy(logits.T, labels)
    assert found.item() == pytest.approx(both.item() / 2, rel=1e-5)


class Angles(Model):
    """A sentence's first token is its angle, in thousandths."""

    def forward(self, tokens: object) -> torch.Tensor:
        angles = torch.tensor([one[0] / 1000 for one in lists_of(tokens)])
        return torch.stack([angles.cos(), angles.sin()], dim=1)


def numbered(source: list[int], target: list[int]) -> TokenPairs:
    """Sentences of one token each."""
    return token_pairs([[one] for one in source], [[one] for one in target])


def token_pairs(source: list[list[int]], target: list[list[int]]) -> TokenPairs:
    sides = (tokens_of(side) for side in (source, target))
    return TokenPairs(
        name="xx-yy",
        **dict(zip(("source", "target"), sides, strict=True)),
        weight=np.ones(len(source), dtype=np.float32),
    )


def test_negatives_are_the_nearest_that_are_not_equal() -> None:
    pairs = numbered([1, 2, 3, 1, 5, 6], [0, 100, 210, 5, 0, 600])
    found = mine_negatives(Angles(), pairs, count=2, seed=0)
    # Row 0 shares its source with 3 and its target with 4; from row 1, both 0 and 4 are as far.
    expected = [{1, 2}, {3, 0, 4}, {1, 3}, {4, 1}, {3, 1}, {2, 1}]
    assert all(set(row) <= right for row, right in zip(found.tolist(), expected, strict=True))
    assert all(len(set(row)) == 2 for row in found.tolist())
    assert found[1, 0] == 3


def test_too_few_for_negatives() -> None:
    found = mine_negatives(Angles(), numbered([1, 2], [10, 20]), count=3, seed=0)
    assert found.shape == (2, 3)
    assert found[0, 0] == 1 and found[1, 0] == 0


def test_ranking_mines_when_it_is_prepared() -> None:
    options = training_options(hard_negatives=2, dim=4)
    pairs = numbered(list(range(8)), list(range(8)))
    torch.manual_seed(0)
    model, task = Bag(one_word_each(8), 4), Ranking(setting_of(options))
    rows = np.arange(5)
    sides = [pairs.source.take(rows), pairs.target.take(rows)]
    before = task.loss(model, pairs, rows, sides).item()
    task.prepare(model, [pairs])
    assert task.loss(model, pairs, rows, sides).item() > before


@pytest.mark.parametrize("architecture", ["bilstm", "transformer", "bag"])
def test_a_network_and_its_decoder_go_on_as_if_undisturbed(architecture: str) -> None:
    """Dropout, the decoder's weights and both optimisers' moments included."""
    options = training_options(
        architecture=architecture,
        objective="translation",
        targets=("xx", "yy"),
        dim=16,
        decoder_dim=8,
        steps=6,
        batch_size=12,
        warmup_steps=1,
        learning_rate=0.01,
    )
    pairs = numbered(list(range(8)), list(range(8)))

    def begun() -> Training:
        model = make_model(options, one_word_each(8))
        task = Translation(setting_of(options, "xx-yy", vocabulary=8))
        return Training(model, task, options)

    torch.manual_seed(0)
    whole = begun()
    halves: list[dict[str, torch.Tensor]] = []

    def on_step(loss: float) -> None:
        if whole.step == 3:
            halves.append({name: one.clone() for name, one in whole.tensors().items()})

    train(whole, [pairs], on_step=on_step)
    second = begun()
    second.restore(halves[0], 3)
    train(second, [pairs], on_step=lambda loss: None)
    expected, found = whole.tensors(), second.tensors()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert not torch.equal(
        expected["task.decoder.start.weight"], halves[0]["task.decoder.start.weight"]
    )


@pytest.mark.parametrize("targets", [("xx",), ("yy",), ("yy", "xx")])
def test_only_what_is_translated_is_embedded(targets: tuple[str, ...]) -> None:
    options = training_options(
        architecture="bilstm", objective="translation", targets=targets, dim=16, dropout=0.0
    )
    pairs, rows = numbered(list(range(8)), list(range(7, -1, -1))), np.arange(5)
    model = make_model(options, one_word_each(8))
    task = Translation(setting_of(options, "xx-yy", vocabulary=8))
    sides = {"xx": pairs.source.take(rows), "yy": pairs.target.take(rows)}
    expected = []
    for language, target in enumerate(targets):
        (source,) = sides.keys() - {target}
        predicted = task.decoder(model(sides[source]), sides[target], language)
        expected.append(sequence_translation(*predicted).item())
    embedded: list[int] = []
    model.register_forward_pre_hook(lambda _, given: embedded.append(len(given[0])))
    found = task.loss(model, pairs, rows, [*sides.values()]).item()
    assert found == pytest.approx(np.mean(expected), rel=1e-6)
    assert embedded == [len(rows) * len(targets)]


def test_a_language_pair_without_a_target_language() -> None:
    with pytest.raises(
        ValueError, match=r"--targets en,es: contains neither language of the text de-fr"
    ):
        Translation(setting_of(training_options(objective="translation"), "de-en", "de-fr"))
