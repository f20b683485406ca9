"""Encoders on disk: what is saved is loaded, and what is damaged is refused in one line."""

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save

from encoder import Encoder, load_encoder
from encoder.bag.encoder import BagEncoder
from encoder.checkpoint import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    _checksum,
    save_encoder,
)
from encoder.loading import load_folder
from encoder.rows import pack
from encoder.tokenizer import Tokenizer
from tests.encoder.conftest import VOCABULARY

DIM = 8
SHAPE = (VOCABULARY, DIM)
PACKED = (VOCABULARY, DIM // 2)


def random_table(seed: int) -> NDArray[np.float32]:
    table = np.random.default_rng(seed).standard_normal(SHAPE, dtype=np.float32)
    table[1] = 0
    return table


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    save_to(tmp_path / "enc", tokenizer)
    return tmp_path / "enc"


def save_to(folder: Path, tokenizer: Tokenizer, *, seed: int = 1) -> None:
    facts = {"steps": seed, "tells": "ünï"}
    save_encoder(folder, table=random_table(seed), tokenizer_model=tokenizer.model, facts=facts)


def change_config(folder: Path, **changes: object) -> None:
    """Change keys of the configuration; None removes one."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8")) | changes
    kept = {key: value for key, value in config.items() if value is not None}
    (folder / CONFIG).write_text(json.dumps(kept), encoding="utf-8")


def forge(folder: Path, *, weights: bytes | None = None, model: bytes | None = None) -> None:
    """Replace files and make the checksum fit, as one who writes the folder by hand can."""
    if weights is not None:
        (folder / WEIGHTS).write_bytes(weights)
    if model is not None:
        (folder / TOKENIZER).write_bytes(model)
    contents = [(folder / name).read_bytes() for name in (TOKENIZER, WEIGHTS)]
    change_config(folder, sha256=_checksum(*contents))


def load(folder: Path) -> Encoder:
    return load_folder(folder, name="x", precision="float32")


def refusal(folder: Path) -> str:
    with pytest.raises(ValueError) as caught:
        load(folder)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"encoder {folder}: ") or line.startswith("encoder x@")
    return line


def test_what_is_saved_is_loaded(folder: Path, tokenizer: Tokenizer, sentences: list[str]) -> None:
    in_memory = BagEncoder(name="x", tokenizer=tokenizer, table=pack(random_table(1)))
    loaded = load(folder)
    assert loaded.dim == DIM
    assert loaded.encode(sentences).tobytes() == in_memory.encode(sentences).tobytes()
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    assert config["facts"] == {"steps": 1, "tells": "ünï"}
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, TOKENIZER, WEIGHTS]


def test_ngrams_are_saved_and_loaded(
    tmp_path: Path, tokenizer: Tokenizer, sentences: list[str]
) -> None:
    table = np.random.default_rng(4).standard_normal((VOCABULARY + 20, DIM), dtype=np.float32)
    folder = tmp_path / "ngrams"
    save_encoder(folder, table=table, ngram_rows=20, tokenizer_model=tokenizer.model, facts={})
    in_memory = BagEncoder(name="x", tokenizer=tokenizer, table=pack(table), ngram_rows=20)
    loaded = load(folder)
    assert loaded.encode(sentences).tobytes() == in_memory.encode(sentences).tobytes()
    for rows in (19, 21, 0):
        change_config(folder, ngram_rows=rows)
        assert f"{CONFIG} has ({VOCABULARY + rows}, {DIM})" in refusal(folder)
    change_config(folder, vocabulary=VOCABULARY + 5, ngram_rows=15)
    assert "from different trainings" in refusal(folder)
    change_config(folder, ngram_rows=None)
    assert f"{CONFIG} lacks ngram_rows; copy it again" in refusal(folder)


def test_everybody_who_may_read_files_may_read_the_encoder(folder: Path) -> None:
    plain = folder / "plain"
    plain.write_bytes(b"")
    assert {path.stat().st_mode for path in folder.iterdir()} == {plain.stat().st_mode}


def test_the_name_tells_the_weights(tmp_path: Path, folder: Path, tokenizer: Tokenizer) -> None:
    save_to(tmp_path / "same", tokenizer)
    save_to(tmp_path / "other", tokenizer, seed=2)
    change_config(tmp_path / "same", facts={"tells": "nothing"})
    names = [load(tmp_path / one).name for one in ("enc", "same", "other")]
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("x@") for name in names)


def test_an_encoder_is_replaced(folder: Path, tokenizer: Tokenizer) -> None:
    (folder / "notes.txt").write_text("mine")
    before = load(folder).name
    save_to(folder, tokenizer, seed=2)
    assert load(folder).name != before
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_full_disk_leaves_the_old_encoder(
    folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    before = load(folder).name
    fail_after(monkeypatch, Path, "write_bytes", written, OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        save_to(folder, tokenizer, seed=2)
    assert load(folder).name == before
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_an_interrupt_never_leaves_a_mixture(
    tmp_path: Path,
    folder: Path,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    renamed: int,
) -> None:
    """The tokeniser is the same: only between the last two renamings is there no encoder."""
    before = load(folder).name
    fail_after(monkeypatch, os, "replace", renamed, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        save_to(folder, tokenizer, seed=2)
    if renamed < 2:
        assert load(folder).name == before
    else:
        assert "from another training" in refusal(folder)
    assert len(list(folder.iterdir())) == 3


def fail_after(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, calls: int, error: BaseException
) -> None:
    """Let ``owner.name`` work ``calls`` times and then raise."""
    works = getattr(owner, name)
    left = iter(range(calls))

    def failing(*args: object) -> object:
        if next(left, None) is None:
            raise error
        return works(*args)

    monkeypatch.setattr(owner, name, failing)


def test_folders_above_are_made(tmp_path: Path, tokenizer: Tokenizer) -> None:
    save_to(tmp_path / "new" / "enc", tokenizer)
    assert (tmp_path / "new" / "enc" / CONFIG).is_file()


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER, WEIGHTS])
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER, WEIGHTS])
def test_a_file_cut_short(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for length in (len(content) - 9, len(content) // 2, 5, 0):
        (folder / name).write_bytes(content[:length])
        refusal(folder)


def test_one_flipped_bit(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    assert f"{TOKENIZER} or {WEIGHTS} is damaged" in refusal(folder)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"null", "names no format of Adit; pass a folder"),
        (b"3", "names no format of Adit; pass a folder"),
        (b'["format"]', "names no format of Adit; pass a folder"),
        (b"{}", "names no format of Adit; pass a folder"),
        (b'{"format": "adit-bag-2"}', "format 'adit-bag-2', but this version reads 'adit-bag-3', "),
        (b'{"format": ["\\n"]}', "format ['\\n']"),
        (b'{"format": "adit-bag-3"}', "lacks dim, ngram_rows, sha256, vocabulary"),
        (b'{"format": "adit-network-1"}', "lacks dim, sha256, vocabulary"),
    ],
)
def test_a_foreign_configuration(folder: Path, text: bytes, reason: str) -> None:
    (folder / CONFIG).write_bytes(text)
    assert reason in refusal(folder)


@pytest.mark.parametrize("key", ["vocabulary", "dim", "sha256"])
def test_a_configuration_that_lacks_a_key(folder: Path, key: str) -> None:
    change_config(folder, **{key: None})
    assert f"{CONFIG} lacks {key}" in refusal(folder)


@pytest.mark.parametrize(
    "changes",
    [{"vocabulary": VOCABULARY - 1}, {"dim": DIM + 1}, {"dim": DIM - 2}, {"dim": 10**30}],
)
def test_a_configuration_of_another_shape(folder: Path, changes: dict[str, object]) -> None:
    change_config(folder, **changes)
    assert f"contains a table of {PACKED} bytes and ({VOCABULARY},) scales" in refusal(folder)


@pytest.mark.parametrize(
    "change", [("dim", "8"), ("dim", []), ("vocabulary", {}), ("ngram_rows", 1.5)]
)
def test_a_configuration_with_what_is_no_number(folder: Path, change: tuple[str, object]) -> None:
    change_config(folder, **{change[0]: change[1]})
    assert f"{CONFIG} has {change[0]} {change[1]!r}, not a whole number" in refusal(folder)


def tensor_file(table: NDArray, scales: NDArray) -> bytes:
    return save({"table": table, "scales": scales})


def claiming(dtype: str, shape: list[int], data: bytes) -> bytes:
    """A safetensors file whose header says what it likes of its data."""
    header = {"table": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


SCALES = np.ones(VOCABULARY, np.float32)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (b"", "contains no vector table"),
        (b"junk" * 99, "contains no vector table"),
        (struct.pack("<Q", 2**62) + b"{}", "contains no vector table"),
        (save({"other": SCALES}), "contains no vector table"),
        (save({"table": np.ones(PACKED, np.uint8)}), "contains no vector table"),
        (claiming("U8", [2**40, 2**40], b"ab"), "contains no vector table"),
        (claiming("U8", [2**62, 0], b""), "contains no vector table"),
        (claiming("U8", [2**63 + 5, 0], b""), "contains no vector table"),
        (claiming("U8", [10**9, 10**3], b"ab"), "contains no vector table"),
        (claiming("BF16", [2], b"abcd"), "contains no vector table"),
        (tensor_file(np.ones(SHAPE, np.float32), SCALES), "contains float32 and float32"),
        (tensor_file(np.ones(PACKED, np.uint8), SCALES.astype(np.float64)), "uint8 and float64"),
        (tensor_file(np.ones((4, DIM // 2), np.uint8), SCALES), f"of (4, {DIM // 2}) bytes"),
        (tensor_file(np.ones(PACKED, np.uint8), SCALES[:4]), "(4,) scales"),
        (tensor_file(np.ones(PACKED, np.uint8), SCALES[:, None]), f"({VOCABULARY}, 1) scales"),
        (tensor_file(np.ones(VOCABULARY, np.uint8), SCALES), f"of ({VOCABULARY},) bytes"),
    ],
)
def test_foreign_weights(folder: Path, weights: bytes, reason: str) -> None:
    forge(folder, weights=weights)
    assert f"{WEIGHTS} " in (line := refusal(folder))
    assert reason in line


@pytest.mark.parametrize("length", [40, 1000])
def test_a_tokeniser_that_is_none(folder: Path, length: int) -> None:
    forge(folder, model=b"junk" * (length // 4))
    assert f"{TOKENIZER} is not a SentencePiece model" in refusal(folder)


def test_an_empty_tokeniser(folder: Path) -> None:
    forge(folder, model=b"")
    refusal(folder)


def test_a_tokeniser_of_another_vocabulary(folder: Path) -> None:
    table = random_table(1)[:-1]
    model = (folder / TOKENIZER).read_bytes()
    save_encoder(folder, table=table, tokenizer_model=model, facts={})
    assert f"{VOCABULARY - 1} vectors for {VOCABULARY} pieces" in refusal(folder)


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER, WEIGHTS])
def test_a_pickle_is_never_run(tmp_path: Path, folder: Path, name: str) -> None:
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    if name == CONFIG:
        (folder / CONFIG).write_bytes(trap)
    else:
        forge(folder, **{"weights" if name == WEIGHTS else "model": trap})
    refusal(folder)
    assert not (tmp_path / "sprung").exists()
    pickle.loads(trap)
    assert (tmp_path / "sprung").exists()


def test_load_encoder_reads_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(str(folder))
    assert encoder.name.startswith("enc@")
    assert encoder.dim == encoder.encode(["abde"]).shape[1] == DIM
    monkeypatch.chdir(folder)
    assert load_encoder(".").name == encoder.name


@pytest.mark.parametrize("spec", ["maxi", "no/such/folder", "", "a\0b"])
def test_load_encoder_of_nothing(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^encoder .*(is unknown; use|is missing)") as caught:
        load_encoder(spec)
    assert "\n" not in str(caught.value)


def test_load_encoder_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="weights' is unknown; use best"):
        load_encoder(str(path))
