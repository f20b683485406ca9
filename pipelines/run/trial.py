"""A trial run of the first lines of both corpora, which shows what each stage takes of a line."""

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from miner.storage.layout import SIDES
from miner.storage.vectors.embeddings import open_embeddings
from miner.threads import thread_count, using_threads
from pipelines.context import RunContext
from pipelines.job import job_of
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.progress import Meter, Monitor
from pipelines.run.fitting import SideSize
from pipelines.run.mining import run_job
from pipelines.stages.reading.language import beginning

TRIED = 2_048, 16_384  # lines a side: the first run loads what those after it find loaded
REPEATS = 2  # of the longer run: what disturbs one seldom disturbs the other
# The stages that all workers have a part in; the others' work is done by one.
SHARED = ("read", "embed", "find", "score")
SEARCHING = ("prepare", "train", "fill", "cut", "search")  # what the model of a search is of


@dataclass(frozen=True, kw_only=True)
class StageTime:
    """Seconds that a stage takes for ``line`` a side more, and ``once``, in one worker."""

    line: float
    once: float

    def of(self, lines: float) -> float:
        """Return the seconds for so many lines a side."""
        return self.once + lines * self.line


def try_stages(run: RunContext, sizes: Mapping[str, SideSize]) -> dict[str, StageTime]:
    """Time each stage but the search on the corpora's first lines, in a worker's threads.

    Nothing stays written. All is in a folder of its own, and nothing is logged.
    """
    threads = max(1, thread_count() // run.options.workers)
    texts = {
        side: beginning(corpus.path, corpus.input_format, count=TRIED[-1])
        for side in SIDES
        for corpus in [run.options.side(side)]
    }
    short, long = (min(count, *map(len, texts.values())) for count in TRIED)
    with _unlogged(), using_threads(threads):
        before, *after = (
            _seconds(run.options, {side: lines[:count] for side, lines in texts.items()}, sizes)
            for count in (short, *[long] * REPEATS)
        )
    stages = {}
    for stage in before:
        first, second = before[stage], min(seconds[stage] for seconds in after)
        line = max(0.0, second - first) / max(1, long - short)
        stages[stage] = StageTime(line=line, once=max(0.0, first - short * line))
    return {stage: time for stage, time in stages.items() if stage not in SEARCHING}


def _seconds(
    options: MiningOptions, texts: Mapping[str, list[str]], sizes: Mapping[str, SideSize]
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target = (
            _written(options.side(side), folder / side, texts[side], sizes[side]) for side in SIDES
        )
        tried = replace(
            options,
            source=source,
            target=target,
            output=folder / "pairs.tsv",
            work_dir=folder / "work",
            index="exact",
            memory=None,
            workers=1,
            runner=None,
            beam_options=(),
        )
        monitor = Monitor(Meter)
        run_job(job_of(tried), monitor)
        return monitor.seconds


def _written(corpus: CorpusOptions, path: Path, texts: list[str], size: SideSize) -> CorpusOptions:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    embeddings = None
    if corpus.embeddings is not None:
        vectors = open_embeddings(
            corpus.embeddings, rows=size.rows, dim=corpus.dim, corpus=str(corpus.path)
        )
        embeddings = path.with_suffix(".npy")
        np.save(embeddings, vectors[np.arange(len(texts))])
    return replace(corpus, path=path, input_format="lines", embeddings=embeddings, dim=None)


@contextmanager
def _unlogged() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
