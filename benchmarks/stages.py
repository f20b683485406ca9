"""Measure the CPU time of reading and of the judge.

    OMP_NUM_THREADS=1 python benchmarks/stages.py news.de news.en

reads the first file as ``adit mine`` does, and judges each line with the same line of the other
file, as mined pairs are; the best of some repeats of each is printed. Words
are met before they are compared, as in a run that has encoded the sentences.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge.features import (
    PAIRS_PER_THREAD,
    RunStatistics,
    compute_features,
    match_words,
    read_texts,
)
from miner.judge.model import load_judge
from miner.numbers import count_numbers
from pipelines.context import RunContext
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.stages.reading.read import read_side

REPEATS = 5


def least_seconds(work: Callable[[], object]) -> float:
    """Return the lowest CPU time of ``work``."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def read(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = CorpusOptions(path=path)
        places = {"output": Path(folder) / "o.tsv", "work_dir": Path(folder) / "work"}
        options = MiningOptions(source=corpus, target=corpus, **places)
        read_side(RunContext(job_of(options)), "source")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    sides = [path.read_text("utf-8").split("\n")[:-1] for path in (args.source, args.target)]
    pairs = min(map(len, sides))
    seconds = least_seconds(lambda: read(args.source))
    print(f"reading: {len(sides[0]) / seconds:,.0f} lines a second")
    texts = [side[:pairs] for side in sides]
    encoders = word_encoders(load_encoder(), (None, None))
    parts = slice(0, PAIRS_PER_THREAD)
    words = [own.words(side[parts]) for own, side in zip(encoders, texts, strict=True)]
    seen = read_texts(encoders, *texts)
    known = compute_features(seen, None, RunStatistics.of(seen))
    load_judge().scores(known[:1])
    for name, count, work in (
        ("reading texts", pairs, lambda: read_texts(encoders, *texts)),
        ("of that, matching", min(pairs, PAIRS_PER_THREAD), lambda: match_words(*words)),
        ("of that, numbers", pairs, lambda: count_numbers(*texts)),
        ("features of these", pairs, lambda: compute_features(seen, None, RunStatistics.of(seen))),
        ("trees", pairs, lambda: load_judge().scores(known)),
    ):
        print(f"{name}: {least_seconds(work) / max(1, count) * 1e6:.1f} us a pair")
    return 0


if __name__ == "__main__":
    sys.exit(main())
