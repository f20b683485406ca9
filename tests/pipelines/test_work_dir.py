"""A work folder: what is sealed there is used again, and only where it still fits."""

from __future__ import annotations

import fcntl
import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import World, read_jsonl, write_lines

ALL = {
    *("sentences/source", "sentences/target", "embeddings/source", "embeddings/target"),
    *("tiles", "neighbours/source", "neighbours/target", "pairs"),
}
INDEXES = {f"indexes/{side}{part}" for side in ("source", "target") for part in ("", "/trained")}
RECALL = {"tiles/recall-source", "tiles/recall-target"}
AFTER_SEARCH = {"tiles", "neighbours/source", "neighbours/target", "pairs"}


def seals(work_dir: Path) -> dict[str, tuple[int, int]]:
    """Which artefacts are sealed, and marks that change when one is sealed again."""
    found = {}
    for seal in work_dir.rglob("seal.json"):
        name = str(seal.parent.relative_to(work_dir)).removesuffix("/00000").split("/00000-")[0]
        state = seal.stat()
        found[name] = (state.st_ino, state.st_mtime_ns)
    return found


def made_again(before: dict[str, tuple[int, int]], work_dir: Path) -> set[str]:
    after = seals(work_dir)
    assert after.keys() >= ALL
    return {name for name in after if after[name] != before.get(name)}


def command_line(folder: Path, encoder: str) -> list[str]:
    names = [str(folder / name) for name in ("src.txt", "tgt.txt", "out.jsonl", "work")]
    options = ["-q", "--score", "margin", "--work-dir", names[3], "--encoder", encoder]
    return [*names[:2], "-o", names[2], *options]


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, sample_sentences: list[str], tiny_encoder: str
) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    write_lines(folder / "src.txt", sample_sentences[:40])
    write_lines(folder / "tgt.txt", sample_sentences[300:350])
    assert mine_corpus(command_line(folder, tiny_encoder)) == 0
    return folder


@pytest.fixture
def encoded(finished: Path, tmp_path: Path, tiny_encoder: str) -> tuple[list[str], Path]:
    """The arguments of a finished run by an encoder, and its work folder."""
    folder = shutil.copytree(finished, tmp_path / "copied")
    return command_line(folder, tiny_encoder), folder / "work"


def test_a_second_run_makes_nothing_again(
    encoded: tuple[list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, work_dir = encoded
    out = Path(run[3])
    first, before = out.read_bytes(), seals(work_dir)
    assert before.keys() == ALL
    out.unlink()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("there was no need")

    monkeypatch.setattr("encoder.bag.encoder.BagEncoder.encode", refuse)
    monkeypatch.setattr("pipelines.stages.searching.search.search_unit_rows", refuse)
    assert mine_corpus(run) == 0
    assert out.read_bytes() == first
    assert made_again(before, work_dir) == set()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--margin", "distance"], {"pairs"}),
        (["--retrieval", "intersect"], {"pairs"}),
        (["--threshold", "1.05"], {"pairs"}),
        (["-k", "2"], AFTER_SEARCH),
        (["--index", "exact", "--src-lang", "de"], set()),  # auto has chosen the same
        # Its neighbours turn out to be the same, and what follows depends on them alone.
        (["--index", "Flat"], INDEXES | RECALL | {"neighbours/source", "neighbours/target"}),
        # No sentence is repeated, so the shards are the same.
        (["--keep-duplicates"], {"sentences/source", "sentences/target"}),
    ],
)
def test_a_changed_option_makes_again_what_depends_on_it(
    encoded: tuple[list[str], Path], options: list[str], expected: set[str], tmp_path: Path
) -> None:
    run, work_dir = encoded
    before = seals(work_dir)
    assert mine_corpus([*run, *options]) == 0
    assert made_again(before, work_dir) == expected
    if "pairs" in expected:
        reused = Path(run[3]).read_bytes()
        assert mine_corpus([*run, *options, "--work-dir", str(tmp_path / "new")]) == 0
        assert Path(run[3]).read_bytes() == reused


