"""The benchmarks run, on next to nothing; what they measure is for people to look at."""

import gzip
import importlib
import json
import lzma
import os
import random
import re
import runpy
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from encoder import BUNDLED, load_encoder
from encoder.monolingual.vec import write_vec
from encoder.use.glossary import load_glossary
from miner.instructions import USABLE
from tests.encoder.training.language import made_up_triples, write_pairs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a script in this process, which has the libraries; returns what it prints."""

    def call(script: str, *arguments: object) -> str:
        monkeypatch.syspath_prepend(ROOT / "benchmarks")
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            runpy.run_path(str(ROOT / "benchmarks" / script), run_name="__main__")
        assert not stop.value.code
        return capfd.readouterr().out

    return call


def sample_split(lines: int = 300) -> dict[str, list[str]]:
    """The first lines of the German sample by the ends of its files, and the gold among them."""
    start = ROOT / "eval" / "assets" / "sample" / "de-en" / "de-en.training.xx"
    split = {
        end: start.with_suffix(f".{end}").read_text(encoding="utf-8").splitlines()
        for end in ("de", "en", "gold")
    }
    split |= {end: split[end][:lines] for end in ("de", "en")}
    known = {line.partition("\t")[0] for end in ("de", "en") for line in split[end]}
    return split | {"gold": [pair for pair in split["gold"] if known.issuperset(pair.split())]}


def write_sample(folder: Path, split: str = "training") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for end, lines in sample_split().items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"de-en.{split}.{end}").write_text(text, encoding="utf-8")


def test_given_vectors(run: Run, tmp_path: Path) -> None:
    for split in ("training", "sample"):
        write_sample(tmp_path, split)
    assert re.search(r"mean( +[\d.]+){3}\n", run("given_vectors.py", tmp_path, BUNDLED))


def test_rate(run: Run, tmp_path: Path) -> None:
    for language, words in (("de", "Satz eins zwei"), ("en", "sentence one two")):
        lines = [f"{words} {number}" for number in range(300)]
        (tmp_path / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert re.search(r"20% any( +[\d.]+){8}\n", run("rate.py", tmp_path, "de", "--share", 0.2))
    (tmp_path / "es.txt").write_text("uno dos\n" * 300, encoding="utf-8")
    out = run("rate_texts.py", tmp_path, "de", "--encoder", "mini")
    assert re.search(r"full( +[\d.]+){6}\ntexts( +[\d.]+){6}\n", out)


def test_scores(run: Run, tmp_path: Path) -> None:
    for language, words in (("de", "Satz eins zwei"), ("en", "sentence one two")):
        lines = [f"{words} {number}" for number in range(300)]
        (tmp_path / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert re.search(r"parallel( +[\d.]+){4}\n", run("scores.py", tmp_path, "de"))
    assert re.search(r"40% +10%", run("thresholds.py", tmp_path, "de", "--share", 0.4))


def test_scaling(run: Run, tmp_path: Path) -> None:
    words = random.Random(3)
    for language in ("de", "fr", "es"):
        with lzma.open(tmp_path / f"{language}-en.tsv.xz", "wt", encoding="utf-8") as file:
            for number in range(60):
                drawn = " ".join(words.choices(["haus", "hund", "baum", "tree", "dog"], k=6))
                file.write(f"{number} {drawn}\t{drawn} {number}\tmade-up\n")
    arguments = ["--rows", 90, "--workers", 1, "--kills", 1, "--methods", "cells"]
    out = run("scaling.py", tmp_path, tmp_path / "work", *arguments)
    assert re.search(r"(?m)^\| cells \| 90 \| [\d.]+ s \| \d+ s \| ", out)
    lines = [(tmp_path / "work" / f"90.{side}").read_text("utf-8") for side in ("xx", "en")]
    gold = (tmp_path / "work/90.gold").read_text("utf-8").split()
    assert [text.count("\n") for text in lines] == [90, 90]
    assert len(gold) == 2 * 30


def test_mine(run: Run) -> None:
    out = run("mine.py", "--rows", 300, "--dim", 32)
    assert "237 and 237 pairs, 237 of them the same" in out
    assert re.search(r"reference +[\d.]+ s +[\d.]+ times ours", out)


def test_pipeline(run: Run, tmp_path: Path) -> None:
    assert load_encoder(BUNDLED).dim > 0
    words = random.Random(3)
    with lzma.open(tmp_path / "de-en.tsv.xz", "wt", encoding="utf-8") as file:
        for number in range(300):
            drawn = " ".join(words.choices(["haus", "hund", "baum", "tree", "dog"], k=6))
            file.write(f"{number} {drawn}\t{drawn} {number}\tmade-up\n")
    out = run("pipeline.py", tmp_path, "--rows", 100)
    assert "source: 100 sentences read" in out
    assert re.search(r"mini: \d+ pairs in [\d.]+ s and [\d.]+ GiB", out)
    assert "100 x 100 sentences" in out


def test_stages(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{name} house {row}\n" for row in range(50)), "utf-8")
    out = run("stages.py", tmp_path / "a", tmp_path / "b")
    assert re.search(r"reading: [\d,]+ lines a second\nreading texts: [\d.]+ us a pair", out)


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of CLDR's JSON; what is no name in both languages is left out."""
    data, cldr = (tmp_path / name for name in ("data", "cldr"))
    data.mkdir()
    for name in ("nb-en", "nb-sv"):
        write_pairs(data / f"{name}.tsv.xz", [("a", "b")])
    for code, names in (("en", ["Norway", "Mars", "x", "9"]), ("no", ["Norge", "Mars", "æ", "9"])):
        territories = {"NO": names[0], "M": names[1], "X": names[2], "9": names[3], code: "own"}
        told = {"main": {code: {"localeDisplayNames": {"territories": territories}}}}
        dog = {"🐶": {"default": [f"{names[0]} {code}", "dog"], "tts": ["dog"]}}
        words = {"identity": {"language": code}, "annotations": dog}
        for place, content in (
            (f"cldr-localenames-full/main/{code}/territories.json", told),
            (f"cldr-annotations-full/annotations/{code}/annotations.json", {"annotations": words}),
        ):
            path = cldr / place
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(content), "utf-8")
    monkeypatch.setattr(sys, "argv", ["names.py", str(data), str(cldr)])
    runpy.run_path(str(ROOT / "benchmarks" / "names.py"), run_name="__main__")
    assert sorted(path.name for path in data.glob("names.*")) == ["names.nb-en.tsv.xz"]
    assert lzma.open(data / "names.nb-en.tsv.xz", "rt", encoding="utf-8").read().splitlines() == [
        "Norge no, dog\tNorway en, dog\tcldr",
        "dog\tdog\tcldr",
        "Norge\tNorway\tcldr",
        "Mars\tMars\tcldr",
    ]


