"""A corpus to which something was added: only what is new is encoded and searched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipelines.cli.mine import mine_corpus
from tests.pipelines.conftest import Work
from tests.pipelines.worlds import write_lines

Mine = Callable[..., bytes]


@pytest.fixture
def corpora(tmp_path: Path, sample_sentences: list[str]) -> tuple[Path, Path]:
    """Folders of one file each: 200 and 200 sentences."""
    folders = tmp_path / "src", tmp_path / "tgt"
    for folder, start in zip(folders, (0, 300), strict=True):
        folder.mkdir()
        write_lines(folder / "part-1.txt", sample_sentences[start : start + 200])
    return folders


@pytest.fixture
def mine(tmp_path: Path, corpora: tuple[Path, Path], tiny_encoder: str) -> Mine:
    def mine(work_dir: str, *options: str) -> bytes:
        out = tmp_path / "out.jsonl"
        places = [*map(str, corpora), "-o", str(out), "--work-dir", str(tmp_path / work_dir)]
        assert mine_corpus([*places, "--encoder", tiny_encoder, "-q", *options]) == 0
        return out.read_bytes()

    return mine


@pytest.mark.parametrize(
    ("options", "most_strips"), [([], 32), (["--shards", "4"], 32), (["--shards", "4"], 3)]
)
def test_a_tenth_more_costs_a_tenth_of_the_encoding_and_a_fifth_of_the_tiles(
    corpora: tuple[Path, Path],
    sample_sentences: list[str],
    work: Work,
    mine: Mine,
    options: list[str],
    most_strips: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.stages.searching.search.MAX_GROUPS", most_strips)
    mine("grown", *options)
    assert work.taken() == (400, 200 * 200)
    for folder, start in zip(corpora, (200, 500), strict=True):
        # Some of them are there already, and some are there twice.
        more = [*sample_sentences[start : start + 18], *sample_sentences[start - 50 : start - 40]]
        write_lines(folder / "part-2.txt", [*more, more[0], sample_sentences[start + 18], ""])
        new = sample_sentences[start : start + 19]
        assert len({*sample_sentences[start - 200 : start], *new}) == 219
    grown = mine("grown", *options)
    assert work.taken() == (2 * 19, 219 * 219 - 200 * 200)
    assert mine("scratch", *options) == grown
    assert work.taken() == (2 * 219, 219 * 219)
    mine("grown", *options)
    assert work.taken() == (0, 0)


def test_a_file_that_has_grown(
    corpora: tuple[Path, Path], sample_sentences: list[str], work: Work, mine: Mine
) -> None:
    mine("grown")
    work.taken()
    write_lines(corpora[0] / "part-1.txt", sample_sentences[:230])
    grown = mine("grown")
    assert work.taken() == (30, 30 * 200)
    write_lines(corpora[0] / "part-1.txt", sample_sentences[:260])
    mine("grown")
    assert work.taken() == (30, 30 * 200)
    write_lines(corpora[0] / "part-1.txt", sample_sentences[:230])  # and has shrunk again
    assert mine("grown") == grown == mine("scratch")


@pytest.mark.parametrize(
    ("again", "sizes"),
    [(["--shards", "3"], [83, 83, 84]), (["--shards", "2", "--keep-duplicates"], [125, 125])],
)
def test_another_cut_is_made_where_it_is_asked_for(
    corpora: tuple[Path, Path],
    sample_sentences: list[str],
    mine: Mine,
    again: list[str],
    sizes: list[int],
) -> None:
    mine("grown", "--shards", "2")
    write_lines(corpora[0] / "part-1.txt", sample_sentences[:250])
    grown = mine("grown", *again)
    assert mine("scratch", *again) == grown
    paths = sorted((corpora[0].parent / "grown/embeddings/source").glob("*/rows.npy"))
    assert [len(np.load(path)) for path in paths] == sizes


def test_a_corpus_that_was_changed_at_its_beginning_is_cut_as_if_it_were_new(
    corpora: tuple[Path, Path], sample_sentences: list[str], mine: Mine
) -> None:
    mine("grown")
    write_lines(corpora[0] / "part-1.txt", ["etwas anderes", *sample_sentences[1:250]])
    grown = mine("grown")
    rows = np.load(corpora[0].parent / "grown/embeddings/source/00000/rows.npy")
    assert len(rows) == 250
    assert mine("scratch") == grown