def test_another_encoder_makes_its_own_vectors(
    encoded: tuple[list[str], Path], tiny_encoders: tuple[Path, Path]
) -> None:
    run, work_dir = encoded
    before, first = seals(work_dir), Path(run[3]).read_bytes()
    assert mine_corpus([*run, "--encoder", str(tiny_encoders[1])]) == 0
    assert made_again(before, work_dir) == ALL - {"sentences/source", "sentences/target"}
    assert Path(run[3]).read_bytes() != first


def test_a_copy_of_the_encoder_makes_nothing_again(
    encoded: tuple[list[str], Path], tiny_encoders: tuple[Path, Path], tmp_path: Path
) -> None:
    run, work_dir = encoded
    before = seals(work_dir)
    copy = shutil.copytree(tiny_encoders[0], tmp_path / "copy" / tiny_encoders[0].name)
    assert mine_corpus([*run, "--encoder", str(copy)]) == 0
    assert made_again(before, work_dir) == set()


def test_a_changed_corpus_leaves_the_other_side_be(encoded: tuple[list[str], Path]) -> None:
    run, work_dir = encoded
    before = seals(work_dir)
    source = Path(run[0])
    source.write_bytes(source.read_bytes().replace(b"e", b"i"))
    assert mine_corpus(run) == 0
    assert made_again(before, work_dir) == ALL - {"sentences/target", "embeddings/target"}


def test_a_repeated_line_more_changes_the_duplicates_alone(
    encoded: tuple[list[str], Path],
) -> None:
    run, work_dir = encoded
    before = seals(work_dir)
    source = Path(run[0])
    source.write_bytes(source.read_bytes() + source.read_bytes().split(b"\n")[5] + b"\n")
    assert mine_corpus([*run, "--retrieval", "forward"]) == 0
    assert made_again(before, work_dir) == {"sentences/source", "pairs"}
    repeated = [r for r in read_jsonl(Path(run[3])) if r["source_duplicates"]]
    assert [(r["source_row"], r["source_duplicates"]) for r in repeated] == [(5, ["41"])]


def test_swapped_corpora_are_not_taken_for_each_other(
    encoded: tuple[list[str], Path], tmp_path: Path
) -> None:
    run, _ = encoded
    swapped = [run[1], run[0], *run[2:]]
    assert mine_corpus(swapped) == 0
    stale = Path(run[3]).read_bytes()
    assert mine_corpus([*swapped, "--work-dir", str(tmp_path / "new")]) == 0
    assert Path(run[3]).read_bytes() == stale