def test_catalogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By paragraph, without markup, contexts and plurals; what a test set has is left out."""
    data, tests = tmp_path / "data", tmp_path / "tests"
    for folder in (data, tests):
        folder.mkdir()
    write_pairs(data / "nb-en.tsv.xz", [("a", "b")])
    (tests / "set").write_text("1\tWho goes there\nFinland\n", "utf-8")
    for place, messages in (
        ("games/nb_NO/LC_MESSAGES/wesnoth-lib.mo", {
            "female^Who <i>rides</i>?\n\nI do.": "Hvem rir?\n\nJeg.",
            "Who goes there?": "Hvem der?",
            "One\0Many %d": "En\0Mange %d",
            "OK": "OK",
        }),
        ("names/nb/LC_MESSAGES/iso_3166-1.mo", {"in Europe\4Finland": "Finland\nFin"}),
        ("other/sv/LC_MESSAGES/iso_3166-1.mo", {"Norway": "Norge"}),
    ):  # fmt: skip
        path = tmp_path / "root" / place
        path.parent.mkdir(parents=True)
        order = ">" if "names" in place else "<"
        path.write_bytes(made_catalogue({"": "header", **messages}, order))
    options = [str(data), str(tmp_path / "root"), "--but", str(tests)]
    monkeypatch.setattr(sys, "argv", ["catalogues.py", *options])
    runpy.run_path(str(ROOT / "benchmarks" / "catalogues.py"), run_name="__main__")
    (found,) = data.glob("messages.*")
    assert lzma.open(found, "rt", encoding="utf-8").read().splitlines() == [
        "Hvem rir?\tWho rides ?\twesnoth",
        "Jeg.\tI do.\twesnoth",
        "Finland Fin\tFinland\tiso-codes",
    ]


def test_packages_with_text_in_languages_that_lack_it() -> None:
    """By the number of their catalogues in these languages; some packages whatever they have."""
    chosen = runpy.run_path(str(ROOT / "benchmarks" / "debian.py"))["chosen"]
    languages = ["ka", "ka", "bn_IN", "sw", "kk@cyrillic"]
    contents = [
        *(f"usr/share/locale/{code}/LC_MESSAGES/a.mo  x11/a,libs/b" for code in languages),
        "usr/share/locale/ka/LC_MESSAGES/c.mo  c",
        "usr/share/locale/de/LC_MESSAGES/c.mo  c",
        "usr/bin/c  c",
    ]
    places = {name: f"pool/{name}.deb" for name in ("a", "c", "dict-freedict-fin-eng")}
    assert list(chosen(contents, places)) == [
        ("a", "pool/a.deb"),
        ("dict-freedict-fin-eng", "pool/dict-freedict-fin-eng.deb"),
    ]


def test_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of everyday sentences that the encoders do not learn from; every second one is changed."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    (tmp_path / "train").mkdir()
    sentences = [f"They went to the old place {number} by train." for number in range(50)]
    for name, some, corpus in (
        ("de-en", sentences[:8], "tatoeba"),
        ("fr-en", [*sentences[:48], "A short sentence."], "tatoeba"),
        ("es-en", sentences[48:], "docs"),
    ):
        lines = [f"x\t{sentence}\t{corpus}\n" for sentence in some]
        with lzma.open(tmp_path / f"train/{name}.tsv.xz", "wt", encoding="utf-8") as file:
            file.writelines(lines)
    made = runpy.run_path(str(ROOT / "benchmarks/tasks.py"))
    made["probes"](tmp_path, tmp_path / "out")
    assert (tmp_path / "out/odd_man_out.txt").read_text("utf-8") == ""  # every word is frequent
    lines = (tmp_path / "out/bigram_shift.txt").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    assert Counter((part, label) for part, label, _ in rows) == {
        (part, label): count for part, count in (("tr", 14), ("va", 2), ("te", 4)) for label in "OI"
    }
    assert {sentence for _, label, sentence in rows if label == "O"} < set(sentences[8:48])


def test_dictionaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dictionaries of both directions, explained or not, of places and of Korean words."""
    data, folder = tmp_path / "data", tmp_path / "dictd"
    data.mkdir()
    for name in ("fi-en", "ko-en", "ka-en", "de-fi"):
        write_pairs(data / f"{name}.tsv.xz", [("a", "b")])
    explained = "kuusi /kusi/ <num>\n1. six\nluku\n2. 6, (numeral) half a dozen\n"
    made_dictionary(folder, "fin-eng", [explained, "kuu <n>\n\nmoon 2.\nof the Earth\n"])
    made_dictionary(
        folder, "eng-fin", ["spruce //sprus//\nkuusi, [[havu]]\u0301 kuusi\ntree\n", "5\n5\n"]
    )
    made_dictionary(folder, "deu-fin", ["Mond\nkuu\n"])
    places = {"1": {"name": "Tbilisi", "alternatenames": ["Tiflis", "თბილისი", "트빌리시"]}}
    (tmp_path / "places.json").write_text(json.dumps(places), "utf-8")
    (tmp_path / "hanja.txt").write_text("# 주석\n강:江:강 강\n강산:江山:\n", "utf-8")
    options = ["--dictionaries", str(folder), "--places", str(tmp_path / "places.json")]
    options += ["--hanja", str(tmp_path / "hanja.txt")]
    monkeypatch.setattr(sys, "argv", ["dictionaries.py", str(data), *options])
    runpy.run_path(str(ROOT / "benchmarks" / "dictionaries.py"), run_name="__main__")
    found = {
        path.name.split(".")[1]: lzma.open(path, "rt", encoding="utf-8").read().splitlines()
        for path in data.glob("words.*")
    }
    assert found == {
        "fi-en": [
            "kuusi\tspruce, six, half a dozen\tfreedict",
            "havu kuusi\tspruce\tfreedict",
            "kuu\tmoon\tfreedict",
        ],
        "ka-en": ["თბილისი\tTbilisi\tgeonames"],
        "ko-en": ["트빌리시\tTbilisi\tgeonames", "강산\t江山\thanja"],
    }


