"""Lists of document pairs: what is read of them, and what is refused."""

from pathlib import Path

import pytest

from miner.storage.corpus.reader import read_document_pairs
from miner.storage.corpus.records import CorpusError


def test_pairs_are_read_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("b\tx\t0.81\r\n\na\ty é\nb\tx\nb\ty é".encode())
    assert read_document_pairs(path) == [("b", "x"), ("a", "y é"), ("b", "y é")]


@pytest.mark.parametrize("line", [b"a", b"a\t", b"\tx", b"a\tx\ty", b"a\tx\t1\t2"])
def test_other_lines_are_refused_by_number(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tx\n\n" + line + b"\n")
    with pytest.raises(
        CorpusError, match=r"pairs\.tsv line 3: expected SOURCE_DOCUMENT TAB TARGET_DOCUMENT, maybe"
    ):
        read_document_pairs(path)


def test_a_list_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tx\n\n\xff\tx\n")
    with pytest.raises(CorpusError, match=r"pairs\.tsv line 3: not UTF-8"):
        read_document_pairs(path)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_list_without_pairs_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=r"pairs\.tsv"):
        read_document_pairs(path)
