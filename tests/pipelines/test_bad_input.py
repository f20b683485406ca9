"""Every mistake is one line on stderr and status 2, and leaves everything as it was."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from pipelines.cli.mine import embed_corpus, mine_corpus
from tests.pipelines.conftest import Refused
from tests.pipelines.worlds import World, one_line, snapshot, write_lines

BAD_SOURCES: dict[str, tuple[bytes | None, str]] = {
    "missing": (None, "file not found"),
    "empty": (b"", "is empty; pass a corpus"),
    "blank": (b"\n \n\t\n", "3 sentences read, none usable (3 blank)"),
    "utf-16": ("Satz\n".encode("utf-16"), "is UTF-16; convert it with iconv"),
    "long": (b"x" * 1_000_000, "1 sentence read, none usable (1 too long)"),
    "x.gz": (b"plain text", "is not a whole .gz file"),
    "x.parquet": (b"plain text", "is not a whole Parquet file"),
    "x.xml": (
        b"<tmx><body><tu/></body></tmx>",
        "contains no documents with text; check its format",
    ),
    "x.jsonl": (b"{}\n[]\nx\n", "3 sentences read, none usable (3 malformed)"),
}


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_corpora(world: World, run: list[str], refused: Refused, name: str) -> None:
    content, expected = BAD_SOURCES[name]
    path = world.path(name)
    if content is not None:
        path.write_bytes(content)
    error = refused([str(path), *run[1:]])
    assert error.startswith(f"mine-corpus: error: {path}: {expected}")


def test_a_folder_and_a_pipe(world: World, run: list[str], refused: Refused) -> None:
    error = refused([run[0], str(world.folder), *run[2:]])
    assert error.endswith("out.jsonl: folder is a corpus of this run; pass another output folder\n")
    world.path("empty").mkdir()
    error = refused([run[0], str(world.path("empty")), *run[2:]])
    assert "empty: folder contains no corpus files" in error
    os.mkfifo(world.path("pipe"))
    error = refused([*run, "--scope", "document", "--document-pairs", str(world.path("pipe"))])
    assert "pipe: must be a regular file, because it is read more than once" in error


@pytest.mark.parametrize("link", ["same", "symlink", "hard link"])
def test_source_and_target_are_one_file(
    world: World, run: list[str], refused: Refused, link: str
) -> None:
    other = world.path("src.txt" if link == "same" else "link.txt")
    if link == "symlink":
        other.symlink_to("src.txt")
    elif link == "hard link":
        other.hardlink_to(world.path("src.txt"))
    error = refused([run[0], str(other), *run[2:]])
    assert "SRC and TGT are the same file" in error


OPTIONS: list[tuple[list[str], str]] = [
    (["-k", "0"], "-k 0: must be at least 1"),
    (["-k", "-3"], "-k -3: must be at least 1"),
    (["--dim", "0"], "--dim 0: must be at least 1"),
    (["--dim", "8"], "has 16 dimensions, but --dim is 8"),
    (["--threshold", "nan"], "--threshold nan: no pair can score above it"),
    (["--threshold", "inf"], "--threshold inf: no pair can score above it"),
    (["--index", "nonsense"], "--index 'nonsense': is unknown; use exact"),
    (
        ["--index", "IVF64,Flat"],
        "--index 'IVF64,Flat': cannot be trained on 40 sentences, fewer than",
    ),
    (["--index", "IVF4,Flat:efSearch=9"], "'efSearch=9' is not a parameter of this index"),
    (["--index", "exact:nprobe=4"], "--index 'exact:nprobe=4': is unknown; use exact"),
]


@pytest.mark.parametrize(("options", "expected"), OPTIONS)
def test_options(
    world: World,
    run: list[str],
    refused: Refused,
    options: list[str],
    expected: str,
) -> None:
    assert expected in refused([*run, *options])


@pytest.mark.parametrize(
    "options",
    [["--margin", "none"], ["--retrieval", "all"], ["-k", "x"], ["--no-such-option"], ["-o"]],
)
def test_the_parser_refuses_with_the_same_status(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        mine_corpus(["a.txt", "b.txt", *options])
    assert stop.value.code == 2
    assert "mine-corpus: error: " in capsys.readouterr().err


@pytest.mark.parametrize("index", ["nonsense", "IVF4,Flat:nprobe", "HNSW8:nprobe=4"])
def test_a_bad_index_is_told_before_anything_is_read(
    run: list[str], refused: Refused, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    monkeypatch.setattr(
        "miner.storage.corpus.filesets.open_corpus", lambda *_, **__: pytest.fail("was read")
    )
    assert index in refused([*run, "--index", index])


def test_an_unknown_encoder_is_told_before_anything_is_read(
    world: World,
    run: list[str],
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "miner.storage.corpus.filesets.open_corpus", lambda *_, **__: pytest.fail("was read")
    )
    error = refused([*run[:2], *run[-2:], "--encoder", "nosuch"])
    assert "encoder 'nosuch' is unknown; use best (mini+use" in error


def damage_embeddings(world: World, kind: str) -> None:
    path, vectors = world.path("src.npy"), world.source_vectors
    match kind:
        case "rows":
            np.save(path, vectors[:-1])
        case "dimensions":
            np.save(path, vectors[:, :5])
        case "cut":
            path.write_bytes(path.read_bytes()[:-3])
        case "zero":
            np.save(path, np.zeros_like(vectors))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("rows", "has 39 rows, but"),
        ("dimensions", "source vectors have 5 dimensions, target vectors 16"),
        ("cut", "is not a whole .npy file"),
        ("zero", "no sentence has a usable vector (40 zero vector)"),
    ],
)
def test_embeddings(
    world: World, run: list[str], refused: Refused, kind: str, expected: str
) -> None:
    damage_embeddings(world, kind)
    assert expected in refused(run)


def test_embeddings_are_given_for_both_sides_and_not_twice(
    world: World, run: list[str], refused: Refused
) -> None:
    one_side = [*run[:4], *run[6:]]
    assert "--src-embeddings requires --tgt-embeddings, of the same" in refused(one_side)
    other_side = [*run[:2], *run[4:]]
    assert "--tgt-embeddings requires --src-embeddings, of the same" in refused(other_side)
    twice = [*run[:5], run[3], *run[6:]]
    assert "both sides have the same vectors" in refused(twice)
    missing = [*run[:5], "nosuch.npy", *run[6:]]
    assert "nosuch.npy: file not found" in refused(missing)


def test_dim_needs_embeddings(run: list[str], refused: Refused) -> None:
    assert "--dim requires --src-embeddings" in refused([*run[:2], *run[6:], "--dim", "16"])


def test_raw_embeddings_need_the_right_dim(world: World, run: list[str], refused: Refused) -> None:
    for short in ("src", "tgt"):
        np.load(world.path(f"{short}.npy")).tofile(world.path(f"{short}.raw"))
    raw = [argument.replace(".npy", ".raw") for argument in run]
    assert "has no header with dimensions; pass --dim" in refused(raw)
    assert "check --dim" in refused([*raw, "--dim", "17"])


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("nowhere/out.tsv", "folder not found:"),
        ("folder.tsv", "is a folder; pass a file in it"),
        ("out.csv", "unknown output format; use one of .tsv"),
        ("out", "unknown output format"),
        ("src.txt/out.tsv", "src.txt is a file; name a path in a folder"),
    ],
)
def test_outputs(
    world: World,
    run: list[str],
    refused: Refused,
    output: str,
    expected: str,
) -> None:
    world.path("folder.tsv").mkdir()
    for work_dir in ([], ["--work-dir", str(world.path("work"))]):
        arguments = [*run[:-1], str(world.path(output)), *work_dir]
        assert expected in refused(arguments)


def test_the_output_is_no_input(world: World, run: list[str], refused: Refused) -> None:
    os.rename(world.path("tgt.txt"), world.path("tgt.tsv"))
    world.path("link.tsv").symlink_to("tgt.tsv")
    for name in ("tgt.tsv", "link.tsv"):
        arguments = [run[0], str(world.path("tgt.tsv")), *run[2:-1], str(world.path(name))]
        error = refused([*arguments, "--input-format", "lines"])
        assert "output would overwrite an input" in error
    os.rename(world.path("src.npy"), world.path("src.tsv"))
    vectors = [argument.replace("src.npy", "src.tsv") for argument in run[2:-1]]
    arguments = [run[0], str(world.path("tgt.tsv")), *vectors, str(world.path("src.tsv"))]
    error = refused([*arguments, "--input-format", "lines"])
    assert "output would overwrite an input" in error


def test_an_unwritable_folder(
    world: World,
    run: list[str],
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.path("locked").mkdir()
    really_open = os.open

    def refuse(path: str, flags: int, *rest: object, **more: object) -> int:  # as root is never
        if flags & os.O_CREAT and "locked" in os.fspath(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return really_open(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("os.open", refuse)
    output = world.path("locked/out.tsv")
    error = refused([*run[:-1], str(output)])
    assert error.startswith(f"mine-corpus: error: {output}: cannot be written: Permission denied; ")


def test_a_work_dir_that_is_a_file(world: World, run: list[str], refused: Refused) -> None:
    error = refused([*run, "--work-dir", str(world.path("tgt.npy"))])
    assert f"--work-dir {world.path('tgt.npy')}: is a file; name a folder" in error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nosuch.txt", "-o", "a.npy"], "nosuch.txt: file not found"),
        ([".", "-o", "a.npy"], ".: is a folder; pass a file in it"),
        ([os.devnull, "-o", "a.npy"], "is read more than once"),
        (["empty.txt", "-o", "a.npy"], "empty.txt: is empty"),
        (["src.txt", "-o", "src.txt"], "src.txt: output would overwrite an input"),
        (["src.txt", "-o", "no/a.npy"], "no/a.npy: folder not found:"),
        (["src.txt", "-o", "."], ": is a folder; pass a file in it"),
        (["src.txt", "-o", "a.npy", "--encoder", "x"], "encoder 'x' is unknown; use best"),
        (["src.txt", "-o", "a.npy", "--encoder", "st:"], "encoder 'st:' is unknown; use best"),
        (["src.txt", "-o", "a.f16"], "the suffix conflicts with --dtype float32"),
    ],
)
def test_embed_corpus(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tiny_encoder: str,
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(world.folder)
    world.path("empty.txt").touch()
    before = snapshot(world.folder)
    encoder = [] if "--encoder" in arguments else ["--encoder", tiny_encoder]
    assert embed_corpus([*arguments, *encoder, "-q"]) == 2
    assert expected in one_line(capsys.readouterr().err, "embed-corpus")
    assert snapshot(world.folder) == before


def test_the_first_rejected_line_of_several_files(world: World, capsys) -> None:
    (world.path("two")).mkdir()
    write_lines(world.path("two") / "a.txt", ["Eins.", "Zwei.", "Drei."])
    write_lines(world.path("two") / "b.txt", ["Vier.", "", "Sechs."])
    out = str(world.path("o.tsv"))
    assert mine_corpus([str(world.path("two")), str(world.path("tgt.txt")), "-o", out]) == 0
    assert "1 rejected (1 blank, first at b.txt line 2)" in capsys.readouterr().err
