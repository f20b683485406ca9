"""Reading parallel text of every form."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from encoder.training.reading import ParallelText, find_parallel_text, read_parallel_text
from tests.encoder.training.language import write_pairs

NONE: frozenset[str] = frozenset()


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(lzma.compress(text.encode() if isinstance(text, str) else text))
    return path


def test_read(tmp_path: Path) -> None:
    path = write(tmp_path / "xx-yy.tsv.xz", "a b\tc\tone\n \u2028é\t\ttwo\nd\te\rf\tone")
    text = read_parallel_text([path], exclude=NONE)
    assert text == ParallelText(
        name="xx-yy",
        source=["a b", " \u2028é", "d"],
        target=["c", "", "e\rf"],
        corpus=["one", "two", "one"],
    )
    assert len(text) == 3
    text = read_parallel_text([path], exclude=frozenset({"one", "three"}))
    assert (text.source, text.excluded) == ([" \u2028é"], {"one"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\tb\tc\na\tb\n", " line 2: the number of columns is 2; expected"),
        (
            "a\tb\na\tb\tc\n",
            " line 2: the number of columns is 3; expected source, target and corpus, or source",
        ),
        ("a\tb\tc\td\n", " line 1: the number of columns is 4"),
        ("a\tb\tc\na\n", " line 2: has 1 column, expected at least 2"),
        ("a\tb\tc\n\n", " line 2: blank"),
        ("", ": no sentence pairs; add some, or move the file"),
        ("a\tb\tbad\n", ": --exclude bad,worse leaves no pair; exclude"),
        (b"a\tb\tc\n\xff\tb\tc\n", " line 2: undecodable"),
    ],
)
def test_read_refuses(tmp_path: Path, text: str | bytes, reason: str) -> None:
    path = write(tmp_path / "xx-yy.tsv.xz", text)
    exclude = frozenset({"bad", "worse"}) if "bad" in str(text) else NONE
    with pytest.raises(ValueError) as caught:
        read_parallel_text([path], exclude=exclude)
    assert str(caught.value).startswith(f"{path}{reason}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kept", [0, 4, 60, -20, -1])
def test_read_refuses_what_is_cut_short(tmp_path: Path, kept: int) -> None:
    path = write_pairs(tmp_path / "xx-yy.tsv.xz", [(f"s{i}", f"t{i}") for i in range(200)])
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"is not a whole \.xz file"):
        read_parallel_text([path], exclude=NONE)


def test_read_refuses_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "xx-yy.tsv.xz"
    path.write_text("a\tb\tc\n" * 50)
    with pytest.raises(ValueError, match=r"is not a whole \.xz file"):
        read_parallel_text([path], exclude=NONE)


def write_moses(folder: Path, source: str, target: str, name: str = "News.de-en") -> Path:
    (folder / f"{name}.en").write_bytes(target.encode())
    path = folder / f"{name}.de"
    path.write_bytes(source.encode())
    return path


def write_parquet(path: Path, columns: dict[str, list[str | None]]) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def test_a_moses_pair_is_two_files_line_by_line(tmp_path: Path) -> None:
    path = write_moses(tmp_path, "a\r\n\u2028b\n\nc", "A\tA\nB\n\nC\n")
    assert read_parallel_text([path], exclude=NONE) == ParallelText(
        name="de-en",
        source=["a", "\u2028b", "", "c"],
        target=["A\tA", "B", "", "C"],
        corpus=["News"] * 4,
    )


def test_parquet_with_and_without_corpora(tmp_path: Path) -> None:
    plain = write_parquet(tmp_path / "xx-yy.parquet", {"target": ["A"], "source": ["a"]})
    named = write_parquet(
        tmp_path / "b.xx-yy.parquet", {"source": ["b"], "corpus": ["one"], "target": ["B"]}
    )
    mined = write_parquet(
        tmp_path / "c.xx-yy.parquet",
        {"score": [1.5], "source_text": ["c"], "target_text": ["C"]},  # type: ignore[list-item]
    )
    assert read_parallel_text([plain, named, mined], exclude=NONE) == ParallelText(
        name="xx-yy", source=["a", "b", "c"], target=["A", "B", "C"], corpus=["xx-yy", "one", "c"]
    )


def test_other_formats_and_compressions(tmp_path: Path) -> None:
    """Files that adit rate reads are training text, too, under the name of their languages."""
    pairs = [("Ein Satz.", "A sentence."), ("Noch einer.", "Another one.")]
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{t}</seg></tuv><tuv xml:lang="de"><seg>{s}</seg></tuv></tu>'
        for s, t in pairs
    )
    contents = {
        "a.de-en.tmx": f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>',
        "b.de-en.jsonl": "".join(
            json.dumps({"translation": {"en": t, "de": s}}) + "\n" for s, t in pairs
        ),
        "c.de-en.tsv": "".join(f"{s}\t{t}\n" for s, t in pairs),
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    for side, language in enumerate(("de", "en")):
        lines = "\n".join(pair[side] for pair in pairs)
        (tmp_path / f"d.de-en.{language}.gz").write_bytes(gzip.compress(lines.encode()))
    text = read_parallel_text(find_parallel_text(tmp_path)["de-en"], exclude=NONE)
    assert list(zip(text.source, text.target, strict=True)) == pairs * 4
    assert text.corpus == ["a", "a", "b", "b", "c", "c", "d", "d"]


def test_the_files_of_a_language_pair_are_one(tmp_path: Path) -> None:
    moses = write_moses(tmp_path, "a\nb", "A\nB", "de-en")
    tsv = write_pairs(tmp_path / "de-en.tsv.xz", [("c", "C")], corpus="one")
    table = write_parquet(tmp_path / "x.y.aa-en.parquet", {"source": ["d"], "target": ["D"]})
    for odd in ("README", "notes.txt", "de-en.txt", "config.json", "a.de-en.fr", "de"):
        (tmp_path / odd).write_text("no text")
    found = find_parallel_text(tmp_path)
    assert found == {"aa-en": (table,), "de-en": (moses, tsv)}
    assert list(found) == ["aa-en", "de-en"]
    text = read_parallel_text(found["de-en"], exclude=NONE)
    assert (text.source, text.corpus) == (["a", "b", "c"], ["de-en", "de-en", "one"])
    assert read_parallel_text(found["aa-en"], exclude=NONE).corpus == ["x.y"]


@pytest.mark.parametrize(
    "name", ["notes.tsv.xz", "pairs.parquet", "a-b.c-d-e.parquet", "-en.tsv.xz"]
)
def test_names_without_a_language_pair(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=rf"/{name}: name lacks a language pair; rename it to XX-"):
        find_parallel_text(tmp_path)


def test_the_digest_is_that_of_all_pairs(tmp_path: Path) -> None:
    def digest(*pairs: tuple[str, str], corpus: str = "c") -> str:
        path = write_pairs(tmp_path / "xx-yy.tsv.xz", list(pairs), corpus=corpus)
        return read_parallel_text([path], exclude=NONE).digest()

    pairs = [("a", "A"), ("b", "B")]
    others = [
        digest(*pairs[::-1]),
        digest(pairs[0]),
        digest(*pairs, corpus="d"),
        digest(("a", "B")),
    ]
    assert digest(*pairs) == digest(*pairs)
    assert len({digest(*pairs), *others}) == 5


def damaged_parquet(folder: Path) -> Path:
    path = folder / "xx-yy.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda folder: write_moses(folder, "a\nb\n", "A\n"),
            "News.de-en.en: ends after line 1, but ",
        ),
        (lambda folder: folder / "Gone.de-en.de", "Gone.de-en.de: file not found"),
        (damaged_parquet, "xx-yy.parquet: is not a whole Parquet file ("),
        (
            lambda folder: write_parquet(folder / "xx-yy.parquet", {"a": ["b"], "source": ["c"]}),
            "xx-yy.parquet: no fields of source and target among a, source; name both",
        ),
        (
            lambda folder: write_parquet(
                folder / "xx-yy.parquet", {"target": ["b", None], "source": ["c", "d"]}
            ),
            "xx-yy.parquet record 2: has no texts",
        ),
        (
            lambda folder: write_parquet(
                folder / "xx-yy.parquet", {"target": [1, 2], "source": ["c", "d"]}
            ),
            "xx-yy.parquet record 1: has no texts",
        ),
    ],
)
def test_what_is_not_of_its_form(tmp_path: Path, make: Callable[[Path], Path], reason: str) -> None:
    path = make(tmp_path)
    with pytest.raises(ValueError) as caught:
        read_parallel_text([path], exclude=NONE)
    assert str(caught.value).startswith(f"{tmp_path}/{reason}")
    assert "\n" not in str(caught.value)


def test_moses_files_that_are_not_utf_8(tmp_path: Path) -> None:
    path = write_moses(tmp_path, "a", "A")
    path.write_bytes(b"a\xff")
    with pytest.raises(ValueError, match=r"News\.de-en\.de line 1: undecodable"):
        read_parallel_text([path], exclude=NONE)
