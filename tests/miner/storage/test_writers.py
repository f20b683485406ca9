"""Every format read back by a reader that is not ours, with text that readers stumble over."""

import gzip
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.storage.atomic import OutputError
from miner.storage.pairs import check_output, write_pairs
from miner.storage.writers import FORMATS, Origin, Output, formats
from tests.miner.storage.test_pairs import ORIGIN, record, table

BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
HOSTILE = [
    "tab\there, line\nthere, \r\n and \r",
    f"all {BREAKS} of them",
    "]]> <![CDATA[ </seg> & &amp; <!-- -->",
    "\"quotes\" 'and' \\n backslashes \\",
    "\u202eright to left\u202c \u200f\u061c \ufeff\u200b",
    "\x00\x01\x08\x1b[31m\x7f\x9f\ufffe\uffff",
    " around  ",
    "\U0001f600 e\u0301 \u4e2d\u6587",
    "x" * (1 << 20),
    "%s {} $HOME `ls` =1+1 @cmd",
]
PAIRS = [
    record(
        row, source_text=text, target_text=text[::-1], source_id=f"<{row}>&", target_doc=text[:9]
    )
    for row, text in enumerate(HOSTILE)
]


def on_a_line(text: str) -> str:
    return "".join(" " if character in BREAKS else character for character in text)


def in_xml(text: str) -> str:
    """Text with a space for what XML 1.0 has no characters for (its production 2)."""
    return "".join(
        character
        if character in "\t\n\r"
        or 0x20 <= ord(character) <= 0xD7FF
        or 0xE000 <= ord(character) <= 0xFFFD
        or 0x10000 <= ord(character)
        else " "
        for character in text
    )


def read(path: Path) -> bytes:
    match path.suffix:
        case ".gz":
            return gzip.decompress(path.read_bytes())
        case ".zst":
            return pa.input_stream(str(path), compression="zstd").read()
        case _:
            return path.read_bytes()


@pytest.fixture(params=["", ".gz", ".zst"])
def compression(request: pytest.FixtureRequest) -> str:
    return request.param