def made_dictionary(folder: Path, name: str, entries: list[str]) -> None:
    """Write a dictionary as dictd reads it: words with places in base 64, and entries."""
    folder.mkdir(exist_ok=True)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text, index = b"about it", ["00-database-info\tA\tI"]
    for entry in entries:
        places = (divmod(number, 64) for number in (len(text), len(entry.encode())))
        start, length = (digits[high] + digits[low] for high, low in places)
        index.append(f"{entry.split()[0]}\t{start}\t{length}")
        text += entry.encode()
    (folder / f"freedict-{name}.index").write_text("\n".join(index) + "\n", "utf-8")
    (folder / f"freedict-{name}.dict.dz").write_bytes(gzip.compress(text))


def test_texts_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of MediaWiki, of extensions of Mozilla's programs, and of an office suite's help."""
    data, root = tmp_path / "data", tmp_path / "root"
    data.mkdir()
    write_pairs(data / "nb-en.tsv.xz", [("a", "b")])
    for language, word, several in (("en", "page", "pages"), ("nb", "side", "sider")):
        wiki = {"@metadata": {}, "n": f"{{{{PLURAL:$1|{word}|{several}}}}} [[x|{word}]]"}
        path = root / "mediawiki" / "extensions" / "i18n" / f"{language}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wiki), "utf-8")
    for language, region, word in (("en", "GB", "Close"), ("nb", "NO", "Lukk"), ("sv", "SE", "St")):
        with zipfile.ZipFile(root / f"langpack-{language}-{region}@x.org.xpi", "w") as archive:
            place = f"chrome/{language}-{region}/a"
            label = f"  .label = {word} {{ -name }}\n  long\nb = {word} b\n  .label = {word} c\n"
            archive.writestr(f"{place}.ftl", f"# {word}\na =\n{label}")
            archive.writestr(f"{place}.properties", f"p={word} %1$S p\n")
            archive.writestr(f"{place}.dtd", f'<!ENTITY d "{word} d">')
    for language, word in (("en-US", "File"), ("nb", "Fil")):
        path = root / "libreoffice" / "help" / language / "text" / "a.html"
        path.parent.mkdir(parents=True)
        path.write_text(f'<p id="1" class="x"><b>{word}</b> &gt; a</p><p>None</p>', "utf-8")
    for language, word in (("en", "Inn"), ("nb", "Kro")):
        path = root / "id-tagging-schema" / "translations" / f"{language}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        presets = {"a": {"name": word}, "b": {"name": f"{word} b", "fields": []}}
        path.write_text(json.dumps({language: {"presets": presets}}), "utf-8")
    monkeypatch.setattr(sys, "argv", ["catalogues.py", str(data), str(root), "--but", str(data)])
    runpy.run_path(str(ROOT / "benchmarks" / "catalogues.py"), run_name="__main__")
    (found,) = data.glob("messages.*")
    assert lzma.open(found, "rt", encoding="utf-8").read().splitlines() == [
        "sider side\tpages page\tmediawiki",
        "Lukk long\tClose long\tmozilla",
        "Lukk b\tClose b\tmozilla",
        "Lukk c\tClose c\tmozilla",
        "Lukk p\tClose p\tmozilla",
        "Lukk d\tClose d\tmozilla",
        "Fil > a\tFile > a\tlibreoffice-help",
        "Kro\tInn\topenstreetmap",
        "Kro b\tInn b\topenstreetmap",
    ]


def made_catalogue(messages: dict[str, str], order: str = "<") -> bytes:
    """Write a message catalogue as GNU gettext does: two tables of lengths and places, texts."""
    texts = [text.encode() for part in (messages.keys(), messages.values()) for text in part]
    start = 28 + 8 * len(texts)
    header = struct.pack(
        f"{order}7I", 0x950412DE, 0, len(messages), 28, 28 + 4 * len(texts), 0, start
    )
    places = (start + sum(len(text) + 1 for text in texts[:number]) for number in range(len(texts)))
    table = (
        struct.pack(f"{order}2I", len(text), place)
        for text, place in zip(texts, places, strict=True)
    )
    return header + b"".join(table) + b"".join(text + b"\0" for text in texts)


def test_resident(run: Run, tmp_path: Path) -> None:
    for name in ("x.de", "x.en"):
        (tmp_path / name).write_text("".join(f"{name} {row}\n" for row in range(80)), "utf-8")
    options = ("--rows", 60, "--shard", 30, "--workers", 2, "--encoder", BUNDLED)
    out = run("resident.py", tmp_path / "x.de", tmp_path / "x.en", *options)
    assert out.startswith("60 rows a side in 2 shards: ")
    assert len(re.findall(r"^  worker \d+: [\d,]+ MiB$", out, re.MULTILINE)) == 2


def test_gpu() -> None:
    """Where there is no GPU, it says so; measuring one takes minutes."""
    command = [sys.executable, ROOT / "benchmarks" / "gpu.py", "--rows", "9"]
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=hidden)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no usable CUDA device on this machine: nothing to measure\n"


def test_plan(run: Run) -> None:
    out = run("plan.py", "--rows", 300, "--dim", 32)
    assert re.search(r"300 rows a side, float32 : estimated +[\d.]+ s, measured", out)


def test_search(run: Run) -> None:
    out = run("search.py", "--rows", 300, "--dim", 16, "--kind", "clustered", "repeated")
    assert out.count("top-1 agreement 1.000000, recall@4 1.000000") == 4
    assert re.search(r"IndexFlatIP x2 +[\d.]+ s +[\d.]+ times ours", out)
    told = run("search.py", "--sets", "--times", 1).splitlines()
    assert [line.partition(":")[0] for line in told] == USABLE
    rate = r"\d+ \([\d.]+\)"
    shown = rf": int8 {rate}, (int16 {rate}, )?float32 \d+ \(1\.00\)"
    assert all(re.search(shown, line) for line in told)


def test_cells(run: Run) -> None:
    out = run("cells.py", "--rows", 2000, "--dim", 16)
    assert re.search(r"2,000 +exact +[\d.]+ +1\.00 +[\d.]+ +1\.0000 +[\d.]+", out)
    assert re.search(r"2,000 +cells +[\d.]+ +[\d.]+ +[\d.]+ +0\.9\d+ +[\d.]+", out)


def test_encode(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("Der Hund schläft.\nEs regnet heute in Berlin.\n", "utf-8")
    sizes = ("--sentences", 4, "--of-laser", 2, "--precisions", "float32", "int8")
    out = run("encode.py", tmp_path / "x.txt", *sizes)
    assert out.count("least cosine 1.000000, to float32 1.000000; of 2 pairs 100.00% the same") == 1
    assert re.search(r"int8: [\d,]+ sentences/s, [\d.]+ ms of processor time each", out)


def test_raw_documents(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    for name in ("one", "two"):
        lines = ["A heading", *(f"Sentence {number} of {name}." * 4 for number in range(9))]
        (tmp_path / f"book/{name}.de.txt").write_text("\n".join(lines), encoding="utf-8")
    made = runpy.run_path(str(ROOT / "benchmarks/raw_documents.py"))
    made["make"](tmp_path / "book", tmp_path / "out", "de")
    pages = sorted((tmp_path / "out/de").iterdir())
    assert {page.suffix for page in pages} == {".html", ".md"}
    for page in pages:
        lines = page.read_text(encoding="utf-8").split("\n")
        assert sum("A heading" in line for line in lines) == 1
        assert len(lines) > 9


def test_translation_of_words(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((60, 8)).astype(np.float32)
    turned, _ = np.linalg.qr(random.standard_normal((8, 8)))
    for language, rows in (("xx", vectors), ("zz", vectors @ turned.astype(np.float32))):
        words = [f"{language}{number}" for number in range(50)] + [*"abcdefghij"]  # alike in both
        write_vec(tmp_path / f"{language}.vec", words, rows)
    for name, numbers in (("train", range(30)), ("test", range(20, 50))):
        lines = "".join(f"xx{number} zz{number}\n" for number in numbers)
        (tmp_path / name).write_text(lines, encoding="utf-8")
    given = [value for name in ("test", "train") for value in (f"--{name}", tmp_path / name)]
    sides = (tmp_path / f"{language}.vec" for language in ("xx", "zz"))
    printed = run("new_language.py", "words", *sides, *given, "--seeds", 2)
    titles = re.findall(r"^(\w+, (?:seed )?\d+)", printed, re.MULTILINE)
    assert titles == ["supervised, 20", "identical, 10", "similarity, seed 1", "similarity, seed 2"]
    assert printed.count("NN 100.0, CSLS 100.0 (30 words)") >= 4  # two known maps, and refined


def test_new_language(run: Run, tmp_path: Path) -> None:
    triples = made_up_triples(120, words=20, seed=1)
    for name, one in (("xx-zz", 0), ("yy-zz", 1)):
        write_pairs(tmp_path / f"{name}.tsv.xz", [(each[one], each[2]) for each in triples])
    for place, name in enumerate(("xx", "yy", "zz")):
        lines = [each[place] for each in triples[:9]]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = tmp_path / "xx-zz.tsv.xz", tmp_path / "one", "--others", tmp_path / "yy-zz.tsv.xz"
    run("new_language.py", "monolingual", *text)
    sides = [(tmp_path / "one" / f"{name}.txt").read_text("utf-8") for name in ("xx", "zz")]
    assert sides[0].split("\n")[:2] == [triples[0][0], triples[1][0]]
    assert sides[1] == ""  # all are translated by one of xx
    run("new_language.py", "few", tmp_path / "xx-zz.tsv.xz", tmp_path / "few", "--pairs", 7)
    assert len(lzma.open(tmp_path / "few" / "xx-zz.tsv.xz", "rt").readlines()) == 7
    run(
        "new_language.py",
        "comparable",
        tmp_path / "xx-zz.tsv.xz",
        tmp_path / "two",
        "--sentences",
        40,
    )
    assert len((tmp_path / "two" / "zz.txt").read_text(encoding="utf-8").splitlines()) == 40
    given = ("--pairs", "xx-zz,yy-zz", "--ntrex", tmp_path, "--sentences", 96, "--held-out", 20)
    sizes = ("--dim", 8, "--vocabulary-size", 90)
    printed = run("new_language.py", "paths", tmp_path, tmp_path / "out", *given, *sizes)
    assert re.findall(r"^[12]:[1N]", printed, re.MULTILINE) == ["1:1", "1:N", "2:1"]


CZECH = "dům house,pes dog,kočka cat,voda water,strom tree,město city,hlava head,ruka hand,den day"


def test_a_glossary_is_trained_and_goes_on_after_a_kill(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = [pair.split() for pair in CZECH.split(",")]
    lines = [f"Tady je {a} a {b}.\tHere is a {c} and a {d}." for a, c in words for b, d in words]
    with lzma.open(tmp_path / "cs-en.tsv.xz", "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\tmade-up\n" for line in lines)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = importlib.import_module("glossary")
    monkeypatch.setattr(script, "BATCH", 16)
    monkeypatch.setattr(script, "AT_ONCE", 1)

    def train(name: str, steps: int = 3) -> bytes:
        command = [str(tmp_path / name), "--train", str(tmp_path), "--steps", str(steps)]
        monkeypatch.setattr(sys, "argv", ["glossary.py", *command])
        script.main()
        return (tmp_path / name / "weights.safetensors").read_bytes()

    def killed(state: tuple[int, object, object], path: Path) -> None:
        saved(state, path)
        raise KeyboardInterrupt

    whole, saved = train("whole"), script.torch.save
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(script.torch, "save", killed)
        train("killed")
    assert train("killed") == whole
    assert train("untrained", steps=0) != whole
    found = load_glossary(tmp_path / "whole")
    assert {"house", "dog"} <= set(found.english)


def test_comparable_corpora_of_ntrex(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(tmp_path / "bucc" / "de-en")
    (tmp_path / "ntrex").mkdir()
    for end in ("de", "en"):
        rows = [line.partition("\t")[2] for line in sample_split(60)[end]]
        (tmp_path / "ntrex" / f"{end}.txt").write_text("\n".join(rows) + "\n", "utf-8")
    printed = run("ntrex_corpora.py", tmp_path / "ntrex", tmp_path / "bucc", "--languages", "de")
    assert re.search(r"\| mean \| mini\+use( \| [\d.]+){3} \|\n", printed)


def test_joined(run: Run, tmp_path: Path) -> None:
    write_sample(tmp_path / "de-en")
    printed = run("joined.py", tmp_path, "--weights", 1)
    assert re.search(r"1 mini: [\d.]+\nown means: [\d.]+", printed)
