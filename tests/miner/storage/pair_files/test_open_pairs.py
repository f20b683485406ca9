"""Files of pairs: recognised by their content, with the columns or fields that hold the texts."""

import gzip
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.storage.corpus.records import CorpusError
from miner.storage.pair_files import open_pairs
from miner.storage.pair_files.base import FilePair
from miner.storage.pair_files.moses import open_moses
from miner.storage.pair_files.repair import repair_text
from miner.storage.pair_files.sides import pair_schema, pair_table, write_sides
from miner.storage.pairs import write_pairs
from miner.storage.writers import Origin

PAIRS = [
    ("Das Haus ist sehr alt.", "The house is very old."),
    ("Wir gehen heute ins Kino.", "We go to the cinema today."),
    ("Niemand hat das Buch gelesen.", "Nobody has read the book."),
]
URLS = "https://example.org/de/\thttps://example.org/en/"
TMX = '<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="{}"/><body>{}</body></tmx>'


def lines(template: str) -> str:
    return "".join(template.format(s=s, t=t, n=n) + "\n" for n, (s, t) in enumerate(PAIRS, start=1))


def unit(texts: dict[str, str]) -> str:
    variants = (f'<tuv xml:lang="{tag}"><seg>{text}</seg></tuv>' for tag, text in texts.items())
    return f"<tu>{''.join(variants)}</tu>"


def read(path: Path, *columns: str) -> list[tuple[str, str] | None]:
    return [pair.texts for pair in open_pairs(path, columns=columns).read()]


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        (lines("{s}\t{t}"), "TSV, columns 1 and 2 of 2"),
        (lines("0.{n}\t{s}\t{t}"), "TSV, columns 2 and 3 of 3"),
        (lines("{s}\t{t}\t0.{n}\t0.5"), "TSV, columns 1 and 2 of 4"),
        (lines(URLS + "\t{s}\t{t}"), "TSV, columns 3 and 4 of 4"),
        (lines(URLS + "\t{s}\t{t}\t0.7"), "TSV, columns 3 and 4 of 5"),
        (lines("{n}\tdoc-{n}\t{s}\t{t}"), "TSV, columns 3 and 4 of 4"),
        ("src\tid\ttrg\n" + lines("{s}\t{n}\t{t}"), "columns src and trg of 3 (named"),
        ("de\ten\n" + lines("{s}\t{t}"), "TSV, columns de and en of 2 (named"),
        (
            "src_url\ttrg_url\tsrc_text\ttrg_text\tbicleaner_score\n"
            + lines(URLS + "\t{s}\t{t}\t0.{n}"),
            "columns src_text and trg_text of 5 (named",
        ),
        (lines("{s} ||| {t}"), "columns with |||, columns 1 and 2 of 2"),
        ("source,target\n" + lines('"{s}","{t}"'), "CSV, columns source and target of 2"),
        (",src,tgt,score\n" + lines('{n},"{s}","{t}",0.5'), "CSV, columns src and tgt of 4"),
        ("id;target;source\n" + lines('{n};"{t}";"{s}"'), "columns source and target of 3"),
    ],
)
def test_tables(tmp_path: Path, content: str, layout: str) -> None:
    for name, write in (("pairs", Path.open), ("pairs.gz", gzip.open)):
        with write(tmp_path / name, "wt", encoding="utf-8") as file:  # type: ignore[operator]
            file.write(content)
        assert layout in open_pairs(tmp_path / name).layout
        assert read(tmp_path / name) == PAIRS


def test_lines_that_adit_rate_wrote(tmp_path: Path) -> None:
    """With columns for score, probability and reason after those of the input."""
    ends = ["-1.5\t0.25\t", "\t\tblank", "3\t1\tlength,numbers", "0.5\t0.5\t"]
    for start in ("{s}\t{t}", URLS + "\t{s}\t{t}"):
        rows = lines(start).splitlines()
        cells = [f"{row}\t{end}" for row, end in zip(rows, ends * len(rows), strict=False)]
        (tmp_path / "a").write_text("\n".join(cells))
        pairs = [*open_pairs(tmp_path / "a").read()]
        assert not any(pair.problem for pair in pairs)
        found = [(pair.score, pair.probability) for pair in pairs]
        assert found[:4] == [(-1.5, 0.25), (None, None), (3, 1), (0.5, 0.5)][: len(found)]
        assert read(tmp_path / "a") == PAIRS
    for end in ("1.5\t2.5\t", "1.5\t0.5\t0.5", "a\t0.5\t", "1.5\t0.5\tnews"):
        (tmp_path / "a").write_text("".join(f"{s}\t{t}\t{end}\n" for s, t in PAIRS))
        assert {pair.score for pair in open_pairs(tmp_path / "a").read()} == {None}


