"""Makes the files that the pages' commands name: small ones, from the bundled sample."""

import gzip
import io
import json
import lzma
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "eval" / "assets" / "sample"
LINES = 300  # of each corpus; the last of German are those that a page appends
MORE = 40


def read(language: str, other: str = "en") -> dict[str, str]:
    """Return the sample's sentences in a language by their ids."""
    pair = f"{other}-en" if language == "en" else f"{language}-en"
    path = SAMPLE / pair / f"{pair}.training.{language}"
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def translations() -> list[tuple[str, str]]:
    """Return the sample's German and English sentences that are translations of each other."""
    gold = (SAMPLE / "de-en" / "de-en.training.gold").read_text(encoding="utf-8").split()
    german, english = read("de"), read("en", "de")
    return [(german[x], english[y]) for x, y in zip(gold[::2], gold[1::2], strict=True)]


def make_world(folder: Path) -> None:
    """Write every file that a command of a page names into a folder."""
    pairs = translations()
    others = [list(read("de").values()), list(read("en", "de").values())]
    sides = {
        language: [pair[at] for pair in pairs] + others[at][: LINES - len(pairs)]
        for at, language in enumerate(("de", "en"))
    }
    _make_corpora(folder, sides)
    _write(folder / "corpus.de-en.tsv", ["\t".join(pair) for pair in pairs])
    _make_documents(folder, pairs)
    _make_training(folder, pairs)
    (folder / "encoders").symlink_to(ROOT / "encoders")


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _make_corpora(folder: Path, sides: dict[str, list[str]]) -> None:
    for language, lines in sides.items():
        _write(folder / f"news.{language}", lines)
        _write(folder / "corpora" / f"{language}.txt", lines)
        kept = lines[:-MORE] if language == "de" else lines
        text = "".join(f"{line}\n" for line in kept).encode()
        (folder / f"news.{language}.gz").write_bytes(gzip.compress(text))
    more = "".join(f"{line}\n" for line in sides["de"][-MORE:]).encode()
    (folder / "more.de.gz").write_bytes(gzip.compress(more))
    chinese = list(read("zh").values())
    _write(folder / "corpora" / "zh.txt", chinese)
    every = {**sides, "zh": chinese}
    records = [
        json.dumps({"language": language, "text": line}, ensure_ascii=False)
        for language, lines in every.items()
        for line in lines
    ]
    (folder / "all.jsonl.gz").write_bytes(gzip.compress("\n".join(records).encode()))
    # A language is what an option says it is: German text stands for others.
    for name, language in (
        ("sv.txt", "de"),
        ("news.sv", "de"),
        ("news.es", "de"),
        ("es.txt", "de"),
    ):
        _write(folder / name, sides[language])
    _write(folder / "en.txt", sides["en"])
    marks = [f"{row}\t{row}\t{'right' if row % 9 else 'wrong'}" for row in range(1, LINES)]
    _write(folder / "marks.tsv", marks)


def _make_documents(folder: Path, pairs: list[tuple[str, str]]) -> None:
    articles = [pairs[start : start + 20] for start in range(0, len(pairs) - 19, 20)]
    for at, language in enumerate(("de", "en")):
        texts = [[pair[at] for pair in article] for article in articles]
        _write(folder / f"book.{language}.txt", texts[0])
        _write(folder / f"novel.{language}.txt", [" ".join(text) for text in texts])
        records = [
            json.dumps({"doc": f"{language}{number}", "text": line}, ensure_ascii=False)
            for number, text in enumerate(texts)
            for line in text
        ]
        _write(folder / f"wiki.{language}.jsonl", records)
        for number, text in enumerate(texts):
            for kind, ending in (("book", "md"), ("web", "html")):
                body = " ".join(text) if ending == "md" else f"<p>{'</p><p>'.join(text)}</p>"
                _write(folder / f"{kind}.{language}" / f"{number + at * 3}.{ending}", [body])
        _write_archive(folder / f"crawl.{language}.warc.gz", texts)
    _write(folder / "articles.tsv", [f"de{number}\ten{number}" for number in range(len(articles))])


def _write_archive(path: Path, texts: list[list[str]]) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number, text in enumerate(texts):
            page = f"<html><body><article><p>{'</p><p>'.join(text)}</p></article></body></html>"
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], "HTTP/1.1")
            record = writer.create_warc_record(
                f"https://example.org/{number}",
                "response",
                payload=io.BytesIO(page.encode()),
                http_headers=headers,
            )
            writer.write_record(record)


def _make_training(folder: Path, pairs: list[tuple[str, str]]) -> None:
    lines = [f"{x} {turn}\t{y} {turn}\tmade" for turn in range(4) for x, y in pairs]
    (folder / "data").mkdir()
    (folder / "data" / "de-en.tsv.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
