"""The judge's training: its corpora, its examples, and trees as scikit-learn has them."""

from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from encoder import load_encoder
from encoder.training.reading import ParallelText
from eval.mined import mine_texts
from miner.judge.features import COLUMNS, CONTEXT, FEATURES, MINED, SEEN
from miner.judge.model import LEAF, load_judge
from miner.judge.prior import count_scores, fit_peak
from tests.benchmark import benchmark
from tests.encoder.training.language import write_pairs

synthetic_corpora, training = benchmark("synthetic_corpora"), benchmark("judge_training")
judge_given, judge_mined = benchmark("judge_given"), benchmark("judge_mined")
Known, synthesise_corpora = synthetic_corpora.Known, synthetic_corpora.synthesise_corpora
comparable_corpora = synthetic_corpora.comparable_corpora
labelled_corpora = synthetic_corpora.labelled_corpora
RIGHT, UNKNOWN, WRONG = synthetic_corpora.RIGHT, synthetic_corpora.UNKNOWN, synthetic_corpora.WRONG
Examples, examples, judge_of = training.Examples, training.examples, training.judge_of
fit_judge, train_judge = training.fit_judge, training.train_judge
SAMPLE = Path(__file__).parents[1] / "eval" / "assets" / "sample"


def text_of(count: int) -> ParallelText:
    return ParallelText(
        name="de-en",
        source=[f"Satz {row} und noch etwas" for row in range(count)],
        target=[f"sentence {row} and some more" for row in range(count)],
        corpus=["made-up"] * count,
    )


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_world_has_its_share_on_both_sides(share: float) -> None:
    text = text_of(400)
    world = synthesise_corpora(
        text, Known(text), range(400), share=share, name="w", random=Random(1)
    )
    numbers = [
        {one.split()[1] for one in side if one.startswith(("Satz", "sentence"))}
        for side in (world.source, world.target)
    ]
    common = len(numbers[0] & numbers[1])
    assert common == pytest.approx(share * len(world.source), abs=0.1 * share * 400)
    assert len(world.source) == pytest.approx(len(world.target), abs=10)


@pytest.mark.parametrize("lacking", ["parallel", "among"])
def test_a_folder_lacks_a_pair(tmp_path: Path, lacking: str) -> None:
    folders = {name: tmp_path / name for name in ("parallel", "among")}
    for name, folder in folders.items():
        folder.mkdir()
        for pair in ("fr-en", "de-en")[: 1 if name == lacking else 2]:
            (folder / f"{pair}.tsv").write_text("Es regnet.\tIt rains.\n", encoding="utf-8")
    made = labelled_corpora(**folders, pairs=["de-en"], bucc=SAMPLE, exclude=frozenset())
    with pytest.raises(ValueError, match="no pair 'de-en'; choose one of fr-en") as caught:
        next(made)
    assert str(caught.value).startswith(f"{folders[lacking]}: ")


def test_more_pairs_need_no_other_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_corpora, "MORE_PAIRS", 60)
    lines = (f"Das Haus {row} steht hier\tThe house {row} is here\n" for row in range(90))
    (tmp_path / "de-en.tsv").write_text("".join(lines), encoding="utf-8")
    folders = {"parallel": tmp_path, "among": tmp_path, "bucc": SAMPLE}
    made = labelled_corpora(**folders, pairs=[], exclude=frozenset(), more=["de-en"])
    worlds = [world for world in made if world.known]
    assert [len(world.gold) for world in worlds] == [5, 20]
    with pytest.raises(ValueError, match="no pair 'fr-en'; choose one of de-en"):
        next(labelled_corpora(**folders, pairs=[], exclude=frozenset(), more=["fr-en"]))


def test_labels() -> None:
    text = ParallelText(
        name="de-en",
        source=["Ich bin Tom.", "Ich heiße Tom.", "Es regnet."],
        target=["I am Tom.", "I am Tom.", "It rains."],
        corpus=["x"] * 3,
    )
    known = Known(text)
    assert known.may_translate("Ich bin Tom", "i am tom")
    assert not known.may_translate("Es regnet.", "I am Tom.")
    world = synthesise_corpora(text, known, [0, 2], share=1.0, name="w", random=Random(1))
    pairs = SimpleNamespace(source=np.array([0, 0, 1]), target=np.array([0, 1, 1]))
    texts = ["Ich bin Tom.", "Ich heiße Tom."], ["I am Tom.", "It rains."]
    mined = SimpleNamespace(pairs=pairs, texts=texts)
    world = synthesise_corpora(text, known, [0], share=1.0, name="w", random=Random(1))
    pairs.source, pairs.target = np.array([0, 0, 1]), np.array([0, 1, 0])
    assert world.labels(mined).tolist() == [RIGHT, WRONG, UNKNOWN]


def test_what_is_spoiled_is_changed() -> None:
    text, others = "They did not see 12 boats in Kiel, which Anna bought.", ["We met Peter there."]
    for kind in synthetic_corpora.KINDS:
        assert kind(text, Random(2), others) != text
    assert synthetic_corpora.negation(text, Random(1), others).startswith("They did see")
    assert synthetic_corpora.number("no digits", Random(1), others) == "no digits"
    assert "Peter" in synthetic_corpora.name(text, Random(1), others)