def test_texts_of_several_lines(tmp_path: Path) -> None:
    """As in a CSV file that Translate Toolkit makes of a gettext catalogue."""
    record = '"a.c:{n}","\n{s}\n\n ","\n\n{t}"\n'
    texts = [record.format(n=n, s=s, t=t) for n, (s, t) in enumerate(PAIRS)]
    (tmp_path / "a.csv").write_text('"location","source","target"\n' + "".join(texts) * 20)
    assert read(tmp_path / "a.csv") == [(f"\n{s}\n\n ", f"\n\n{t}") for s, t in PAIRS] * 20


@pytest.mark.parametrize(
    "record",
    [
        lambda s, t: {"source_text": s, "target_text": t},
        lambda s, t: {"id": 1, "src": s, "tgt": t},
        lambda s, t: {"translation": {"de": s, "en": t}},
        lambda s, t: {"de": s, "score": 1.0, "en": t},
        lambda s, t: {"sentence2": t, "sentence1": s},
    ],
)
def test_records(tmp_path: Path, record: object) -> None:
    records = [record(*pair) for pair in PAIRS]  # type: ignore[operator]
    (tmp_path / "a").write_text("".join(map("{}\n".format, map(json.dumps, records))))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "b")
    assert read(tmp_path / "a") == read(tmp_path / "b") == PAIRS


def test_fields_by_language_and_by_name(tmp_path: Path) -> None:
    record = {"translation": {"fr": "un", "de": "eins", "en": "one"}}
    (tmp_path / "a").write_text(json.dumps(record))
    chosen = open_pairs(tmp_path / "a", languages=("en", "fr"))
    assert (chosen.languages, [pair.texts for pair in chosen.read()]) == (
        ("en", "fr"),
        [("one", "un")],
    )
    assert read(tmp_path / "a", "de", "fr") == [("eins", "un")]
    lines = [{"translation": texts} for texts in ({"de": "a", "en": "b"}, "de", None, {"de": 1})]
    (tmp_path / "b").write_text("\n".join(map(json.dumps, lines)))
    assert read(tmp_path / "b") == [("a", "b"), None, None, None]
    with pytest.raises(CorpusError, match=r"no fields of source and target among fr, de, en; name"):
        open_pairs(tmp_path / "a")
    texts = [pa.array(["a"])] * 3
    table = pa.table(texts, names=["source_text", "source_text", "target_text"])
    pq.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(CorpusError, match=r"c\.parquet: has several columns 'source_text'; rename"):
        open_pairs(tmp_path / "c.parquet")


def test_records_that_no_output_can_express_are_not_pairs(tmp_path: Path) -> None:
    fields = [{"source_id": "\ud800", "target_id": "1"}, {"corpus": "\ud800"}, {"score": 10**400}]
    records = [{"src": "eins", "tgt": "one", **more} for more in fields]
    (tmp_path / "a").write_text("".join(json.dumps(record) + "\n" for record in records))
    pairs = list(open_pairs(tmp_path / "a").read())
    assert [pair.texts for pair in pairs] == [None] * 3
    assert [pair.problem for pair in pairs[:2]] == ["undecodable"] * 2
    assert pairs[2].problem.startswith("score 1000")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tmx(tmp_path: Path, encoding: str) -> None:
    units = [
        unit({"en-US": "<ph>x</ph>one &amp; <hi>two</hi>", "DE": "eins und zwei"}),
        unit({"de": "nur deutsch"}),
        unit({"DE": "drei", "en": "three", "fr": "trois"}),
    ]
    text = TMX.format("de", "".join(units)).replace('"1.0"', f'"1.0" encoding="{encoding[:6]}"')
    (tmp_path / "a").write_text(text.replace("utf-8-", "utf-8"), encoding=encoding)
    pairs = open_pairs(tmp_path / "a", languages=("de", "en"))
    texts = [(pair.texts, pair.problem) for pair in pairs.read()]
    assert texts == [
        (("eins und zwei", "one & two"), ""),
        (None, "has no text in en"),
        (("drei", "three"), ""),
    ]
    with pytest.raises(CorpusError, match=r"has the languages en-US, DE, fr; choose two"):
        open_pairs(tmp_path / "a")
    with pytest.raises(
        CorpusError, match=r"first 200 units have no text in 'it', only in en-US, DE, fr"
    ):
        open_pairs(tmp_path / "a", languages=("it", None))


