"""Files fetched from a server of this machine: in parts, checked, and not at all when offline."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from encoder.laser.languages import (
    CHECKSUMS,
    INDIVIDUAL,
    LASER2,
    LASER3,
    OWN_SUBWORDS,
    fetch_laser,
    files_of,
)

LASER3_FILES = ["laser3-wol_Latn.v1.pt", "laser2.spm", "laser2.cvocab"]


class Server(ThreadingHTTPServer):
    """Serves ``files``; ``limit`` is how many bytes an answer has at most, ``asked`` what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {name: name.encode() * 1000 for name in LASER3_FILES}
        self.version = "1"
        self.limit: int | None = None
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.server.asked.append((self.path[1:], self.headers["Range"]))
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        content = self.server.files.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        asked = self.headers["Range"] if self.server.ranges else None
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - first))
        self.send_header("ETag", self.server.version)
        self.end_headers()
        if body:
            self.wfile.write(content[first:][: self.server.limit])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_what_is_fetched_is_kept(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "laser"
    assert fetch_laser("wo", folder, publisher=server.url + "/") == folder / LASER3_FILES[0]
    assert {path.name for path in folder.iterdir()} == {*LASER3_FILES, CHECKSUMS}
    for name, content in server.files.items():
        assert (folder / name).read_bytes() == content
    assert [name for name, _ in server.asked] == LASER3_FILES
    sums = (folder / CHECKSUMS).read_text(encoding="utf-8")
    assert sums.splitlines()[0] == (
        f"{hashlib.sha256(server.files[LASER3_FILES[0]]).hexdigest()}  {LASER3_FILES[0]}"
    )
    for offline in (False, True):
        fetch_laser("wol_Latn", folder, publisher=server.url, offline=offline)
    assert len(server.asked) == 3
    assert (folder / CHECKSUMS).read_text(encoding="utf-8") == sums


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_goes_on_where_it_broke_off(
    server: Server, tmp_path: Path, ranges: bool
) -> None:
    server.limit, server.ranges = 5000, ranges
    with pytest.raises(ValueError, match="download stopped after 5,000 of 21,000 bytes; rerun"):
        fetch_laser("wo", tmp_path, publisher=server.url)
    assert not (tmp_path / LASER3_FILES[0]).exists()
    server.limit = None
    path = fetch_laser("wo", tmp_path, publisher=server.url)
    assert path.read_bytes() == server.files[path.name]
    assert server.asked[1] == (path.name, "bytes=5000-")


def test_parts_of_two_versions_are_not_mixed(server: Server, tmp_path: Path) -> None:
    server.limit = 5000
    with pytest.raises(ValueError, match="download stopped"):
        fetch_laser("wo", tmp_path, publisher=server.url)
    server.limit, server.version = None, "2"
    server.files[LASER3_FILES[0]] = b"x" * 21_000
    assert fetch_laser("wo", tmp_path, publisher=server.url).read_bytes() == b"x" * 21_000


def test_other_content_than_the_checksum_says(server: Server, tmp_path: Path) -> None:
    sums = "".join(f"{'0' * 64} *{name}\n" for name in LASER3_FILES)
    (tmp_path / CHECKSUMS).write_text(sums, encoding="utf-8")
    with pytest.raises(ValueError, match=r"laser3-wol_Latn\.v1\.pt: its SHA-256 is .* has 0{64}"):
        fetch_laser("wo", tmp_path, publisher=server.url)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKSUMS]
    (tmp_path / CHECKSUMS).unlink()
    path = fetch_laser("wo", tmp_path, publisher=server.url)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="delete the file, if it is there, and fetch it again"):
        fetch_laser("wo", tmp_path, publisher=server.url, offline=True)


def test_offline_tells_what_is_missing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"lacks laser2\.pt, laser2\.spm; omit --offline"):
        fetch_laser("de", tmp_path, publisher=server.url, offline=True)
    assert not server.asked


def test_a_server_that_lacks_the_file_or_is_not_there(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"laser2\.pt: cannot be fetched \(HTTP Error 404"):
        fetch_laser("de", tmp_path, publisher=server.url)
    with pytest.raises(ValueError, match="cannot be fetched"):
        fetch_laser("de", tmp_path, publisher="http://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"laser2\.pt: cannot be fetched .*; check --url"):
        fetch_laser("de", tmp_path, publisher="no address")


def test_what_does_not_speak_http(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(1000)
                client.sendall(b"220 mail\r\n")

        threading.Thread(target=answer, daemon=True).start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ValueError, match="cannot be fetched"):
            fetch_laser("de", tmp_path, publisher=address)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", ["laser2.pt", "laser2.spm"]),
        ("zh", ["laser2.pt", "laser2.spm"]),  # in two scripts, but in one encoder
        ("wol_Latn", LASER3_FILES),
        ("sw", ["laser3-swh_Latn.v1.pt", "laser2.spm", "laser2.cvocab"]),
        ("swa", ["laser3-swh_Latn.v1.pt", "laser2.spm", "laser2.cvocab"]),
        ("fa", [f"laser3-pes_Arab.v1.{suffix}" for suffix in ("pt", "spm", "cvocab")]),
        ("kas_Deva", ["laser3-kas_Deva.v1.pt", "laser2.spm", "laser2.cvocab"]),
    ],
)
def test_the_files_of_a_language(language: str, expected: list[str]) -> None:
    assert files_of(language) == expected


def test_languages_without_an_encoder_or_with_two() -> None:
    with pytest.raises(
        ValueError, match="LASER has several encoders; pass one of kas_Arab, kas_Deva"
    ):
        files_of("ks")
    for language in ("tlh", "wol_Arab", "w", ""):
        with pytest.raises(ValueError, match="LASER has no encoder; pass"):
            files_of(language)


def test_the_tables_agree() -> None:
    known = {name.partition("_")[0] for name in LASER3 + LASER2}
    assert set(INDIVIDUAL.values()) <= known
    assert set(OWN_SUBWORDS) <= set(LASER3)
    assert not set(LASER3) & set(LASER2)
