"""embed-corpus: a row for each line, and what is mined from its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from encoder.base import BaseEncoder
from pipelines.cli.main import adit
from pipelines.cli.mine import embed_corpus, mine_corpus
from tests.pipelines.worlds import read_jsonl

# The last is a space of no width, of which the tokeniser leaves nothing.
BAD = {2: b"", 5: b"\xff\xfe\xfd", 9: b"a\0b", 14: b"  ", 20: b"z" * 20_000, 25: "\u200b".encode()}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory, sample_sentences: list[str]) -> list[Path]:
    """Two corpora with bad lines, 20 sentences of which say the same in other words."""
    folder = tmp_path_factory.mktemp("corpora")
    source = [text.encode() for text in sample_sentences[:50]]
    target = [b"so: " + text for text in source[30:]] + [
        text.encode() for text in sample_sentences[300:340]
    ]
    paths = [folder / "src.txt", folder / "tgt.txt"]
    for path, lines in zip(paths, (source, target), strict=True):
        for row, line in BAD.items():
            lines[row] = line
        path.write_bytes(b"\n".join(lines) + b"\n")
    return paths


def test_rows_are_lines(
    corpora: list[Path], tmp_path: Path, tiny_encoder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "vectors.npy"
    assert embed_corpus([str(corpora[0]), "-o", str(out), "--encoder", tiny_encoder]) == 0
    encoder = load_encoder(tiny_encoder)
    vectors = np.load(out)
    assert (vectors.dtype, vectors.shape) == (np.float32, (50, encoder.dim))
    lines = corpora[0].read_bytes().split(b"\n")[:-1]
    for row, line in enumerate(lines):
        if row in BAD:
            assert not vectors[row].any()
        else:
            expected = encoder.encode([line.decode()])[0]
            np.testing.assert_allclose(vectors[row], expected, atol=1e-6)
    told = capsys.readouterr().err.splitlines()[-1]
    assert (
        told
        == f"{out}: 50 rows of {encoder.dim} float32 numbers by {encoder.name}, 6 rows of zeros"
    )


def test_raw_floats_are_those_of_npy(
    corpora: list[Path], tmp_path: Path, tiny_encoder: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, dtype in (("a.npy", "float32"), ("a.f32", "float32"), ("a.f16", "float16")):
        arguments = [str(corpora[0]), "-o", str(tmp_path / name), "--encoder", tiny_encoder]
        assert embed_corpus([*arguments, "--dtype", dtype, "-q"]) == 0
    assert capfd.readouterr() == ("", "")
    vectors = np.load(tmp_path / "a.npy")
    assert (tmp_path / "a.f32").read_bytes() == vectors.tobytes()
    assert (tmp_path / "a.f16").read_bytes() == vectors.astype(np.float16).tobytes()


def test_records_of_other_formats(tmp_path: Path, tiny_encoder: str) -> None:
    (tmp_path / "a.tsv").write_bytes(b"id1\tein Satz\nid2\tnoch ein Satz\n")
    (tmp_path / "a.txt").write_bytes(b"ein Satz\nnoch ein Satz\n")
    for name in ("a.tsv", "a.txt"):
        out = str(tmp_path / f"{name}.npy")
        assert embed_corpus([str(tmp_path / name), "-o", out, "-q", "--encoder", tiny_encoder]) == 0
    assert np.array_equal(np.load(tmp_path / "a.tsv.npy"), np.load(tmp_path / "a.txt.npy"))


@pytest.mark.parametrize("suffix", ["npy", "f16"])
def test_mining_embedded_corpora_finds_what_mining_with_the_encoder_finds(
    corpora: list[Path], tmp_path: Path, tiny_encoder: str, suffix: str
) -> None:
    encoder = load_encoder(tiny_encoder)
    vectors = [tmp_path / f"{side}.{suffix}" for side in ("src", "tgt")]
    dtype = "float16" if suffix == "f16" else "float32"
    for corpus, path in zip(corpora, vectors, strict=True):
        arguments = [str(corpus), "-o", str(path), "--encoder", tiny_encoder, "--dtype", dtype]
        assert embed_corpus([*arguments, "-q"]) == 0
    common = [*map(str, corpora), "-q", "--score", "margin", "-o"]
    direct, given = tmp_path / "direct.jsonl", tmp_path / "given.jsonl"
    assert mine_corpus([*common, str(direct), "--encoder", tiny_encoder]) == 0
    sides = ["--src-embeddings", str(vectors[0]), "--tgt-embeddings", str(vectors[1])]
    assert mine_corpus([*common, str(given), *sides, "--dim", str(encoder.dim)]) == 0
    if suffix == "f16":  # the encoder's vectors are kept as float16 too
        assert given.read_bytes() == direct.read_bytes()
    found, expected = (
        {
            (record["source_row"], record["target_row"]): record["score"]
            for record in read_jsonl(path)
        }
        for path in (given, direct)
    )
    assert found.keys() == expected.keys()
    assert {
        (row + 30, row) for row in range(20) if not {row, row + 30} & BAD.keys()
    } <= found.keys()
    for pair, score in expected.items():
        assert found[pair] == pytest.approx(score, abs=1e-3)


class Listener(BaseEncoder):
    """An encoder that notes which language it is asked for."""

    name, dim, precision = "listener", 2, "float32"

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    def for_language(self, language: str | None) -> Listener:
        self.asked.append(language)
        return self

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> np.ndarray:
        return np.ones((len(sentences), 2), dtype=np.float32)


def test_a_language_that_is_not_given_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    for module in ("cli.embed", "cli.align_documents"):
        monkeypatch.setattr(f"pipelines.{module}.load_encoder", lambda *_, **__: listener)
    swedish, german = tmp_path / "sv.txt", tmp_path / "de.txt"
    swedish.write_text("Den gamla mannen gick hem.\nDet regnar i skogen.\n", encoding="utf-8")
    german.write_text("Der alte Mann ging nach Hause.\nEs regnet im Wald.\n", encoding="utf-8")
    out = str(tmp_path / "out.npy")
    assert embed_corpus([str(swedish), "-o", out, "-q"]) == 0
    assert embed_corpus([str(swedish), "-o", out, "-q", "--lang", "da"]) == 0
    assert adit(["align", str(swedish), str(german), "-o", str(tmp_path / "out.txt")]) == 0
    assert listener.asked == ["sv", "da", "sv", "de"]