@pytest.mark.parametrize("encoding", ["shift_jis", "unknown"])
def test_tmx_in_an_encoding_that_the_parser_lacks_is_refused(tmp_path: Path, encoding: str) -> None:
    text = TMX.format("de", unit({"de": "eins", "en": "one"}))
    (tmp_path / "a").write_text(text.replace('"1.0"', f'"1.0" encoding="{encoding}"', 1))
    with pytest.raises(CorpusError, match=r"/a: .*encoding.*; convert it to UTF-8, and name that"):
        open_pairs(tmp_path / "a")


def test_deep_markup_in_tmx(tmp_path: Path) -> None:
    deep = "<hi>" * 3000 + "one<ph>x<sub>y</sub></ph>!" + "</hi>" * 3000
    (tmp_path / "a").write_text(TMX.format("de", unit({"de": "eins", "en": deep})))
    assert read(tmp_path / "a") == [("eins", "one!")]


def test_the_header_of_tmx_names_the_source(tmp_path: Path) -> None:
    for source, expected in (("de", ("eins", "one")), ("en", ("one", "eins"))):
        (tmp_path / "a").write_text(TMX.format(source, unit({"en": "one", "de": "eins"})))
        assert read(tmp_path / "a") == [expected]


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        ("schÃ¶n trÃ¨s", "schön très"),
        ("That&#39;s &lt;b&gt; &amp; c", "That's <b> & c"),
        ("a\u200bb\u00adc \ufeffd\x07", "abc d"),
        ("two  spaces\u00a0here ", "two spaces here"),
        ("\u2018single\u2019 \u201cdouble\u201d", "'single' \"double\""),
        ("Ça va, naïve façade: ½ € 5'2\"", "Ça va, naïve façade: ½ € 5'2\""),
        ("\uff11\uff12\uff13 \uff21中文\uff0c好。", "\uff11\uff12\uff13 \uff21中文\uff0c好。"),
    ],
)
def test_repair(damaged: str, expected: str) -> None:
    assert repair_text(damaged) == expected