def test_tsv(tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"out.tsv{compression}"
    assert write_pairs(path, [table(*PAIRS)], origin=ORIGIN) == len(PAIRS)
    lines = read(path).decode().splitlines()
    assert [line.split("\t") for line in lines] == [
        [repr(pair["score"]), on_a_line(pair["source_text"]), on_a_line(pair["target_text"])]
        for pair in PAIRS
    ]


def test_jsonl(tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"out.jsonl{compression}"
    write_pairs(path, [table(*PAIRS)], origin=ORIGIN)
    assert [json.loads(line) for line in read(path).decode().splitlines()] == PAIRS


def test_lines(tmp_path: Path, compression: str) -> None:
    write_pairs(tmp_path / f"out.%.txt{compression}", [table(*PAIRS)], origin=ORIGIN)
    assert len(list(tmp_path.iterdir())) == 2
    for language, side in (("de", "source"), ("en", "target")):
        lines = read(tmp_path / f"out.{language}.txt{compression}").decode().splitlines()
        assert lines == [on_a_line(pair[f"{side}_text"]) for pair in PAIRS]


TEXTS = st.lists(
    st.tuples(
        *[
            st.text(
                st.characters(exclude_categories=["Cs"]) | st.sampled_from([*BREAKS, *"]]>&<\"'"])
            )
        ]
        * 2
    ),
    max_size=5,
)


@given(TEXTS)
@settings(deadline=None, max_examples=60)
def test_any_text_is_read_back_from_every_format(texts: list[tuple[str, str]]) -> None:
    """Bytes for bytes where the format can hold it, else with a space for what it cannot."""
    pairs = [
        record(row, source_text=one, target_text=other, source_doc=other)
        for row, (one, other) in enumerate(texts)
    ]
    given_pairs = [table(*pairs)] if pairs else []
    with TemporaryDirectory() as name:
        folder = Path(name)
        for ending in ("tsv", "jsonl", "parquet", "tmx", "dataset", "%"):
            write_pairs(folder / f"out.{ending}", given_pairs, origin=ORIGIN)
        rows = [line.split("\t")[1:] for line in lines_of(folder / "out.tsv")]
        assert rows == [[on_a_line(one), on_a_line(other)] for one, other in texts]
        assert [json.loads(line) for line in lines_of(folder / "out.jsonl")] == pairs
        assert pq.read_table(folder / "out.parquet").to_pylist() == pairs
        assert pq.read_table(folder / "out.dataset" / "pairs.parquet").to_pylist() == pairs
        assert lines_of(folder / "out.de") == [on_a_line(one) for one, _ in texts]
        assert lines_of(folder / "out.en") == [on_a_line(other) for _, other in texts]
        root = ElementTree.parse(folder / "out.tmx").getroot()
    check_by_dtd(root)
    found = [[seg.text or "" for seg in unit.iter("seg")] for unit in root.iter("tu")]
    assert found == [[in_xml(one), in_xml(other)] for one, other in texts]


def lines_of(path: Path) -> list[str]:
    """As any reader cuts a file: at everything that some take for the end of a line."""
    return path.read_bytes().decode().splitlines()


def test_datasets_loads_the_folder(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "news.dataset"
    write_pairs(folder, [table(*PAIRS)], origin=ORIGIN)
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == PAIRS


def test_dataset(tmp_path: Path) -> None:
    folder = tmp_path / "news.dataset"
    check_output(folder, ORIGIN)
    assert not folder.exists()
    for _ in range(2):
        write_pairs(folder, [table(*PAIRS)], origin=ORIGIN)
    assert pq.read_table(folder / "pairs.parquet").to_pylist() == PAIRS
    _, metadata, text = (folder / "README.md").read_text("utf-8").split("---\n")
    card = yaml.safe_load(metadata)
    assert card["language"] == ["de", "en"]
    assert card["license"] == "unknown"
    assert card["size_categories"] == ["n<1K"]
    assert card["configs"][0]["data_files"] == [{"split": "train", "path": "pairs.parquet"}]
    assert "10 pairs" in text
    check_output(folder, ORIGIN)
    (folder / "README.md").unlink()
    (folder / "README.md").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        check_output(folder, ORIGIN)


def test_languages_that_yaml_takes_for_something_else(tmp_path: Path) -> None:
    write_pairs(tmp_path / "a.dataset", [], origin=Origin(languages=("no", "en")))
    metadata = (tmp_path / "a.dataset" / "README.md").read_text("utf-8").split("---\n")[1]
    assert yaml.safe_load(metadata)["language"] == ["no", "en"]


def test_tmx(tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"out.tmx{compression}"
    assert write_pairs(path, [table(*PAIRS)], origin=ORIGIN) == len(PAIRS)
    root = ElementTree.fromstring(read(path))
    check_by_dtd(root)
    assert root.get("version") == "1.4"
    units = root.findall("body/tu")
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    for unit, pair in zip(units, PAIRS, strict=True):
        sides = unit.findall("tuv")
        assert [side.get(language) for side in sides] == ["de", "en"]
        for tuv, name in zip(sides, ("source", "target"), strict=True):
            assert tuv.findtext("seg") == in_xml(pair[f"{name}_text"])
            properties = {one.get("type"): one.text for one in tuv.findall("prop")}
            assert properties["x-id"] == pair[f"{name}_id"]
            assert properties.get("x-document", "") == in_xml(pair[f"{name}_doc"])
        assert float(unit.findtext("prop[@type='x-score']") or "") == pair["score"]


def check_by_dtd(root: ElementTree.Element) -> None:
    """What the DTD of TMX 1.4 asks of the elements that are used: content and attributes."""
    content = {
        "tmx": "header body ",
        "header": "(note |prop |ude )*",
        "body": "(tu )*",
        "tu": "(note |prop )*(tuv )+",
        "tuv": "(note |prop )*seg ",
        "prop": "",
        "seg": "",
    }
    attributes = {
        "tmx": {"version"},
        "header": {
            *("creationtool", "creationtoolversion", "segtype", "o-tmf"),
            *("adminlang", "srclang", "datatype"),
        },
        "prop": {"type"},
        "tuv": {"{http://www.w3.org/XML/1998/namespace}lang"},
    }
    for element in root.iter():
        children = "".join(f"{child.tag} " for child in element)
        assert re.fullmatch(content[element.tag], children), element.tag
        assert set(element.attrib) == attributes.get(element.tag, set())
        if element.tag not in ("seg", "prop"):
            assert not (element.text or "").strip()
    assert root.find("header").get("segtype") in ("block", "paragraph", "sentence", "phrase")


def test_tmx_has_what_a_judged_pair_was_scored_by(tmp_path: Path) -> None:
    judged = pa.Table.from_pylist([record(probability=0.5, margin=1.25, reason="length")])
    path = tmp_path / "out.tmx"
    write_pairs(path, [judged], origin=ORIGIN, judged=True, reasons=True)
    unit = ElementTree.parse(path).find("body/tu")
    found = {one.get("type"): one.text for one in unit.findall("prop")}
    assert (found["x-margin"], found["x-reason"]) == ("1.25", "length")
    assert {f"x-{name}" for name in formats._UNIT_PROPERTIES} <= set(found)


def test_tmx_names_its_languages(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--src-lang and --tgt-lang"):
        check_output(tmp_path / "out.tmx", Origin(languages=("de", None)))


def test_lines_of_unknown_languages(tmp_path: Path) -> None:
    write_pairs(tmp_path / "out.%", [table(record())], origin=Origin())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.src", "out.tgt"]
    with pytest.raises(ValueError, match="pass different --src-lang"):
        check_output(tmp_path / "out.%", Origin(languages=("de", "de")))


@pytest.mark.parametrize(
    ("name", "rejected"),
    [
        ("a.b.tsv", "a.b.rejected.tsv"),
        ("a.tsv.gz", "a.rejected.tsv.gz"),
        ("a.TMX.GZ", "a.rejected.TMX.gz"),
        ("a.%", "a.rejected.%"),
        ("a.%.txt.zst", "a.rejected.%.txt.zst"),
        ("a-%", "a-.rejected%"),
        ("100%.jsonl", "100%.rejected.jsonl"),
        ("a.dataset", "a.rejected.dataset"),
    ],
)
def test_names(name: str, rejected: str) -> None:
    assert Output.named(name).rejected == Path(rejected)
    assert Output.named(rejected).format is Output.named(name).format


def test_compressed_bytes_do_not_depend_on_time_or_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_pairs(tmp_path / f"{name}.tsv.gz", [table(*PAIRS)], origin=ORIGIN)
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()
    assert (tmp_path / "a.tsv.gz").read_bytes()[4:8] == bytes(4)


def test_every_format_has_a_test() -> None:
    assert {known.name for known in FORMATS.values()} <= {
        name.removeprefix("test_") for name in globals()
    } | {"parquet"}
