"""The table of ``--multiway``: what translates each other in all languages of a finished run."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from eval.runs.side import Side
from eval.runs.store import Run, open_run
from miner.choices import MONOTONE
from miner.multiway import Clusters, cluster_pairs
from miner.storage.atomic import atomic_file
from miner.storage.places import Place
from miner.storage.writers.batches import on_a_line
from pipelines.job import Job

BLOCK = 8192  # clusters whose texts are in memory
JSONL = ".jsonl"


def multiway_output(folder: Place, ending: str) -> Place:
    """Return the file of the table: JSON lines where the pairs are, else TSV."""
    return folder / ("multiway.jsonl" if ending.startswith("jsonl") else "multiway.tsv")


def check_multiway(job: Job) -> None:
    """Refuse what has no sentences to cluster.

    Raises:
        ValueError: pairs are of merged sentences.
    """
    if job.whole.alignment == MONOTONE:
        raise ValueError("--multiway: --alignment monotone merges sentences; leave one of both out")


def write_multiway(path: Place, job: Job) -> int:
    """Write the clusters of the pairs that were written; return how many there are.

    Raises:
        ValueError: there are too many languages.
    """
    runs = {name: open_run(job.parts[name].work_dir) for name in job.pairs}
    sides: dict[str, Side] = {}
    for name, run in runs.items():
        source, target = job.parts[name].corpus_names
        sides |= {source: run.source, target: run.target}
    languages = sorted(sides)
    sizes = [int(sides[language].searched[-1]) + 1 for language in languages]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    first = dict(zip(languages, starts.tolist(), strict=False))
    one, other, scores = _pairs(job, runs, first)
    clusters = cluster_pairs(one, other, starts)
    found = _described(clusters, scores, sides, starts)
    lines = _json_lines(found) if path.suffix == JSONL else _table_lines(found, languages)
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        for line in lines:
            file.write(f"{line}\n".encode())
    return len(clusters.last)


def _pairs(
    job: Job, runs: Mapping[str, Run], first: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sentences and scores of all pairs, best first: by probability where it is known.

    Equal ones come in the order of the job's pairs, and then of their outputs.
    """
    parts = []
    for name, run in runs.items():
        options, pairs = job.parts[name], run.pairs
        likely = run.probabilities
        source, target = (first[language] for language in options.corpus_names)
        columns = (
            pairs.source + source,
            pairs.target + target,
            pairs.score,
            np.zeros(len(pairs)) if likely is None else likely,
        )
        parts.append([column[: options.top] for column in columns])
    one, other, scores, likely = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-scores, -likely))
    return one[order], other[order], scores[order]


Described = tuple[int, int, float, dict[str, tuple[str, str]]]
"""Languages, links, score, and sentences (id and text) of a cluster."""


def _described(
    clusters: Clusters, scores: np.ndarray, sides: Mapping[str, Side], starts: np.ndarray
) -> Iterator[Described]:
    for start in range(0, len(clusters.last), BLOCK):
        block = slice(start, start + BLOCK)
        members = clusters.members[block]
        found: list[dict[str, tuple[str, str]]] = [{} for _ in members]
        for column, language in enumerate(sorted(sides)):
            (places,) = np.nonzero(members[:, column] >= 0)
            rows = members[places, column] - starts[column]
            side = sides[language]
            sentences = zip(side.ids(rows), side.texts(rows), strict=True)
            for place, sentence in zip(places.tolist(), sentences, strict=True):
                found[place][language] = sentence
        sizes = (members >= 0).sum(axis=1).tolist()
        last = scores[clusters.last[block]].tolist()
        yield from zip(sizes, clusters.links[block].tolist(), last, found, strict=True)


def _table_lines(clusters: Iterable[Described], languages: Sequence[str]) -> Iterator[str]:
    yield "\t".join(["languages", "links", "score", *languages])
    for size, links, score, sentences in clusters:
        texts = [on_a_line(sentences.get(name, ("", ""))[1]) for name in languages]
        yield "\t".join([str(size), str(links), repr(score), *texts])


def _json_lines(clusters: Iterable[Described]) -> Iterator[str]:
    for size, links, score, sentences in clusters:
        named = {name: {"id": own, "text": text} for name, (own, text) in sentences.items()}
        record = {"languages": size, "links": links, "score": score, "sentences": named}
        yield json.dumps(record)