def test_zip_of_opus(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("README", "about")
        archive.writestr("Books.de-en.xml", "<x/>")
        for side, language in enumerate(("de", "en")):
            archive.writestr(f"Books.de-en.{language}", "\n".join(pair[side] for pair in PAIRS))
    pairs = open_pairs(tmp_path / "a")
    assert pairs.languages == ("de", "en")
    assert read(tmp_path / "a") == PAIRS
    turned = open_pairs(tmp_path / "a", languages=("en", None))
    assert [pair.texts for pair in turned.read()] == [(t, s) for s, t in PAIRS]
    content = (tmp_path / "a").read_bytes()
    text = content.index(PAIRS[0][0].encode())
    (tmp_path / "b").write_bytes(content[:text] + b"?" + content[text + 1 :])
    with pytest.raises(
        CorpusError, match=r"b: is not a whole zip file \(Bad CRC.*; fetch it again"
    ):
        read(tmp_path / "b")
    # The bit of encryption in the central entries and in the members' own headers.
    encrypted = bytearray(content)
    for mark, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        for match in re.finditer(re.escape(mark), content):
            encrypted[match.start() + place] |= 1
    (tmp_path / "b").write_bytes(encrypted)
    with pytest.raises(CorpusError, match=r"b: cannot be unpacked here \(.*encrypted.*; unpack it"):
        read(tmp_path / "b")
    with zipfile.ZipFile(tmp_path / "b", "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(
        CorpusError, match=r"is a zip archive with \d pairs of files such as .*, expected 1; unpack"
    ):
        open_pairs(tmp_path / "b")


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_in_a_zip_of_opus(tmp_path: Path, compression: int) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w", compression) as archive:
        for side, language in enumerate(("de", "en")):
            archive.writestr(f"Books.de-en.{language}", "\n".join(pair[side] for pair in PAIRS))
    content = bytearray((tmp_path / "a").read_bytes())
    start = content.index(b"Books.de-en.de") + len("Books.de-en.de")
    content[start + 4 : start + 24] = bytes(20)
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a: is not a whole zip file \(.*; fetch it again"):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (lines("{s}"), (), "no pairs found in its first lines; pass TSV, CSV"),
        (lines("s{n}\t{s}"), (), r"its 2 columns look like an id and a sentence; pass the nu"),
        (lines("{s}\t{t}\t{s}"), (), r"3 of its 3 columns look like text; .* --columns 2,3"),
        (lines("{s}\t{t}"), ("1", "3"), r"no column '3'; choose --columns among 1 to 2"),
        ("src\ttgt\n" + lines("{s}\t{t}"), ("a", "src"), r"no column 'a'; .* the names src, tgt"),
        (lines("{s}\t{t}"), ("1",), r"--columns: expected two columns such as 3,4, not 1"),
        ("", (), None),
    ],
)
def test_doubtful_files_are_refused(
    tmp_path: Path, content: str, columns: Sequence[str], message: str | None
) -> None:
    (tmp_path / "a").write_text(content, encoding="utf-8")
    if message is None:
        assert read(tmp_path / "a") == []
    else:
        with pytest.raises(CorpusError, match=message):
            open_pairs(tmp_path / "a", columns=columns)


def test_lines_that_are_not_pairs_keep_their_place(tmp_path: Path) -> None:
    text = lines("{s}\t{t}") + "\nonly one\n" + "\ta b c.\n"
    (tmp_path / "a").write_bytes(text.encode() + b"x\xff\ty\n")
    pairs = list(open_pairs(tmp_path / "a").read())
    problems = ["", "", "", "blank", "has 1 column, expected 2", "", "undecodable"]
    assert [pair.problem for pair in pairs] == problems
    assert pairs[4].raw == "only one"
    source, target = write_sides(open_pairs(tmp_path / "a"), tmp_path / "sides", name="a")
    sides = [path.read_text(encoding="utf-8").split("\n") for path in (source, target)]
    assert list(zip(*sides, strict=True))[3:] == [
        ("", ""),
        ("", ""),
        ("", "a b c."),
        ("", ""),
        ("", ""),
    ]


def test_a_problem_is_placed_in_the_file_that_has_it(tmp_path: Path) -> None:
    long = b"x" * (3 << 20)
    (tmp_path / "a").write_bytes(b"A.\nB.\n\xff\n\nE.\n")
    (tmp_path / "b").write_bytes(b"A.\n\xff\n%s\nD.\n%s\n" % (long, long))
    pairs = open_moses(tmp_path / "a", tmp_path / "b").read()
    assert [(pair.place.rpartition("/")[2], pair.problem) for pair in pairs] == [
        ("a line 1", ""),
        ("b line 2", "undecodable"),
        ("a line 3", "undecodable"),
        ("a line 4", "blank"),
        ("b line 5", "too long"),
    ]


