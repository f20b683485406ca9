"""Files that are no lists of sentences, and lists of sentences that look like other files."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError
from miner.storage.recognition import _warn_once, check_lines

GERMAN = [
    "Der Kellner brachte die Suppe kalt.",
    "Im Keller stehen drei alte Fahrräder, zwei davon ohne Sattel.",
    "Warum hat niemand angerufen?",
    'Sie lachte "wie früher" und ging.',
    "1998 wurde die Brücke gesperrt.",
    "Nimm den Bus; er ist schneller.",
]
CHINESE = ["服务员把汤端上来时已经凉了", "地下室里有三辆旧自行车", "为什么没有人打电话来", "他笑了"]
ENGLISH = [
    "The waiter brought the soup cold.",
    "There are three old bicycles in the cellar, two of them without a saddle.",
    "Why did nobody call?",
    'She laughed "as before" and left.',
    "In 1998 the bridge was closed.",
    "Take the bus; it is faster.",
]
PAIRS = list(zip(GERMAN, ENGLISH, strict=True))
QUOTED = [
    [json.dumps(text, ensure_ascii=False).replace('\\"', '""') for text in pair] for pair in PAIRS
]


def joined(rows: object, mark: str) -> list[str]:
    return [mark.join(map(str, row)) for row in rows]  # type: ignore[attr-defined]


REFUSED = [
    ("a.txt", joined(PAIRS, "\t"), "contains 2 columns with tabs between them"),
    ("a.txt", joined(enumerate(GERMAN), "\t"), "use --input-format tsv for id TAB text"),
    ("a", joined(PAIRS, " ||| "), r"2 columns with \|\|\| between them"),
    ("a.de", joined([(0.5, *pair, "web") for pair in PAIRS], "\t"), "contains 4 columns with tabs"),
    ("a.tsv", joined(PAIRS, "\t"), "sentences in column 1 of 2 .*input-format tsv for id TAB text"),
    ("a.tsv", joined(zip(CHINESE, ENGLISH, strict=False), "\t"), "sentences in column 1 of 2"),
    ("a.tsv", joined([(1 / 3, *pair) for pair in PAIRS], "\t"), "sentences in column 2 of 3"),
    ("a.tsv", joined([(*pair, "web") for pair in PAIRS], "\t"), "sentences in column 1 of 3"),
    ("a.tsv", ["ID\tdoc\ttext", "1\td\tEin Satz."], "contains a header in its first line"),
    ("a.txt", ["source,target", *joined(QUOTED, ",")], r"2 columns with ',' between them \(CSV\)"),
    ("a", joined(QUOTED, ";"), "2 columns with ';' between them"),
    ("a.csv", ["7,eins", "8,zwei"], "2 columns with ','"),
    ("a.tmx", ["<tmx><body>" + "".join(f"<tu><seg>{t}</seg></tu>" for t in GERMAN)], r"\(TMX\)"),
    ("a.txt", ["", "<?xml version='1.0'?>", "<tmx version='1.4'>", "<body>"], r"\(TMX\)"),
    ("a.txt", ['<?xml version="1.0"?><xliff>', *GERMAN], "contains XML markup"),
    ("a.txt", ["<!doctype HTML>", "<p>Hallo", "Welt"], "a web page .*rename it to end in .html"),
    ("a.de", [f'<seg id="{n}">{text}</seg>' for n, text in enumerate(GERMAN)], "contains markup"),
    ("a.srt", ["1", "00:00:01,000 --> 00:00:02,500", "Hallo.", "2", "00:00:03,000 --> 00:00:04,0",
               "00:00:05,000 --> 00:00:06,000", "Welt."], r"subtitles with times \(SRT\)"),
    ("a.txt", ["WEBVTT - Folge 1", "", "00:01.000 --> 00:02.000", "Hallo."], "WebVTT"),
    ("a.sub", [f"{{{n}}}{{{n + 40}}}{text}" for n, text in enumerate(GERMAN)], "subtitles"),
    ("a.sbv", [line for n in range(3) for line in
               (f"0:00:0{n}.000,0:00:0{n}.900", "Hallo, Welt.", "")], "subtitles with times"),
    ("a.lrc", [f"[00:{n:02}.50]{text}" for n, text in enumerate(GERMAN)], "subtitles"),
    ("a.po", ['msgid ""', 'msgstr ""', '"Language: de\\n"', "", "#: a.c:3", 'msgid "Open"',
              'msgstr "Öffnen"'], "gettext catalogue"),
    ("a.json", [json.dumps(GERMAN)], "contains JSON instead"),
    ("a", json.dumps([{"de": one, "en": other} for one, other in PAIRS], indent=2).split("\n"),
     "contains JSON instead"),
    ("a.txt", [json.dumps({"sentence": text, "n": 1}) for text in GERMAN],
     r"without a field 'text' \(fields: sentence, n\)"),
    ("a.txt", [f"msg.open{n}={text}" for n, text in enumerate(GERMAN)], "messages with keys"),
    ("a.strings", [f'"Open {n}" = "{text}";' for n, text in enumerate(GERMAN)], "with keys"),
    ("a.yaml", ["de:", *(f"  key{n}: {text}" for n, text in enumerate(GERMAN))], "with keys"),
    ("a.ts", ["export default {", *(f"  '{n}': `{text}`," for n, text in enumerate(GERMAN)), "}"],
     "with keys"),
    ("a.txt", ["id;de;en", *(f"{n};Ja;Yes" for n in range(9))], "3 columns with ';'"),
    ("a.gz", [base64.b64encode((text * 2).encode()).decode() for text in GERMAN], "in base64"),
    ("a.txt", ["{\\rtf1\\ansi", "Hallo}"], "an RTF file"),
    ("a.txt", ["%PDF-1.7", "1 0 obj"], "a PDF file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lines", "message"), REFUSED)
def test_other_files_are_refused_by_name(name: str, lines: list[str], message: str) -> None:
    text_format = "tsv" if name.endswith(".tsv") else "lines"
    with pytest.raises(CorpusError, match=f"^x/{name}: .*{message}") as error:
        check_lines(Path("x") / name, lines, text_format)
    expected = "an id and a sentence" if text_format == "tsv" else "a sentence"
    assert f"instead of {expected} per line; " in str(error.value)


ACCEPTED = [
    ("a.txt", GERMAN),
    ("a.txt", CHINESE),
    ("a.csv", ["Ja.", "Nein, danke, nein.", "Gut, dann eben nicht."]),
    ("a.txt", ["Eins\tzwei.", "Drei.", "\tVier.", "Fünf\tsechs\tsieben.", "Acht."]),
    ("a.txt", ['"Ja," sagte er, "gern."', '"Nein," rief sie, "nie."', '"Gut," sagte er, "geh."']),
    ("a.txt", ['"Ja."', '"Nein."', '"Vielleicht, aber nur heute."']),
    ("a.txt", ["Komm, wir gehen.", "Nein, danke.", "Ja, bitte.", "Gut, danke."]),
    ("a.txt", ['{"a": 1}', "Dies ist ein JSON-Objekt.", "Siehe [1].", "[2]", "Ende."]),
    ("a.txt", ["[1]", "[2]", "[3]", "Quellen."]),
    ("a.txt", ["<b>Hinweis</b> Lies das.", "Das Tag <br/> bricht um.", "Kein Tag.", "<i> auf."]),
    ("a.txt", ["Die Datei beginnt so:", '<?xml version="1.0"?>', "Danach folgt mehr."]),
    ("a.txt", ["Um 12:30 --> los.", "00:01:02,000 --> 00:01:03,000", *GERMAN * 4]),
    ("a.txt", ['msgid "Open"', "So sieht ein Eintrag aus.", "Danach kommt msgstr."]),
    ("a.txt", ["a|b", "1 ||| 2", "Satz.", "Noch einer."]),
    ("a.txt", ["source", "target", "Der Text."]),
    ("a.txt", [f"Anna: {text}" for text in GERMAN]),
    ("a.txt", [f"{word}: {text}" for word, text in zip("das ist ein Buch von mir".split(), GERMAN,
                                                       strict=True)]),  # a glossary
    ("a.txt", ["x = 1", "Die Gleichung gilt.", "y = 2", "Auch diese.", "z = 3", "Und diese."]),
    ("a.tsv", ["ab\tJa", "cd\tNo"]),
    ("a.tsv", joined([(f"s{n}", text) for n, text in enumerate(GERMAN)], "\t")),
    ("a.tsv", joined([(f" s {n} ", text) for n, text in enumerate(GERMAN)], "\t")),
    ("a.tsv", joined([(f"Kapitel {n}, Satz {n + 3}.", t) for n, t in enumerate(GERMAN)], "\t")),
    ("a.tsv", joined([(f"Unser Buch {n}.txt#char=0,9", t) for n, t in enumerate(GERMAN)], "\t")),
    ("a.tsv", joined([(n, "Der Prozess von Kafka", t) for n, t in enumerate(GERMAN)], "\t")),
    ("a.tsv", joined([(f"https://a.org/{t[:3]}?a=b", t) for t in GERMAN], "\t")),
    ("a.tsv", ["1\tJa.", "kein Satz", "2\tNein."]),
    ("a.tsv", ["Ja\tYes."]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lines"), ACCEPTED)
def test_sentences_are_read(name: str, lines: list[str]) -> None:
    check_lines(Path(name), lines, "tsv" if name.endswith(".tsv") else "lines")


SENTENCE = st.text(
    st.sampled_from("abc XYZ äß 中文 \t,;:.!?\"'()[]{}<>-/|0123456789"), min_size=1, max_size=40
).filter(lambda text: text.strip())


@given(st.lists(SENTENCE, min_size=1, max_size=20), st.lists(st.sampled_from(GERMAN), min_size=1))
def test_mixed_lines_are_read(odd: list[str], plain: list[str]) -> None:
    lines = [line for pair in zip(odd, plain * len(odd), strict=False) for line in pair]
    check_lines(Path("a.txt"), [plain[0], *lines, plain[0]], "lines")


def test_doubts_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    _warn_once.cache_clear()
    numbered = [f"{number}. {text}" for number, text in enumerate(GERMAN, 7)]
    for _ in range(2):
        check_lines(Path("n.txt"), numbered, "lines")
        check_lines(Path("t.txt"), ["Ja\tYes"], "lines")
        check_lines(Path("b.txt"), [f"[{n}] {text}" for n, text in enumerate(GERMAN)], "lines")
        check_lines(
            Path("v.txt"), [f"1 Mose 1:{n} {text}" for n, text in enumerate(GERMAN)], "lines"
        )
    assert len(caplog.messages) == 4
    assert caplog.messages[2].startswith("b.txt: its lines are numbered")
    assert caplog.messages[3].startswith("v.txt: its lines begin with references")
    assert caplog.messages[0].startswith("n.txt: its lines are numbered")
    assert caplog.messages[1].startswith("t.txt: each line has a tab")
    check_lines(Path("y.txt"), [f"{year} war ein Jahr." for year in (3, 1, 4, 1, 5)], "lines")
    check_lines(Path("z.txt"), ["Um 10:30 Uhr ging er.", *GERMAN], "lines")
    assert len(caplog.messages) == 4


def test_a_given_format_is_not_questioned(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{line}\n" for line in joined(PAIRS, "\t")))
    with pytest.raises(CorpusError, match=r"sentences in column 1 of 2"):
        next(open_corpus(path))
    assert next(open_corpus(path, input_format="tsv")).own_ids == GERMAN
    assert len(next(open_corpus(path, input_format="lines"))) == len(PAIRS)
    table = tmp_path / "a.txt"
    table.write_text(path.read_text())
    with pytest.raises(CorpusError, match=r"2 columns with tabs"):
        next(open_corpus(table))
    assert len(next(open_corpus(table, input_format="lines"))) == len(PAIRS)
