"""PAIRS files of every format, good and bad."""

import gzip
import json
import lzma
import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from eval.data.bucc import Sentences
from eval.scoring import _read_scored_texts, read_candidates
from miner.storage.pair_files import read_pairs
from miner.storage.pairs import pairs_schema, write_pairs
from miner.storage.writers import Origin

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
    candidates = read_candidates(write(tmp_path / f"pairs{suffix}", RECORDS), None)
    assert candidates.scores.tolist() == [1.5, 1.25]
    assert candidates.sources == [("d1", "d7", "d8"), ("d2",)]
    assert candidates.targets == [("e1",), ("e2", "e9")]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_duplicates_may_be_missing_or_null(tmp_path: Path, suffix: str) -> None:
    records = [
        {"score": 1, "source_id": "d", "target_id": "e", "source_duplicates": None},
        {"score": 2, "source_id": "d", "target_id": "f", "source_duplicates": ["g"]},
    ]
    candidates = read_candidates(write(tmp_path / f"pairs{suffix}", records), None)
    assert candidates.sources == [("d",), ("d", "g")]
    assert candidates.targets == [("e",), ("f",)]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_records_need_their_fields(tmp_path: Path, suffix: str) -> None:
    where = "line 1" if suffix == ".jsonl" else "record 1"
    path = write(tmp_path / f"pairs{suffix}", [{"source_id": "d", "target_id": "e"}])
    with pytest.raises(
        ValueError, match=f"{where}: no score; pass pairs with scores, such as adit's output$"
    ):
        read_candidates(path, None)
    path = write(tmp_path / f"pairs{suffix}", [{"score": 1.5, "source_id": "d"}])
    with pytest.raises(ValueError, match=f"{where}: a side has neither an id nor a text; "):
        read_candidates(path, None)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"score": "1"}, "line 1: score '1' is not a number"),
        ({"score": True}, "line 1: score True is not a number"),
        ({"score": math.nan}, "line 1: the score is nan; expected a number above -inf"),
        ({"score": -math.inf}, "line 1: the score is -inf; expected a number above -inf"),
        ({"source_id": 3.5}, "line 1: the source id 3.5 is not a string or an integer"),
        ({"target_id": True}, "line 1: the target id True is not a string or an integer"),
        ({"target_duplicates": "e9"}, "line 1: target_duplicates must be a list of ids"),
        ({"target_duplicates": [None]}, "line 1: the target id None is not a string"),
        ({"source_ids": "e9"}, "line 1: source_ids must be a list of ids"),
    ],
)
def test_wrong_types(tmp_path: Path, record: dict[str, object], message: str) -> None:
    path = write(tmp_path / "pairs.jsonl", [RECORDS[0] | record])
    with pytest.raises(ValueError, match=message):
        read_candidates(path, None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.jsonl", "[1]\n", r"pairs.jsonl line 1: expected a JSON object, not '\[1\]'"),
        ("pairs.jsonl", "{}x\n", r"pairs.jsonl line 1: not JSON \(Extra data\)"),
        ("pairs.parquet", "nonsense", "pairs.parquet: is not a whole Parquet file"),
        (
            "pairs.txt",
            "a line\nanother\n",
            "pairs.txt: no pairs found in its first lines; pass TSV",
        ),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_candidates(path, None)


def test_no_pairs_at_all(tmp_path: Path) -> None:
    assert len(read_candidates(write(tmp_path / "pairs.jsonl", []), None)) == 0


def test_texts_stand_for_all_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("1.5\tja doch\tyes\n-1e-3\tnein\tyes\n", encoding="utf-8")
    source = Sentences(ids=["d1", "d2", "d3"], texts=["ja\tdoch", "nein", "ja doch "])
    target = Sentences(ids=["e1", "e2"], texts=["yes", "yes"])
    rows = _read_scored_texts(path)
    assert rows == [(1.5, "ja doch", "yes"), (-0.001, "nein", "yes")]
    candidates = read_candidates(path, (source, target))
    assert candidates.scores.tolist() == [1.5, -0.001]
    assert candidates.sources == [("d1", "d3"), ("d2",)]
    assert candidates.targets == [("e1", "e2")] * 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1.5\tja", r"pairs.tsv line 2: has 2 columns, expected 3"),
        ("1.5\tja\tyes\tno", r"pairs.tsv line 2: has 4 columns, expected 3"),
        ("ja\tyes\t1.5", r"pairs.tsv: 0 of its 3 columns look like text; .* such as --columns 2,3"),
    ],
)
def test_bad_tsv(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"1\ta\tb\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        _read_scored_texts(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1.0, "da", "yes"), "pairs.tsv line 1: the source text 'da' is not among"),
        ((1.0, "ja", "no"), "pairs.tsv line 1: the target text 'no' is not among"),
    ],
)
def test_unknown_texts(tmp_path: Path, row: tuple[float, str, str], message: str) -> None:
    source, target = Sentences(ids=["d"], texts=["ja"]), Sentences(ids=["e"], texts=["yes"])
    path = tmp_path / "pairs.tsv"
    path.write_text("\t".join(map(str, row)) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_candidates(path, (source, target))


BEADS = [
    {"cost": 0.25, "source_ids": [1, " 2"], "target_ids": ["e1"]},
    {"cost": 4.5, "source_ids": [], "target_ids": ["e2"]},
    {"cost": 0.5, "source_ids": ["3"], "target_ids": ["e3", "e4"]},
]
UNITS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="de-DE" segtype="sentence"/><body>
<tu><prop type="x-score">2.5</prop><tuv xml:lang="EN"><prop type="x-id">e1</prop>
<seg>The <bpt i="1">&lt;b></bpt>house<ept i="1">&lt;/b></ept></seg></tuv>
<tuv xml:lang="de"><prop type="x-id">d1</prop><seg>Das <hi>Haus</hi></seg></tuv></tu>
<tu><prop type="x-score">1e-3</prop><tuv xml:lang="de"><seg>Ja &amp; nein</seg></tuv>
<tuv xml:lang="en"><seg>Yes</seg></tuv></tu></body></tmx>
"""


@pytest.mark.parametrize("name", ["a.jsonl", "a.JSONL.gz", "a.ndjson.xz", "a.parquet"])
def test_merged_sentences_have_all_their_ids_and_gaps_are_skipped(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        records = [bead | {"source_ids": [*map(str, bead["source_ids"])]} for bead in BEADS]  # type: ignore[attr-defined]
        write(path, records)
    else:
        lines = "".join(f"{json.dumps(bead)}\n\n" for bead in BEADS).encode()
        open_by_suffix = {"gz": gzip.compress, "xz": lzma.compress}
        path.write_bytes(open_by_suffix.get(name.rpartition(".")[2], bytes)(lines))
    candidates = read_candidates(path, None)
    assert candidates.scores.tolist() == [-0.25, -0.5]
    assert candidates.sources == [("1", "2"), ("3",)]
    assert candidates.targets == [("e1",), ("e3", "e4")]


def test_units_of_a_translation_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(UNITS, encoding="utf-8")
    sides = Sentences(ids=["d7"], texts=["Ja & nein"]), Sentences(ids=["e7"], texts=["Yes"])
    candidates = read_candidates(path, sides)
    assert candidates.scores.tolist() == [2.5, 0.001]
    assert candidates.sources == [("d1",), ("d7",)]
    assert candidates.targets == [("e1",), ("e7",)]
    assert [pair.texts for pair in read_pairs(path)] == [
        ("Das Haus", "The house"),
        ("Ja & nein", "Yes"),
    ]
    path.write_text(UNITS[:-20], encoding="utf-8")
    with pytest.raises(ValueError, match=r"a.tmx: is cut off or not valid XML \("):
        read_candidates(path, sides)


@pytest.mark.parametrize(
    "name", ["o.tsv", "o.TSV", "o.tsv.zst", "o.jsonl.gz", "o.parquet", "o.tmx.gz", "o.dataset"]
)
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    pairs = [
        {
            **dict.fromkeys(pairs_schema().names),
            **{"score": 1.5 - n, "source_id": f"s {n}", "target_id": f"{n}"},
            **{"source_text": f"Satz\t{n} <&>", "target_text": f"a {n}", "source_duplicates": []},
            **{"source_doc": "", "target_doc": "d", "target_duplicates": ["9"] if n else []},
        }
        for n in range(3)
    ]
    table = pa.Table.from_pylist(pairs, schema=pairs_schema())
    write_pairs(tmp_path / name, [table], origin=Origin(languages=("pt-BR", "en")))
    found = list(read_pairs(tmp_path / name))
    assert [pair.score for pair in found] == [1.5, 0.5, -0.5]
    assert [pair.texts for pair in found] == [
        (f"Satz\t{n} <&>" if "tsv" not in name.lower() else f"Satz {n} <&>", f"a {n}")
        for n in range(3)
    ]
    if "tsv" in name.lower():
        assert {pair.ids for pair in found} == {None}
    else:
        more = () if "tmx" in name else ("9",)
        assert [pair.ids for pair in found] == [
            ((f"s {n}",), (f"{n}", *(more if n else ()))) for n in range(3)
        ]
