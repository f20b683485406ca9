"""``--plan`` tells what a run would take, and does nothing."""

from __future__ import annotations

import gzip
import re

import pytest

from pipelines.cli.mine import mine_corpus
from pipelines.run import estimate
from pipelines.run.estimate import show_time
from tests.pipelines.conftest import Refused
from tests.pipelines.worlds import World, snapshot


@pytest.fixture
def plan(world: World, capsys: pytest.CaptureFixture[str]):
    """Plans the world's run with more arguments, which must leave no trace; what it prints."""

    def plan(*arguments: str, inputs: list[str] | None = None) -> str:
        before = snapshot(world.folder)
        output = str(world.path("out.tsv"))
        assert mine_corpus([*(inputs or world.inputs()), "-o", output, "--plan", *arguments]) == 0
        assert snapshot(world.folder) == before
        return capsys.readouterr().out

    return plan


def test_everything_is_told(world: World, plan) -> None:
    told = plan("-k", "3", "--work-dir", str(world.path("work")))
    size = world.path("src.txt").stat().st_size
    assert (
        f"source: 40 lines of {world.path('src.txt')}, {size} bytes of text; "
        f"16 dimensions from {world.path('src.npy')}\n"
    ) in told
    assert f"target: 50 lines of {world.path('tgt.txt')}, " in told
    assert "search: exact (chosen by --index auto), 3 neighbours per line" in told
    products = (
        r"(int8 by \S+ \S+, )?(int16 by \S+ \S+, )?(bfloat16 by torch \S+, )?float32 by BLAS \S+"
    )
    unit = r"\(10\^9 operations per second of one thread\)"
    assert re.search(rf"^products: {products} {unit}$", told, re.MULTILINE)
    assert re.search(r"memory: at most about \S+ [MG]iB without a limit \(--memory\): ", told)
    assert re.search(r"disk: at most about \S+ KiB for the work folder and \S+ KiB for ", told)
    # 2 N M D operations
    assert re.search(
        r"^  exact +6\.4e\+04 +\S+ m?s  every neighbour <- chosen$", told, re.MULTILINE
    )
    assert re.search(r"^  cells, 7 of 32 per row +\S+ +\S+ m?s  most$", told, re.MULTILINE)
    assert re.search(r"^time: about \S+ m?s in all \(", told, re.MULTILINE)
    assert re.search(
        " with 1 worker and [12] threads? of this machine, estimated from a trial run", told
    )


def test_a_corpus_without_a_sentence_is_named(world: World, refused: Refused) -> None:
    world.path("src.txt").write_text("\n" * 40, encoding="utf-8")
    expected = f"{world.path('src.txt')}: contains no usable sentence; check --input-format\n"
    line = refused([*world.inputs(), "-o", str(world.path("out.tsv")), "--plan"])
    assert line.endswith(expected)


def test_the_table_is_aligned(plan) -> None:
    rows = [line for line in plan().split("\n") if line.startswith("  ")]
    assert len(rows) == 4
    assert (
        len(
            {
                line.index(word)
                for line, word in zip(rows, ("finds", "every", "most", "most"), strict=True)
            }
        )
        == 1
    )


def test_corpora_that_are_compressed_or_lack_a_last_newline(world: World, plan) -> None:
    compressed = world.path("src.txt.gz")
    compressed.write_bytes(gzip.compress(world.path("src.txt").read_bytes()[:-1]))
    told = plan(inputs=[str(compressed), *world.inputs()[1:]])
    assert f"source: 40 lines of {compressed}, " in told


def test_the_encoder_tells_the_dimensions(world: World, plan, tiny_encoder: str) -> None:
    told = plan("--encoder", tiny_encoder, inputs=world.inputs()[:2])
    assert f"48 dimensions from encoder {tiny_encoder}\n" in told


def test_an_index_that_is_chosen(plan) -> None:
    assert re.search(r"^  IVF4,Flat .* most <- chosen$", plan("--index", "IVF4,Flat"), re.MULTILINE)
    told = plan("--index", "HNSW16")
    assert re.search("time: about .* s without the search, which is not estimated", told)
    assert "search: HNSW16 (chosen by --index)" in told
    assert re.search(r"^  HNSW16 +\? +\?  not estimated <- chosen$", told, re.MULTILINE)


def test_what_a_run_would_refuse(world: World, run: list[str], refused: Refused) -> None:
    world.path("src.npy").write_bytes(world.path("tgt.npy").read_bytes())
    assert "has 50 rows, but" in refused([*run, "--plan"])


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0123, "0.012 s"),
        (1.26, "1.3 s"),
        (98.9, "99 s"),
        (130, "2.2 min"),
        (7300, "2 h"),
        (3 * 86400, "3 days"),
        (345 * 86400, "345 days"),
    ],
)
def test_times(seconds: float, told: str) -> None:
    assert show_time(seconds) == told


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_precision_changes_neither_results_nor_artefacts(world: World, precision: str) -> None:
    work_dir = ("--work-dir", str(world.path("work")))
    expected = world.mine("auto.jsonl", *work_dir).read_bytes()
    seals = {path: path.stat().st_mtime_ns for path in world.path("work").rglob("seal.json")}
    assert (
        world.mine("one.jsonl", *work_dir, "--search-precision", precision).read_bytes() == expected
    )
    for path, time in seals.items():
        assert path.stat().st_mtime_ns == time
    assert world.mine("two.jsonl", "--search-precision", precision).read_bytes() == expected


@pytest.mark.parametrize("chosen", [[], ["--encoder", "mini+use"]])
def test_a_long_run_is_told_what_the_faster_encoder_saves(
    world: World, plan, monkeypatch: pytest.MonkeyPatch, chosen: list[str]
) -> None:
    """Whoever has chosen an encoder knows what it costs."""
    texts = [str(world.path(f"{side}.txt")) for side in ("src", "tgt")]
    told = re.compile("\nfaster: about .* in all with --encoder mini, which finds fewer pairs\n$")
    assert not told.search(plan(*chosen, inputs=texts))
    monkeypatch.setattr(estimate, "LONG_SECONDS", 0.0)
    assert bool(told.search(plan(*chosen, inputs=texts))) == (not chosen)
    assert not told.search(plan(*chosen))  # of vectors that are given


@pytest.mark.usefixtures("best")
def test_the_summary_of_a_long_run_tells_what_the_faster_encoder_saves(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [str(world.path(f"{side}.txt")) for side in ("src", "tgt")]
    told = re.compile("\nfaster: about .* to .* with --encoder mini, .*\nnext: ")

    def summary(inputs: list[str], *options: str) -> str:
        assert mine_corpus([*inputs, "-o", str(world.path("out.tsv")), *options]) == 0
        return capsys.readouterr().err

    languages = ["--src-lang", "de", "--tgt-lang", "en"]
    assert not told.search(summary(texts, *languages))
    monkeypatch.setattr(estimate, "LONG_SECONDS", 0.0)
    assert told.search(summary(texts, *languages))
    assert not told.search(summary(texts, *languages, "--encoder", "mini+use"))
    assert not told.search(summary(texts, "--src-lang", "la", "--tgt-lang", "en"))  # use lacks it
    assert not told.search(summary(world.inputs()))
