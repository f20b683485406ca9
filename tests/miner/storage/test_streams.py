"""Files that contain other files, under any compression and any name, are refused by name."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage import streams
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError
from miner.storage.documents.split import document_files, read_documents

Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACK: dict[str, Pack] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}


def tar(kind: int = tarfile.PAX_FORMAT, size: int = 2_000_000) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=kind) as archive:
        for name in ("text.de", "text.en"):
            member = tarfile.TarInfo(name)
            text = "".join(f"Sentence {number} of {name}.\n" for number in range(size // 25))
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


@cache
def packed_tar(suffix: str) -> bytes:
    return PACK[suffix](tar())


def old_tar() -> bytes:
    """A tar archive of the seventh Unix, without a mark."""
    data = bytearray(tar(tarfile.USTAR_FORMAT, 4000))
    data[257:512] = bytes(255)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def zipped(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, "Ein Satz.\nNoch ein Satz.\n" * 50)
    return data.getvalue()


def arrow(write: Callable[..., pa.ipc.RecordBatchFileWriter]) -> bytes:
    """A table as ``save_to_disk`` of Hugging Face's datasets and pandas write it."""
    table, data = pa.table({"de": ["Ein Satz."], "en": ["A sentence."]}), io.BytesIO()
    with write(data, table.schema) as writer:
        writer.write_table(table)
    return data.getvalue()


def refusal(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    with pytest.raises(CorpusError) as error:
        for _ in open_corpus(path):
            pass
    before, _, message = str(error.value).partition(": ")
    assert before == str(path)
    return message


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["x.tar{}", "x.txt{}", "x{}", "X.DE{}", "x.tgz", "x.txt", "x"])
def test_a_compressed_tar_archive(tmp_path: Path, suffix: str, name: str) -> None:
    name = name.format(suffix)
    assert refusal(tmp_path, name, packed_tar(suffix)) == "is a tar archive; unpack it"


@pytest.mark.parametrize("name", ["x.tar", "x.txt", "x.gz", "x.txt.zst", "x.jsonl", "x.tsv.bz2"])
@pytest.mark.parametrize("data", [tar(), tar(tarfile.GNU_FORMAT), old_tar()])
def test_a_tar_archive_under_any_name(tmp_path: Path, name: str, data: bytes) -> None:
    assert refusal(tmp_path, name, data) == "is a tar archive; unpack it"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (zipped("a.txt"), "is a zip archive; unpack it"),
        (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(range(256)), "is a 7z archive; unpack it"),
        (b"Rar!\x1a\7\1\0" + bytes(range(256)), "is a rar archive; unpack it"),
        (b"!<arch>\ndebian-binary   1410122664" + bytes(range(256)), "is an ar archive; unpack it"),
        (b"\x04\x22\x4d\x18\x64\x40\xa7" + bytes(99), "is compressed with lz4; decompress it"),
        (arrow(pa.ipc.new_stream), "is an Arrow stream; save it as Parquet"),
        (arrow(pa.ipc.new_file), "is an Arrow file; save it as Parquet"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "is a PDF document; save its text"),
        (
            zipped("mimetype", "content.opf"),
            "is an office document or an e-book; save its text",
        ),
        (
            zipped("[Content_Types].xml", "word/document.xml"),
            "is an office document or an e-book; save its text",
        ),
    ],
)
def test_other_containers_in_any_compression(tmp_path: Path, data: bytes, what: str) -> None:
    assert refusal(tmp_path, "x.txt", data) == what
    assert refusal(tmp_path, "x.parquet", data) == what
    for suffix, pack in PACK.items():
        assert refusal(tmp_path, f"x.txt{suffix}", pack(data)) == what
        assert refusal(tmp_path, f"x{suffix}{suffix}", pack(pack(data))) == what


def test_files_that_are_compressed_more_than_once(tmp_path: Path) -> None:
    text = b"".join(b"sentence %d\n" % number for number in range(30_000))
    twice = gzip.compress(gzip.compress(text))
    for name in ("x.gz.gz", "x.txt.gz", "x.txt"):
        message = refusal(tmp_path, name, twice)
        assert message == "is compressed more than once (gzip within gzip); decompress it"
    message = refusal(tmp_path, "x.xz.zst", zstd(lzma.compress(text)))
    assert message == "is compressed more than once (xz within zstd); decompress it"
    many = text
    for _ in range(30):
        many = gzip.compress(many)
    assert refusal(tmp_path, "x.gz", many).startswith("is compressed more than once (gzip within")


def test_files_that_are_compressed_otherwise_than_their_names_say(tmp_path: Path) -> None:
    message = refusal(tmp_path, "x.txt.gz", bz2.compress(b"one\ntwo\n"))
    assert message == "is compressed with bzip2; rename it to end in .bz2"
    message = refusal(tmp_path, "x.bz2", zstd(b"one\ntwo\n"))
    assert message == "is compressed with zstd; rename it to end in .zst"


def test_text_that_begins_like_a_container_is_text(tmp_path: Path) -> None:
    for begin in ("BZh", "PK\x03\x04", "%PDF-", "070701", "!<arch>\n", "Rar!\x1a\x07", "PAR1"):
        text = f"{begin} is how it begins, naïvely.\n" * 3
        for suffix, pack in {"": bytes, **PACK}.items():
            path = tmp_path / f"x{suffix}"
            path.write_bytes(pack(text.encode()))
            read = [line for records in open_corpus(path) for line in records.texts]
            assert "\n".join([*read, ""]) == text


def test_of_several_documents_the_archive_is_left_out_with_that_reason(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A sentence.\n", encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(tar()))
    _, broken = read_documents(document_files(tmp_path))
    assert broken.text == f"{tmp_path}/b.txt.gz: is a tar archive; unpack it"
    assert broken.broken == "unreadable file"


@given(
    st.binary(max_size=2000),
    st.lists(st.sampled_from([*PACK]), max_size=3),
    st.integers(0, 3000),
    st.sampled_from([b"", tar()[:600], *streams._CONTAINERS]),
)
def test_whatever_a_file_begins_with_nothing_but_a_corpus_error_is_raised(
    data: bytes, levels: list[str], stop: int, begin: bytes
) -> None:
    data = begin + data
    for level in levels:
        data = PACK[level](data)[:stop]
    for name in ("x.txt", "x.gz", "x.zst"):
        try:
            streams.refuse_container(Path(name), data)
        except CorpusError as error:
            assert str(error).isprintable()
            assert len(str(error)) < 200


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_a_pipe_is_opened_repeatedly(data: bytes, sizes: list[int]) -> None:
    pipe = streams.Pipe(io.BytesIO(data), "pipe.gz")
    for size in sizes:
        with pipe.open() as file:
            assert file.read(size) == data[:size]
    assert streams.split_compression(pipe) == ("", ".gz")
    pipe.release()
    with pipe.open() as file:
        assert file.read() == data