def test_given_vectors_are_known_by_content_and_by_how_they_are_read(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    work_dir = ("--work-dir", str(world.path("work")))
    world.mine("out.jsonl", *work_dir)
    np.save(world.path("src.npy"), np.roll(world.source_vectors, 1, axis=0))
    stale = world.mine("out.jsonl", *work_dir).read_bytes()
    assert world.mine("out.jsonl").read_bytes() == stale

    # Raw floats of one size are 16 of float32 or 32 of float16, as --dim says.
    for short in ("src", "tgt"):
        vectors = np.load(world.path(f"{short}.npy")).view(np.float16)
        np.nan_to_num(vectors.astype(np.float16)).tofile(world.path(f"{short}.raw"))
    raw = [argument.replace(".npy", ".raw") for argument in world.inputs()[2:]]
    world.mine("out.jsonl", *raw, *work_dir, "--dim", "32")
    other = world.mine("out.jsonl", *raw, *work_dir, "--dim", "16").read_bytes()
    assert world.mine("out.jsonl", *raw, "--dim", "16").read_bytes() == other

    world.mine("out.jsonl", *work_dir)
    # A blank line more: the sentences are the same, but the vectors are no longer one a line.
    world.path("src.txt").write_bytes(world.path("src.txt").read_bytes() + b"\n")
    run = [*world.inputs(), *work_dir, "-o", str(world.path("out.jsonl")), "-q"]
    capsys.readouterr()
    assert mine_corpus(run) == 2
    assert "has 40 rows, but" in capsys.readouterr().err


DAMAGE = [
    "sentences/source/00000.parquet",
    "sentences/target/duplicates.parquet",
    "sentences/source/rejected.parquet",
    "sentences/source/inputs.json",
    "embeddings/source/00000/dropped.parquet",
    "embeddings/source/00000/vectors.npy",
    "embeddings/target/00000/rows.npy",
    "tiles/00000-00000/target.00000.ids.npy",
    "neighbours/source/00000/source.cosines.npy",
    "pairs/pairs.parquet",
]


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_artefact_is_refused_by_name(
    encoded: tuple[list[str], Path], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run, work_dir = encoded
    damaged = work_dir / name
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    capsys.readouterr()
    assert mine_corpus(run) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mine-corpus: error: {damaged}: was changed since it was written")
    assert error.count("\n") == 1
    assert f"delete the folder {damaged.parent} " in error


def test_a_missing_file_and_a_broken_seal_are_refused_by_name(
    encoded: tuple[list[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run, work_dir = encoded
    first = Path(run[3]).read_bytes()
    (work_dir / "pairs/pairs.parquet").unlink()
    assert mine_corpus(run) == 2
    assert f"{work_dir / 'pairs/pairs.parquet'}: file not found" in capsys.readouterr().err
    (work_dir / "tiles/00000-00000/seal.json").write_text("{}", encoding="utf-8")
    assert mine_corpus(run) == 2
    assert f"{work_dir / 'tiles/00000-00000/seal.json'}: is damaged" in capsys.readouterr().err
    # The messages advise to remove the folders.
    shutil.rmtree(work_dir / "pairs")
    shutil.rmtree(work_dir / "tiles/00000-00000")
    assert mine_corpus(run) == 0
    assert Path(run[3]).read_bytes() == first


def test_what_is_not_sealed_is_made_again(encoded: tuple[list[str], Path]) -> None:
    run, work_dir = encoded
    first = Path(run[3]).read_bytes()
    before = seals(work_dir)
    for name in ("embeddings/target/00000", "tiles/00000-00000"):
        (work_dir / name / "seal.json").unlink()
    (work_dir / "embeddings/target/00000/vectors.npy").write_bytes(b"half of it")
    assert mine_corpus(run) == 0
    assert Path(run[3]).read_bytes() == first
    assert made_again(before, work_dir) == {"embeddings/target", "tiles"}


def test_one_run_at_a_time(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    work_dir = world.path("work")
    work_dir.mkdir()
    run = [*world.inputs(), "-o", str(world.path("out.jsonl")), "-q", "--work-dir", str(work_dir)]
    with (work_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert mine_corpus(run) == 2
    expected = f"mine-corpus: error: {work_dir}: another run is using this work folder"
    assert capsys.readouterr().err.startswith(expected)
    assert not world.path("out.jsonl").exists()
    assert mine_corpus(run) == 0


def test_a_file_system_without_locks_is_told_of(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def flock(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    arguments = [*world.inputs(), "-o", str(world.path("out.jsonl"))]
    with caplog.at_level(logging.WARNING, logger="pipelines"):
        assert mine_corpus(arguments) == 0
    messages = [record.getMessage() for record in caplog.records]
    assert sum("a second run cannot be detected" in message for message in messages) == 1


def test_the_output_may_lie_beside_the_artefacts_but_not_among_them(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    work_dir = ("--work-dir", str(world.path("work")))
    first = world.mine("out.parquet", *work_dir).read_bytes()
    assert world.mine("work/out.parquet", *work_dir).read_bytes() == first
    for name in ("work/pairs/pairs.parquet", "work/sentences/source/00000.parquet"):
        run = [*world.inputs(), *work_dir, "-q", "-o", str(world.path(name))]
        assert mine_corpus(run) == 2
        assert "is reserved for files of the work folder" in capsys.readouterr().err
    assert world.mine("again.parquet", *work_dir).read_bytes() == first


def test_a_work_dir_is_made_with_its_parents(world: World) -> None:
    world.mine("out.jsonl", "--work-dir", str(world.path("a/b/c")))
    assert json.loads(world.path("a/b/c/run.json").read_bytes())["pairs"] > 0


def test_a_temporary_work_dir_goes_with_the_run(world: World) -> None:
    before = set(world.folder.iterdir())
    out = world.mine("out.jsonl")
    assert set(world.folder.iterdir()) == before | {out}
