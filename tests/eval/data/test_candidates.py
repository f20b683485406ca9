"""PAIRS files of every format, good and bad."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from eval.data.bucc import Sentences
from eval.scoring import candidates_from_texts, read_records, read_scored_texts

RECORDS = [
    {
        "score": 1.5,
        "source_id": "d1",
        "target_id": "e1",
        "source_duplicates": ["d7", "d8"],
        "target_duplicates": [],
        "source_text": "ja",
    },
    {
        "score": 1.25,
        "source_id": "d2",
        "target_id": "e2",
        "source_duplicates": [],
        "target_duplicates": ["e9"],
        "source_text": "nein",
    },
]


def write(path: Path, records: list[dict[str, object]]) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_records(tmp_path: Path, suffix: str) -> None:
    candidates = read_records(write(tmp_path / f"pairs{suffix}", RECORDS))
    assert candidates.scores.tolist() == [1.5, 1.25]
    assert candidates.sources == [("d1", "d7", "d8"), ("d2",)]
    assert candidates.targets == [("e1",), ("e2", "e9")]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_duplicates_may_be_missing_or_null(tmp_path: Path, suffix: str) -> None:
    records = [
        {"score": 1, "source_id": "d", "target_id": "e", "source_duplicates": None},
        {"score": 2, "source_id": "d", "target_id": "f", "source_duplicates": ["g"]},
    ]
    candidates = read_records(write(tmp_path / f"pairs{suffix}", records))
    assert candidates.sources == [("d",), ("d", "g")]
    assert candidates.targets == [("e",), ("f",)]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_records_need_their_fields(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"pairs{suffix}", [{"source_id": "d", "target_id": None}])
    with pytest.raises(ValueError, match=r"record 1: no score and no target_id$"):
        read_records(path)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"score": "1"}, "record 1: score '1' is not a number"),
        ({"score": True}, "record 1: score True is not a number"),
        ({"source_id": 3}, "record 1: the source id 3 is not a string"),
        ({"target_duplicates": "e9"}, "record 1: target_duplicates must be a list of ids"),
        ({"target_duplicates": [4]}, "record 1: the target id 4 is not a string"),
    ],
)
def test_wrong_types(tmp_path: Path, record: dict[str, object], message: str) -> None:
    path = write(tmp_path / "pairs.jsonl", [RECORDS[0] | record])
    with pytest.raises(ValueError, match=message):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.jsonl", "[1]\n", r"pairs.jsonl line 1: expected a JSON object, not '\[1\]'"),
        ("pairs.jsonl", "{}x\n", r"pairs.jsonl line 1: not JSON \(Extra data\)"),
        ("pairs.parquet", "nonsense", "pairs.parquet: is not a whole Parquet file"),
        ("pairs.txt", "", "pairs.txt: unknown format; give a name in .tsv, .jsonl or"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_records(path)


def test_no_pairs_at_all(tmp_path: Path) -> None:
    assert len(read_records(write(tmp_path / "pairs.jsonl", []))) == 0


def test_texts_stand_for_all_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("1.5\tja doch\tyes\n-1e-3\tnein\tyes\n", encoding="utf-8")
    source = Sentences(ids=["d1", "d2", "d3"], texts=["ja\tdoch", "nein", "ja doch "])
    target = Sentences(ids=["e1", "e2"], texts=["yes", "yes"])
    rows = read_scored_texts(path)
    assert rows == [(1.5, "ja doch", "yes"), (-0.001, "nein", "yes")]
    candidates = candidates_from_texts(rows, source=source, target=target, path=path)
    assert candidates.scores.tolist() == [1.5, -0.001]
    assert candidates.sources == [("d1", "d3"), ("d2",)]
    assert candidates.targets == [("e1", "e2")] * 2


@pytest.mark.parametrize("line", ["1.5\tja", "1.5\tja\tyes\tno", "ja\tyes\t1.5", ""])
def test_bad_tsv(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"1\ta\tb\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"pairs.tsv line 2: expected SCORE TAB SOURCE TEXT TAB"):
        read_scored_texts(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1.0, "da", "yes"), "pairs.tsv line 1: the source text is not among .*: 'da'"),
        ((1.0, "ja", "no"), "pairs.tsv line 1: the target text is not among .*: 'no'"),
    ],
)
def test_unknown_texts(row: tuple[float, str, str], message: str) -> None:
    source, target = Sentences(ids=["d"], texts=["ja"]), Sentences(ids=["e"], texts=["yes"])
    with pytest.raises(ValueError, match=message):
        candidates_from_texts([row], source=source, target=target, path=Path("pairs.tsv"))
