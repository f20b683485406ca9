"""Read a million documents, some of them broken, with kills.

    python benchmarks/documents.py make DIR [--documents 1000000] [--files 8]
    python benchmarks/documents.py read DIR/warc [--kills 3]

``make`` writes web pages in DIR/warc/ (.warc.gz) and articles in DIR/cirrus/ (.json.gz), made of
random words. Of every thousand one has no text and one is broken. ``read`` reads a folder as the
source side of a run, which it kills at random moments first, and prints the seconds, the peak of
memory, and what became of the records.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

WORDS = [
    "".join(random.Random(seed).choices("abdeghiklmnoprstuvz", k=2 + seed % 9))
    for seed in range(5000)
]


def paragraphs(seed: int) -> Iterator[str]:
    """Yield two to four paragraphs of two to five sentences."""
    draw = random.Random(seed)
    for _ in range(draw.randint(2, 4)):
        sentences = (
            " ".join(draw.choices(WORDS, k=draw.randint(6, 20))).capitalize() + "."
            for _ in range(draw.randint(2, 5))
        )
        yield " ".join(sentences)


def page(seed: int) -> bytes:
    """Return a WARC record of a web page."""
    if seed % 1000 == 7:
        body = "<html><body><script>1</script></body></html>"
    else:
        text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs(seed))
        menu = "<nav><ul><li><a href='/'>Home</a></li><li><a href='/more'>More</a></li></ul></nav>"
        head = f"<html><head><title>{seed}</title></head>"
        body = f"{head}<body>{menu}<article>{text}</article></body></html>"
    content = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{body}"
    if seed % 1000 == 8:
        content = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<"
    return (
        "WARC/1.0\r\nWARC-Type: response\r\n"
        f"WARC-Target-URI: https://example.org/{seed}\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(content.encode())}\r\n\r\n{content}\r\n\r\n"
    ).encode()


def article(seed: int) -> bytes:
    """Return two lines of a Cirrus dump."""
    if seed % 1000 == 8:
        return b'{"index": {}}\n{"title": \n'
    text = "" if seed % 1000 == 7 else " ".join(paragraphs(seed))
    record = {"title": f"Article {seed}", "namespace": 0, "text": text}
    return f'{{"index": {{"_id": "{seed}"}}}}\n{json.dumps(record)}\n'.encode()


def make(folder: Path, documents: int, files: int) -> None:
    for kind, record, suffix in (("warc", page, "warc.gz"), ("cirrus", article, "json.gz")):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(files):
            path = folder / kind / f"part-{number:03d}.{suffix}"
            seeds = range(number * documents // files, (number + 1) * documents // files)
            with path.open("wb") as raw:
                for seed in seeds:  # a member for each record, as archives have
                    raw.write(gzip.compress(record(seed), compresslevel=1, mtime=0))


def run(command: list[str], kill_after: float | None = None) -> float:
    """Run a command, or kill it after some seconds, and return its duration."""
    start = time.perf_counter()
    process = subprocess.Popen(command, start_new_session=True)
    try:
        process.wait(kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    else:
        assert process.returncode == 0
    return time.perf_counter() - start


def read(folder: Path, kills: int, between: float) -> None:
    work = folder.parent / f"{folder.name}-work"
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, __file__, "once", str(folder)]
    draw = random.Random(0)
    for _ in range(kills):
        run(command, kill_after=draw.uniform(between / 2, between))
        parts = len(list(work.glob("split/source/*/*/seal.json")))
        print(f"killed; {parts} parts sealed", flush=True)
    print(f"{run(command):.0f} s in the last run")


def read_once(folder: Path) -> None:
    """Read the documents of a folder that were not read, and print counts."""
    from pipelines.context import RunContext
    from pipelines.options import CorpusOptions, MiningOptions, job_of
    from pipelines.stages.reading.read import read_side

    corpus = CorpusOptions(path=folder, input_format="documents")
    work = folder.parent / f"{folder.name}-work"
    options = MiningOptions(source=corpus, target=corpus, output=work / "out", work_dir=work)
    facts = read_side(RunContext(job_of(options)), "source")[0].corpus.facts
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rejected = facts["rejected"]
    accounted = facts["unique"] + facts["duplicates"] + sum(rejected.values())
    print(f"read {facts['read']:,}: unique, repeated and rejected {accounted:,} ({rejected})")
    print(f"peak of memory {peak:,.0f} MiB")
    assert facts["read"] == accounted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("make", "read", "once"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--between", type=float, default=60.0, help="most seconds before a kill")
    args = parser.parse_args()
    if args.what == "make":
        make(args.folder, args.documents, args.files)
    elif args.what == "read":
        read(args.folder, args.kills, args.between)
    else:
        read_once(args.folder)


if __name__ == "__main__":
    main()
