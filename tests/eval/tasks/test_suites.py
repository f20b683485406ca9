"""eval-encoder senteval, probe, nli, classify, words, eigen: each on a made-up world of numbers."""

import json
import lzma
from collections import Counter
from math import log
from pathlib import Path

import numpy as np
import pytest

from eval.cli.encoder import eval_encoder
from eval.tasks.classify import load_topics
from eval.tasks.eigen import spectral_difference, spectrum
from eval.tasks.probe import naive_bayes
from eval.tasks.suite import ranks
from eval.tasks.words import read_vocabulary
from tests.eval.conftest import NumberEncoder

pytestmark = pytest.mark.usefixtures("number_encoder")
Captured = pytest.CaptureFixture[str]


def record(capsys: Captured, *arguments: object) -> dict:
    assert eval_encoder([*map(str, arguments), "--encoder", "numbers", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: Captured, *arguments: object) -> str:
    assert eval_encoder([*map(str, arguments), "--encoder", "numbers"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


def shown_error(capsys: Captured, *arguments: object) -> str:
    assert eval_encoder([*map(str, arguments), "--encoder", "numbers"]) == 2
    return capsys.readouterr().err


def write(path: Path, rows: list[tuple[object, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")


def labelled(count: int, *, first: int = 100) -> list[tuple[int, str]]:
    """A sentence's label is the parity that 1 or 2 in it says; the other number says nothing."""
    return [(row % 2, f"word {1 + row % 2} {first + row}") for row in range(count)]


def split(rows: list[tuple[object, ...]], *parts: str) -> list[tuple[object, ...]]:
    return [(parts[number % len(parts)], *row) for number, row in enumerate(rows)]


THIRDS = ("tr", "tr", "tr", "tr", "va", "va", "te", "te")


def test_senteval_in_both_layouts(tmp_path: Path, capsys: Captured) -> None:
    rows = labelled(80)
    write(tmp_path / "flat" / "MR.tsv", rows)
    write(tmp_path / "flat" / "TREC.tsv", split([(f"AB:{x}", f"q {s}") for x, s in rows], *THIRDS))
    for label, name in ((1, "pos"), (0, "neg")):
        path = tmp_path / "own" / "MR" / f"rt-polarity.{name}"
        write(path, [(s,) for x, s in rows if x == label])
        path.write_bytes(path.read_bytes() + "caf\xe9 1\n".encode("latin-1") * label)
    found = record(capsys, "senteval", tmp_path / "flat")
    assert list(found["figures"]) == ["MR", "TREC"]
    assert found["figures"]["MR"]["value"] == 1 and found["figures"]["MR"]["units"] == 80
    assert found["figures"]["TREC"] == {
        **{"units": 20, "value": 1.0, "interval": [1.0, 1.0]},
        "beside": {"InferSent": None, "GloVe": None},
    }
    assert found["signature"].startswith("senteval|sets:MR,TREC|classifier:logistic|sha256:")
    own = record(capsys, "senteval", tmp_path / "own")
    assert own["figures"]["MR"]["units"] == 81  # read as Latin-1, as one line is not UTF-8


def test_senteval_reads_the_published_folders(tmp_path: Path, capsys: Captured) -> None:
    rows = [(0, f"{1 + n % 2} {90 + n}", f"{1 + n % 3 % 2} {70 + n}") for n in range(60)]
    rows = [(int(a[0] == b[0]), a, b) for _, a, b in rows]
    head = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    for name, some in (("train", rows[:40]), ("test", rows[40:])):
        path = tmp_path / "MRPC" / f"msr_paraphrase_{name}.txt"
        write(path, [head, *((x, 1, 2, a, b) for x, a, b in some)])
    sick = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
    for name, some in (("train", rows[:40]), ("trial", rows[40:50]), ("test_annotated", rows[50:])):
        lines = [(1, a, b, 1.5 + 3 * x, "ENTAILMENT" if x else "NEUTRAL") for x, a, b in some]
        write(tmp_path / "SICK" / f"SICK_{name}.txt", [sick, *lines])
        short = {"train": "train", "trial": "dev", "test_annotated": "test"}[name]
        bench = [("news", "x", "2012", n, 4.5 * x, a, b) for n, (x, a, b) in enumerate(some)]
        write(tmp_path / "STS" / "STSBenchmark" / f"sts-{short}.csv", bench)
    for kind, labels in (("binary", (0, 1)), ("fine", (0, 4))):
        for part in ("train", "dev", "test"):
            lines = [(s, labels[x]) for x, s in labelled(20)]
            write(tmp_path / "SST" / kind / f"sentiment-{part}", lines)
    for name in ("train_5500", "TREC_10"):
        lines = [(f"{'DESC:x' if x else 'HUM:y'} {s}",) for x, s in labelled(20)]
        write(tmp_path / "TREC" / f"{name}.label", lines)
    found = record(capsys, "senteval", tmp_path)["figures"]
    assert list(found) == [
        *("SST2", "SST5", "TREC", "MRPC", "MRPC F1"),
        *("SICK-E", "SICK-R", "SICK-R rho", "STSB", "STSB rho"),
    ]
    assert [found[name]["units"] for name in ("MRPC", "SICK-E", "STSB")] == [20, 10, 10]
    for name in ("SST2", "SST5", "TREC"):
        assert found[name]["value"] == 1
    for name in ("SICK-E", "SICK-R", "STSB", "MRPC"):
        assert found[name]["value"] > 0.7
    bench = tmp_path / "STS" / "STSBenchmark" / "sts-train.csv"
    write(bench, [("news", "x", "2012", 1, 7, "a", "b")])
    told = shown_error(capsys, "senteval", tmp_path, "--set", "STSB")
    assert "sts-train.csv" in told
    assert "the score '7' of example 1 is not a finite number from 0 to 5" in told


def test_sts_of_a_year_is_the_mean_of_its_sets(tmp_path: Path, capsys: Captured) -> None:
    expected, sizes = [], []
    for name, count in (("a.new", 12), ("a.old", 30)):
        pairs = [(f"{n} {n % 5}", f"{n} {n % 7 + 50}") for n in range(count)]
        gold = ["" if n == 3 else str(n % 4) for n in range(count)]
        folder = tmp_path / "STS" / "STS14-en-test"
        write(folder / f"STS.input.{name}.txt", list(pairs))
        write(folder / f"STS.gs.{name}.txt", [(one,) for one in gold])
        kept = [n for n in range(count) if gold[n]]
        u, v = (NumberEncoder().encode([pairs[n][side] for n in kept]) for side in (0, 1))
        scores = [float(gold[n]) for n in kept]
        expected.append(np.corrcoef((u * v).sum(axis=1), scores)[0, 1])
        sizes.append(count - 1)
    found = record(capsys, "senteval", tmp_path)["figures"]
    assert found["STS14 a.new"]["value"] == pytest.approx(expected[0])
    assert found["STS14"]["value"] == pytest.approx(np.mean(expected))
    assert found["STS14 weighted"]["value"] == pytest.approx(np.average(expected, weights=sizes))
    low, high = found["STS14"]["interval"]
    assert low < found["STS14"]["value"] < high
    later = tmp_path / "later" / "STS" / "STS14-en-test"
    write(later / "STS.input.a.old.txt", [("1 2", "3 4"), ("5 6", "7 8")])
    write(later / "STS.gs.a.old.txt", [("0",), ("1",)])
    again = record(capsys, "senteval", tmp_path, later.parents[1])["figures"]
    assert again == found  # of equal names, the first is read
    write(folder / "STS.gs.a.old.txt", [("1",)] * 29 + [("high",)])
    assert "STS.gs.a.old.txt: the score 'high' of example " in shown_error(
        capsys, "senteval", tmp_path
    )
    write(folder / "STS.gs.a.old.txt", [("",)] * 30)
    assert "STS.gs.a.old.txt: no scores; expected one per line" in refused(
        capsys, "senteval", tmp_path
    )


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sick.en-nl-pt-ja.tsv", ("senteval",), "no column label, relatedness, split; expected"),
        ("TREC/TREC_10.label", ("senteval",), "line 1: expected a label such as NUM:count, not ''"),
        ("xnli.test.tsv", ("nli", "--train", "x"), "line 1: no column language, gold_label"),
    ],
)
def test_an_empty_file_is_refused_by_name(
    tmp_path: Path, capsys: Captured, name: str, arguments: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "TREC" / "train_5500.label", [("HUM:x who",)])
    write(tmp_path / name, [])
    task, *options = arguments
    assert f"{tmp_path / name}" in (error := refused(capsys, task, tmp_path, *options))
    assert message in error


def test_a_language_of_sick_without_its_second_sentences_is_refused(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "sick.en-nl-pt-ja.tsv"
    write(path, [("split", "label", "relatedness", "en_A", "nl_A", "nl_B")])
    assert f"{path} line 1: no column en_B; expected" in refused(capsys, "senteval", tmp_path)


def test_sick_in_other_languages_is_judged_by_what_was_learned_in_english(
    tmp_path: Path, capsys: Captured
) -> None:
    header = ["split", "id", "label", "relatedness", *("en_A", "en_B", "ja_A", "ja_B")]
    rows: list[tuple[object, ...]] = [(*header, "ja_label", "ja_relatedness")]
    for n in range(64):
        same = n % 2
        english = f"{n} 5", f"{n if same else n + 300} 6"
        other = english if n % 8 else (english[0], f"{n + 600 if same else n} 6")
        label, ja = ("yes" if same else "no"), ("yes" if same == (n % 8 > 0) else "no")
        rows.append((THIRDS[n // 8], n, label, 1 + 4 * same, *english, *other, ja, 1 + same))
    write(tmp_path / "sick.en-nl-pt-ja.tsv", rows)
    found = record(capsys, "senteval", tmp_path, "--set", "SICK")
    assert found["figures"]["SICK-E"]["value"] == 1
    assert found["figures"]["SICK-E ja"]["value"] == 1
    assert "mean" not in found


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("1", "a"), ("b",)], "MR.tsv line 2: expected LABEL TAB sentence, not 'b'"),
        ([("tr", "1", "a"), ("xx", "0", "b")], "MR.tsv line 2: expected tr|va|te TAB LABEL"),
    ],
)
def test_malformed_sets(
    tmp_path: Path, capsys: Captured, rows: list[tuple[object, ...]], message: str
) -> None:
    write(tmp_path / "MR.tsv", rows)
    assert message in refused(capsys, "senteval", tmp_path)


def test_no_sets(tmp_path: Path, capsys: Captured) -> None:
    assert "contains no set of SentEval; pass a folder with some of MR, CR" in refused(
        capsys, "senteval", tmp_path
    )
    write(tmp_path / "MR.tsv", labelled(20))
    assert "lacks CR; omit it" in refused(capsys, "senteval", tmp_path, "--set", "MR", "CR")
    assert "lacks bigram_shift.txt; omit BShift from --set" in refused(
        capsys, "probe", tmp_path, "--set", "BShift"
    )
    assert "no XNLI" in refused(capsys, "nli", tmp_path, "--train", tmp_path / "MR.tsv")
    assert "no topics" in refused(capsys, "classify", tmp_path)


def test_compressed_files(tmp_path: Path, capsys: Captured) -> None:
    write(tmp_path / "plain" / "MR.tsv", labelled(40))
    (tmp_path / "MR.tsv.xz").write_bytes(
        lzma.compress((tmp_path / "plain" / "MR.tsv").read_bytes())
    )
    figures = [
        record(capsys, "senteval", place)["figures"]
        for place in ("plain", ".")
        for place in [tmp_path / place]
    ]
    assert figures[0] == figures[1]
    (tmp_path / "MR.tsv.xz").write_bytes(b"no xz")
    assert "MR.tsv.xz: is not a whole .xz file" in refused(capsys, "senteval", tmp_path)


def slow_bayes(texts: list[list[str]], labels: list[int], train: list[bool]) -> list[int]:
    classes = sorted(set(labels))
    shown = [(text, label) for text, label, one in zip(texts, labels, train, strict=True) if one]
    words = {word for text, _ in shown for word in text}
    counts = {c: Counter(w for text, label in shown if label == c for w in text) for c in classes}
    found = []
    for text in texts:
        scores = []
        for c in classes:
            total = sum(counts[c].values()) + len(words)
            score = log(sum(label == c for _, label in shown) + 1)
            score += sum(log((counts[c][w] + 1) / total) for w in text if w in words)
            scores.append(score)
        found.append(int(np.argmax(scores)))
    return found


def test_naive_bayes() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(3, size=60)
    texts = [
        [f"w{label + word}" for word in random.integers(5, size=6)] for label in labels.tolist()
    ]
    train = random.random(60) < 0.5
    found = naive_bayes([" ".join(each) for each in texts], labels, train, 1)
    assert found.tolist() == slow_bayes(texts, labels.tolist(), train.tolist())
    assert (found == labels).mean() > 0.5


def test_probing(tmp_path: Path, capsys: Captured, caplog: pytest.LogCaptureFixture) -> None:
    rows = split([("long" if x else "short", f"{s}{' x' * x}") for x, s in labelled(160)], *THIRDS)
    write(tmp_path / "sentence_length.txt", rows)
    write(tmp_path / "word_content.txt", rows)
    found = record(capsys, "probe", tmp_path, "--classifier", "logistic")
    assert list(found["figures"]) == ["SentLen", "WC"]
    told = found["figures"]["SentLen"]
    gold = [row[1] for row in rows if row[0] == "te"]
    assert told["beside"]["majority"] == pytest.approx(max(Counter(gold).values()) / len(gold))
    assert told["beside"]["length"] == told["beside"]["unigrams"] == 1
    assert told["beside"]["fastText"] is None
    assert "several labels" not in caplog.text
    write(tmp_path / "word_content.txt", [*rows, *rows, ("tr", "long", rows[0][2])])
    record(capsys, "probe", tmp_path, "--set", "WC")
    assert "1 of 160 different sentences have several labels" in caplog.text
    blank = [(part, label, " " if part == "tr" else text) for part, label, text in rows]
    write(tmp_path / "bigram_shift.txt", blank)
    error = refused(capsys, "probe", tmp_path, "--set", "BShift")
    assert "bigram_shift.txt: all sentences of tr are blank; write them in column 3" in error
    write(tmp_path / "sentence_length.txt", [row for row in rows if row[0] != "va"])
    assert "no line begins with va" in refused(capsys, "probe", tmp_path)


def inference(count: int) -> list[tuple[str, str, str]]:
    """Entailed is what has the same number, contradicted what has 7, neutral all else."""
    rows = []
    for n in range(count):
        label = ("entailment", "neutral", "contradiction")[n % 3]
        rows.append((label, f"{n} 5", {0: f"{n}", 1: f"{n + 400}", 2: f"{n + 400} 7"}[n % 3]))
    return rows


def test_nli(tmp_path: Path, capsys: Captured) -> None:
    train, rows = inference(300), inference(60)
    for language in ("en", "de"):
        write(tmp_path / "own" / f"dev.{language}.tsv", rows)
    write(tmp_path / "train.tsv", train)
    options = ("--train", tmp_path / "train.tsv", "--classifier", "logistic")
    found = record(capsys, "nli", tmp_path / "own", *options, "--matrix")
    assert found["figures"]["en"]["value"] > 0.9
    assert found["figures"]["en"]["value"] == found["matrix"]["de"]["en"]
    assert "|part:dev|train:300|train_lang:en|" in found["signature"]
    head = ("language", "gold_label", "x", "sentence1", "sentence2")
    published = [(name, label, "", a, b) for name in ("de", "en") for label, a, b in rows]
    write(tmp_path / "one" / "xnli.dev.tsv", [head, *published])
    snli = [("gold_label", "sentence1", "sentence2"), *train, ("-", "a", "b")]
    write(tmp_path / "snli.tsv", snli)
    options = ("--train", tmp_path / "snli.tsv", "--classifier", "logistic")
    assert record(capsys, "nli", tmp_path / "one", *options)["figures"].keys() == {"de", "en"}
    again = record(capsys, "nli", tmp_path / "one", *options, "--lang", "en")
    assert again["figures"]["en"] == found["figures"]["en"]
    # With a test part, the development part chooses.
    write(tmp_path / "own" / "test.en.tsv", rows[:30])
    told = record(capsys, "nli", tmp_path / "own", *options)
    assert told["figures"]["en"]["units"] == 30 and "|part:test|" in told["signature"]


def test_nli_by_a_perceptron(tmp_path: Path, capsys: Captured) -> None:
    write(tmp_path / "dev.en.tsv", inference(60))
    write(tmp_path / "train.tsv", inference(300))
    found = record(capsys, "nli", tmp_path, "--train", tmp_path / "train.tsv")
    assert found["figures"]["en"]["value"] > 0.8


def test_malformed_inference(tmp_path: Path, capsys: Captured) -> None:
    write(tmp_path / "dev.en.tsv", inference(6))
    write(tmp_path / "train.tsv", [*inference(6), ("maybe", "a", "b")])
    told = refused(capsys, "nli", tmp_path, "--train", tmp_path / "train.tsv")
    assert "train.tsv:7: unknown label 'maybe'; expected entailment, neutral, contradiction" in told
    write(tmp_path / "train.tsv", inference(6))
    write(tmp_path / "dev.de.tsv", inference(5))
    told = refused(capsys, "nli", tmp_path, "--train", tmp_path / "train.tsv")
    assert "pairs of en and de differ in number or labels" in told


def test_classify_in_three_layouts(tmp_path: Path, capsys: Captured) -> None:
    rows = split(labelled(96), *THIRDS)
    other = [row if n % 8 != 6 else (row[0], 1 - row[1], row[2]) for n, row in enumerate(rows)]
    for name, some in (("eng_Latn", rows), ("deu_Latn", other)):
        write(tmp_path / "flat" / f"{name}.tsv", [(part, 7, f"t{x}", s) for part, x, s in some])
        for part, file in (("tr", "train"), ("va", "dev"), ("te", "test")):
            lines = [(7, f"t{x}", s) for one, x, s in some if one == part]
            head = ("index_id", "category", "text")
            write(tmp_path / "sib" / name / f"{file}.tsv", [head, *lines])
    for name, some in (("english", rows), ("german", other)):
        for part, file in (("tr", "train.1000"), ("va", "dev"), ("te", "test")):
            lines = [(f"t{x}", s) for one, x, s in some if one == part]
            write(tmp_path / "mldoc" / f"{name}.{file}", lines)
    told = [record(capsys, "classify", tmp_path / kind) for kind in ("flat", "sib", "mldoc")]
    figures = [list(one["figures"].values()) for one in told]
    assert [one["value"] for one in figures[0]] == [1.0, 0.5]
    assert figures[1] == figures[0] == figures[2]
    assert told[0]["signature"].startswith("classify|languages:eng_Latn,deu_Latn|part:te|")
    few = record(capsys, "classify", tmp_path / "flat", "--few-shot")["few_shot"]
    assert few.keys() == {"deu_Latn"}
    assert few["deu_Latn"]["with"].keys() == {"0%", "10%", "20%", "40%", "80%", "100%"}
    assert few["deu_Latn"]["alone"].keys() == {"10%", "20%", "40%", "80%", "100%"}
    assert few["deu_Latn"]["with"]["0%"] == pytest.approx(0.5)
    kept = [row for row in rows if row[0] != "te"]
    write(tmp_path / "dev" / "eng_Latn.tsv", [(part, 7, f"t{x}", s) for part, x, s in kept])
    told = record(capsys, "classify", tmp_path / "dev")
    assert "|part:va|" in told["signature"] and told["figures"]["eng_Latn"]["units"] == 24


def test_reviews_are_positive_by_more_than_three_stars(tmp_path: Path, capsys: Captured) -> None:
    """A world of numbers, of which the sixty-fifth word of a review says nothing any more."""
    rows = labelled(96)
    for language, names in (("en", ("train", "test")), ("de", ("train", "test"))):
        for name in names:
            stars = [(5 if x else 1, f"{s} " + "x " * 64 + "7") for x, s in rows]
            write(tmp_path / f"{language}.{name}.tsv", [*stars, (3, "neither 1"), (4, rows[0][1])])
    found = load_topics(tmp_path)
    assert found["en"].labels.count("positive") == 2 * (sum(x for x, _ in rows) + 1)
    assert len(found["en"]) == 2 * 97 and "7" not in found["en"].sides[0][0].split()[-1:]
    told = record(capsys, "classify", tmp_path, "--classifier", "mlp-512", "--lang", "de")
    assert told["figures"]["de"]["value"] > 0.9
    for path in tmp_path.iterdir():
        write(path, [("5", "a")] * 4)
    assert "all sentences have the label 'positive'" in refused(capsys, "classify", tmp_path)
    write(tmp_path / "en.train.tsv", [("many", "a")])
    refusal = refused(capsys, "classify", tmp_path)
    assert "en.train.tsv: the score 'many' of example 1 is not a finite number" in refusal


def test_word_translation(tmp_path: Path, capsys: Captured) -> None:
    """Against CSLS by its definition."""
    random = np.random.default_rng(1)
    pairs = [(f"{n}", f"{n + random.integers(2)} {random.integers(9)}") for n in range(30)]
    pairs += [(pairs[0][0], "77")]
    kinds = ["pn" if n % 5 == 0 else "n" for n in range(31)]
    write(tmp_path / "de-en.5000-6500.txt", [(*p, k) for p, k in zip(pairs, kinds, strict=True)])
    (tmp_path / "more.vec").write_text("2 3\n901 0 0 0\n902 0 0 0\n")
    vocabulary = ("--vocabulary", f"en={tmp_path / 'more.vec'}")
    found = record(capsys, "words", tmp_path / "de-en.5000-6500.txt", *vocabulary)
    words = list(dict.fromkeys(a for a, _ in pairs))
    targets = ["901", "902", *dict.fromkeys(b for _, b in pairs)]
    x, y = NumberEncoder().encode(words), NumberEncoder().encode(targets)
    cosines = x @ y.T
    near = [np.mean(sorted(cosines[:, j])[-10:]) for j in range(len(targets))]
    own = [np.mean(sorted(cosines[i])[-10:]) for i in range(len(words))]
    hits = {"NN": [], "CSLS": []}
    for i, word in enumerate(words):
        right = {targets.index(b) for a, b in pairs if a == word}
        csls = [2 * cosines[i, j] - near[j] - own[i] for j in range(len(targets))]
        for name, scores in (("NN", cosines[i]), ("CSLS", csls)):
            order = sorted(range(len(targets)), key=lambda j, s=scores: -s[j])
            hits[name].append(min(order.index(j) for j in right))
    for name, each in hits.items():
        for depth in (1, 5, 10):
            told = found["figures"][f"de-en {name} P@{depth}"]
            assert told["value"] == pytest.approx(np.mean([one < depth for one in each]))
            assert told["units"] == 30
    kept = [hits["CSLS"][words.index(w)] < 1 for w in words if int(w) % 5]
    assert found["figures"]["de-en CSLS P@1, no names"]["value"] == pytest.approx(np.mean(kept))
    assert 0.2 < np.mean(kept) < 1
    assert "|targets:de=30,en=" in found["signature"]


def test_spaces_before_a_word_of_a_vocabulary_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(" one\ntwo 2\n")
    assert read_vocabulary(tmp_path / "words.txt") == ["one", "two"]


def slow_ranks(values: list[float]) -> list[float]:
    return [
        sum(other < one for other in values) + (sum(other == one for other in values) + 1) / 2
        for one in values
    ]


def test_word_similarity(tmp_path: Path, capsys: Captured) -> None:
    rows = [(f"{n} {n % 4}", f"{n % 3} {n % 4}", n % 6 / 2) for n in range(40)]
    write(tmp_path / "en.test.txt", rows)
    head = "Word1,Word2,1,2,Average Score\n"
    lines = "".join(f"{a},{b},9,9,{score}\n" for a, b, score in rows)
    (tmp_path / "MSimLex999_German.txt").write_text(head + lines)
    write(tmp_path / "combined.tab", [("Word 1", "Word 2", "Human (mean)"), *rows])
    files = sorted(tmp_path.iterdir())
    found = record(capsys, "words", *files, "--lang", "de")["figures"]
    assert record(capsys, "words", tmp_path, "--lang", "de")["figures"] == found
    u, v = (NumberEncoder().encode([row[side] for row in rows]) for side in (0, 1))
    cosines, scores = np.einsum("nd,nd->n", u, v, dtype=float), [row[2] for row in rows]
    r = np.corrcoef(cosines, scores)[0, 1]
    rho = np.corrcoef(slow_ranks(cosines), slow_ranks(scores))[0, 1]
    for name in ("en.test", "MSimLex999_German", "combined"):
        assert found[f"{name} r"]["value"] == pytest.approx(r, abs=1e-6)
        assert found[f"{name} rho"]["value"] == pytest.approx(rho, abs=1e-6)
        expected = 2 * r * rho / (r + rho) if min(r, rho) > 0 else 0
        assert found[f"{name} hm"]["value"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("dictionary.txt", [("a", "b")], "does not begin with the dictionary's languages"),
        ("de-en.txt", [], "empty"),
        ("de-en.txt", [("a",)], "line 1: expected two words"),
        ("de-en.txt", [("a", "b"), ("c",)], "line 2: expected a word and its translation"),
        ("en.txt", [("a", "b", 1), ("c", "d")], "line 2: expected two words and a score"),
    ],
)
def test_malformed_words(
    tmp_path: Path, capsys: Captured, name: str, rows: list[tuple[object, ...]], message: str
) -> None:
    write(tmp_path / name, rows)
    assert message in refused(capsys, "words", tmp_path / name)


def test_ranks_of_equal_values_are_their_mean() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


@pytest.mark.parametrize("graph", ["distances", "neighbours"])
def test_spectra(graph: str) -> None:
    vectors = NumberEncoder().encode([str(n) for n in range(30)])
    edges = np.zeros((30, 30))
    for i in range(30):
        others = sorted((j for j in range(30) if j != i), key=lambda j: -(vectors[i] @ vectors[j]))
        for place, j in enumerate(others):
            if graph == "distances":
                edges[i, j] = 1 - vectors[i].astype(float) @ vectors[j].astype(float)
            elif place < 10:
                edges[i, j] = edges[j, i] = 1
    laplacian = np.diag(edges.sum(axis=1)) - edges
    expected = np.sort(np.linalg.eigvals(laplacian).real)
    found = spectrum(vectors, graph)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert found[0] == pytest.approx(0, abs=1e-9)
    turned = vectors @ np.linalg.qr(np.random.default_rng(1).standard_normal((64, 64)))[0]
    assert spectral_difference(found, spectrum(turned.astype(np.float32), graph)) < 1e-6
    assert spectral_difference(np.array([1.0, 5.0]), np.array([4.0, 3.0])) == 5


def test_eigen(tmp_path: Path, capsys: Captured) -> None:
    texts = {"en": [str(n) for n in range(40)], "de": [str(n) for n in range(40)]}
    texts["fr"] = [f"{n} {n % 3}" for n in range(40)]
    for name, lines in texts.items():
        write(tmp_path / f"{name}.txt", [(line,) for line in lines])
    options = ("--samples", 3, "--sentences", 20)
    found = record(capsys, "eigen", tmp_path, "--lang", "all", *options)["figures"]
    assert found["de"]["value"] == pytest.approx(0, abs=1e-6)
    assert found["fr"]["value"] > 1 and found["fr"]["units"] == 3
    usual = record(capsys, "eigen", tmp_path, "--lang", "fr")
    assert usual["figures"]["fr"]["units"] == 1000  # samples of 10, as in the paper
    assert "|samples:1000|sentences:10|" in usual["signature"]
    random = np.random.default_rng(1)
    draws = [np.sort(random.choice(40, 10, replace=False)) for _ in range(1000)]
    slow = []
    for rows in draws:
        spectra = []
        for name in ("fr", "en"):
            own = NumberEncoder().encode([texts[name][row] for row in rows]).astype(float)
            edges = np.array([[1 - a @ b if a is not b else 0 for b in own] for a in own])
            laplacian = np.diag(edges.sum(axis=1)) - edges
            spectra.append(sorted(np.linalg.eigvals(laplacian).real))
        slow.append(sum((a - b) ** 2 for a, b in zip(*spectra, strict=True)))
    assert usual["figures"]["fr"]["value"] == pytest.approx(np.mean(slow))
    told = refused(capsys, "eigen", tmp_path, "--lang", "fr", "--graph", "neighbours")
    assert "--sentences 10: too few for --graph neighbours; pass 12 or more" in told
    told = refused(capsys, "eigen", tmp_path, "--lang", "all", "--sentences", 41)
    assert "--sentences 41" in told and "has 40" in told