def test_given_pairs_differ_in_one_fact() -> None:
    text, seeds = "On Monday, 12 boats were in Kiel and 30 are in 1,500 nets.", range(40)

    def changed(kind: str) -> set[str]:
        change, side, *_ = judge_given.KINDS[kind]
        assert side == 1
        return {change(text, Random(seed), ["We met Peter there."]) for seed in seeds}

    for other in changed("number"):
        numbers = [number in other for number in ("12 boats", "and 30 ", "1,500 nets")]
        assert numbers.count(False) == 1
    negated = {text.replace(verb, f"{verb} not") for verb in ("were", "are")}
    assert changed("negation") == negated
    days = {other.split()[1].strip(",") for other in changed("other word of a group")}
    assert len(days) > 3
    assert all(day.endswith("day") and day != "Monday" for day in days)
    opposite = judge_given.KINDS["opposite"][0]
    assert opposite("Up on Monday", Random(1), []) == "Down on Monday"


def test_examples_are_mined_pairs_with_what_gold_says() -> None:
    world = comparable_corpora(SAMPLE, "de-en", "training")
    found = examples(world, load_encoder())
    mined = mine_texts((world.source, world.target), load_encoder(), world.languages)
    np.testing.assert_array_equal(found.features, mined.features)
    assert 100 < found.right.sum() <= len(world.gold)
    rows = np.flatnonzero(found.right)
    both = [
        (mined.texts[0][mined.pairs.source[row]], mined.texts[1][mined.pairs.target[row]])
        for row in rows
    ]
    assert world.gold.issuperset(both)


def made_up(name: str, seed: int, *, comparable: bool = False) -> Examples:
    random = np.random.default_rng(seed)
    right = random.random(600) < 0.3
    features = np.zeros((600, len(COLUMNS)), dtype=np.float32)
    features[:, : len(SEEN)] = random.normal(0, 1, (600, len(SEEN)))
    features[:, FEATURES.index("coverage, lesser side")] += 2 * right
    features[:, len(FEATURES) :] = 0
    return Examples(
        world=name,
        comparable=comparable,
        languages=("de", "en"),
        features=features,
        right=right,
    )


@pytest.mark.parametrize("learned", [MINED, SEEN])
def test_trees_score_as_scikit_learn_has_them(
    learned: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []

    def keep(trees: object, *, offset: float, **more: object) -> object:
        kept.append((trees, offset))
        return judge_of(trees, offset=offset, **more)

    monkeypatch.setattr(training, "judge_of", keep)
    monkeypatch.setattr(training, "BINS", 32)
    monkeypatch.setattr(training, "BUCC_WEIGHT", 0.5)
    parts = [made_up("sample de-en", 1, comparable=True), made_up("de-en 0", 2)]
    fresh = made_up("fresh", 4)
    random, rows = np.random.default_rng(5), made_up("other", 3).features
    rows[::7, len(FEATURES) - 3 : len(FEATURES)] = np.nan
    if learned == SEEN:
        for part in (*parts, fresh):
            part.features[:, len(FEATURES) : len(SEEN)] = random.random(
                (600, len(SEEN) - len(FEATURES))
            )
        judge = fit_judge(parts, np.full(1200, 1 / 1200), learned)
    else:
        context = COLUMNS.index(CONTEXT)
        for part in (*parts, fresh):
            part.features[:, context] = part.right + random.normal(0, 1, 600)
        rows[:, context] = random.normal(0, 1, 600)
        rows[::5, context] = np.nan
        judge = train_judge(parts)
        assert context in judge.feature
    assert judge.learned == learned
    trees, offset = kept[0]
    columns = [COLUMNS.index(name) for name in learned]
    expected = trees.decision_function(rows[:, columns]) + offset
    np.testing.assert_allclose(judge.scores(rows), expected, atol=200 / LEAF)
    # Scores are log likelihood ratios: of equally many right and wrong ones half are above 0.
    scores = judge.scores(fresh.features)
    assert (scores[fresh.right] > 0).mean() > 0.7 > 0.3 > (scores[~fresh.right] > 0).mean()
    # The peaks are of scores by trees that have not learned from them, so as in what is fresh.
    for peak, kind in zip(judge.reference_peaks, (False, True), strict=True):
        found = fit_peak(count_scores(scores[fresh.right == kind]))
        assert peak.place == pytest.approx(found.place, abs=1.5)
    assert judge.reference_peaks[0].place < judge.reference_peaks[1].place


@pytest.mark.slow
def test_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "BINS", 16)
    for name, word in (("parallel", "Haus"), ("among", "Baum")):
        pairs = [
            (f"Ein {word} mit {row} Türen steht", f"A {word} has {row} doors there")
            for row in range(150)
        ]
        (tmp_path / name).mkdir()
        write_pairs(tmp_path / name / "de-en.tsv.xz", pairs)
    bucc = tmp_path / "bucc"
    bucc.mkdir()
    for end in ("de", "en", "gold"):
        lines = (SAMPLE / "de-en" / f"de-en.training.{end}").read_text(encoding="utf-8")
        (bucc / f"de-en.sample.{end}").write_text(lines, encoding="utf-8")
    out = tmp_path / "judge.safetensors"
    command = ["judge_mined.py", str(tmp_path / "parallel"), "--pairs", "de-en", "--among"]
    more = [str(tmp_path / "among"), "--bucc", str(bucc), "-o", str(out)]
    monkeypatch.setattr("sys.argv", [*command, *more])
    assert judge_mined.main() == 0
    assert capsys.readouterr().out.startswith("sample de-en: 58")
    assert load_judge(out).name != load_judge().name