def test_bytes_that_are_not_utf_8_are_kept_and_never_a_pair(tmp_path: Path) -> None:
    """Whatever the format: the record keeps its place, and the ones around it are read."""
    good, bad = b"Ein Satz.", b"caf\xe9 au lait"
    csv = b'source,target\n"Ein\n\nSatz.",A\nx,"%s"\n"Ein\n\nSatz.",B\n' % bad
    files = {
        "tsv": b"%s\tA b c.\nx\t%s\r\n%s\tB b c.\n" % (good, bad, good),
        "csv": csv,
        "jsonl": b'{"source": "%s", "target": "A"}\n{"source": "%s"}\n{"source": "\\ud83d",'
        b' "target": ""}\n' % (good, bad),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a.de-en.de", good + b"\nx\n" + good)
        archive.writestr("a.de-en.en", b"A\n" + bad + b"\nB")
    found = {name: list(open_pairs(tmp_path / name).read()) for name in (*files, "zip")}
    for name, pairs in found.items():
        expected = ["", "undecodable", "undecodable" if name == "jsonl" else ""]
        assert [pair.problem for pair in pairs] == expected, name
    kept = "caf\udce9 au lait"
    assert found["tsv"][1].raw == f"x\t{kept}"
    assert found["csv"][1].texts == found["zip"][1].texts == ("x", kept)
    assert found["csv"][2].texts == ("Ein\n\nSatz.", "B")
    write_sides(open_pairs(tmp_path / "csv"), tmp_path / "sides", name="csv")
    assert (tmp_path / "sides" / "target.txt").read_text(encoding="utf-8") == "A\n\nB\n"


def test_other_files_are_named(tmp_path: Path) -> None:
    for content, message in (
        ('msgid ""\nmsgstr ""\n\nmsgid "Open"\nmsgstr "Auf"\n', "messages of a gettext cat"),
        ("1\n00:00:01,000 --> 00:00:02,500\nHallo.\n", r"subtitles with times \(SRT\)"),
        ('<?xml version="1.0"?>\n<xliff version="1.2">', "XML markup"),
        (json.dumps([["Ja.", "Yes."]], indent=1), "JSON"),
    ):
        (tmp_path / "a").write_text(content, encoding="utf-8")
        with pytest.raises(CorpusError, match=rf"/a: contains {message}.*; pass TSV, CSV, JSON l"):
            open_pairs(tmp_path / "a")


def test_a_file_without_pairs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\n \n")
    with pytest.raises(CorpusError, match=r"a: no pairs found \(no line with text\); pass"):
        write_sides(open_pairs(tmp_path / "a"), tmp_path, name="a")


HOSTILE = st.text(
    st.sampled_from("ab \t\"'\\\r\n\v\x1c\x85\u2028\u200f]]>&<;,|\0\ufeff\u00e9\U0001f600"),
    min_size=1,
).map(lambda text: f"x{text}y")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(HOSTILE, HOSTILE, NUMBERS, st.floats(0, 1)), min_size=1))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, float, float]]
) -> None:
    folder = tmp_path_factory.mktemp("written")
    pairs = [
        FilePair(place="", texts=row[:2], score=row[2], probability=row[3], ids=(("1",), ("2",)))
        for row in rows
    ]
    schema = pair_schema(pairs)
    for ending in ("tsv", "tsv.zst", "%.gz", "jsonl", "parquet", "tmx", "dataset"):
        path = folder / f"out.{ending}"
        tables = [pair_table(pairs, schema)]
        write_pairs(path, tables, origin=Origin(languages=("de", "en")), schema=schema)
        if ending.startswith(("tsv", "%")):
            sides = folder / "out.de.gz", folder / "out.en.gz"
            found = list((open_pairs(path) if "tsv" in ending else open_moses(*sides)).read())
            expected = [tuple(_on_a_line(text) for text in row[:2]) for row in rows]
            assert [pair.score for pair in found] == [
                row[2] if "tsv" in ending else None for row in rows
            ]
        else:
            found = list(open_pairs(path).read())
            assert [pair.probability for pair in found] == [row[3] for row in rows]
            assert [pair.ids for pair in found] == [(("1",), ("2",))] * len(rows)
            assert [pair.score for pair in found] == [row[2] for row in rows]
            expected = [row[:2] for row in rows]
            if ending == "tmx":  # XML has no way to write these
                expected = [(_in_xml(source), _in_xml(target)) for source, target in expected]
        assert [pair.texts for pair in found] == expected


def _on_a_line(text: str) -> str:
    return "".join(" " if character in _BREAKS else character for character in text)


def _in_xml(text: str) -> str:
    return "".join(" " if character in "\v\x1c\0" else character for character in text)


_BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
