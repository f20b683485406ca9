"""Runs of many languages: each is read and encoded once, and mined with others."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from eval.runs.side import Side
from eval.runs.store import Run, open_run
from miner.language_codes import parse_language
from miner.multiway import Clusters, cluster_pairs
from miner.storage.artefacts import content_key, produce
from miner.storage.atomic import atomic_file
from miner.storage.corpus.filesets import (
    describe_languages,
    language_pairs,
    languages_of,
    split_languages,
)
from miner.storage.layout import SOURCE, WorkFolder
from miner.storage.places import Place
from miner.storage.writers.formats import on_a_line
from pipelines.options import WHOLE_JOB, CorpusOptions, Element, Job, MiningOptions
from pipelines.progress import counted
from pipelines.stages.reading.cut import digest_of

logger = logging.getLogger(__name__)

BLOCK = 8192  # clusters whose texts are in memory

# Languages, links, score, and sentences (id and text) of a cluster.
Described: TypeAlias = tuple[int, int, float, dict[str, tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class ManyOptions:
    """What a run of many languages has besides the options of all its pairs.

    ``corpora`` is a folder with a corpus for each language, or a corpus with a field ``language``.
    The pairs of XX and YY are ``XX-YY.`` and ``ending`` in the folder ``output``.
    """

    corpora: Place
    output: Place
    pairs: str = "all"
    ending: str = "tsv"


def find_corpora(corpora: Place, work_dir: Place, input_format: str) -> dict[str, CorpusOptions]:
    """Return the corpus of each language; those of one file are first parted in ``work_dir``.

    Raises:
        ValueError, OSError: they cannot be read, or have one name.
    """
    if not corpora.exists():
        raise FileNotFoundError(f"{corpora}: file or folder not found")
    if corpora.is_dir():
        logger.info("%s", describe_languages(corpora))
        found, _ = languages_of(corpora)
    else:
        found = _parted(corpora, work_dir, input_format)
        input_format = "jsonl"
    if len(found) < 2:
        raise ValueError(
            f"{corpora}: contains {counted(len(found), 'languages')}; add a file or folder for "
            "at least two, named by ISO 639 codes, such as de.txt and en.txt"
        )
    return {
        name: CorpusOptions(path=path, language=parse_language(name), input_format=input_format)
        for name, path in found.items()
    }


def _parted(corpus: Place, work_dir: Place, input_format: str) -> dict[str, Place]:
    digest = digest_of(corpus)
    key = content_key("languages", name=corpus.name, corpus=digest, input_format=input_format)
    write = partial(split_languages, corpus, input_format=input_format)
    artefact = produce(WorkFolder(work_dir).languages, key=key, write=write)
    counts = dict(artefact.facts)
    if lost := counts.pop("", 0):
        logger.warning("%s: %s without a language rejected", corpus, counted(lost, "records"))
    return {name: artefact.folder / f"{name}.jsonl" for name in counts}


def job_of_languages(
    many: ManyOptions, base: MiningOptions, corpora: Mapping[str, CorpusOptions]
) -> Job:
    """Return the job of mining ``many.pairs`` of languages, with the other options of ``base``."""

    def part(name: str, source: str, target: str) -> MiningOptions:
        return replace(
            base,
            source=corpora[source],
            target=corpora[target],
            output=many.output / f"{name}.{many.ending}",
            work_dir=WorkFolder(base.work_dir).pair(name),
            corpus_names=(source, target),
        )

    pairs = language_pairs([*corpora], many.pairs)
    parts = {f"{one}-{other}": part(f"{one}-{other}", one, other) for one, other in pairs}
    # Where a language is read and encoded it is the source of a part of its own.
    alone = {name: part(name, name, name) for pair in pairs for name in pair}
    return Job(
        parts={WHOLE_JOB: base, **alone, **parts},
        corpora=[Element(name, SOURCE) for name in alone],
        pairs=[*parts],
    )


def write_multiway(many: ManyOptions, job: Job) -> None:
    """Write what translates each other in all languages: ``multiway.jsonl`` or ``multiway.tsv``.

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
    found = _described(cluster_pairs(one, other, starts), scores, sides, first)
    is_json = many.ending.startswith("jsonl")
    lines = _json_lines(found) if is_json else _table_lines(found, languages)
    path = many.output / f"multiway.{'jsonl' if is_json else 'tsv'}"
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def _pairs(
    job: Job, runs: Mapping[str, Run], first: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sentences and scores of all pairs, best first: by probability if it is known."""
    parts = []
    for name, run in runs.items():
        pairs = run.pairs
        source, target = (first[language] for language in job.parts[name].corpus_names)
        if (likely := run.probabilities) is None:
            likely = np.zeros(len(pairs))
        parts.append((pairs.source + source, pairs.target + target, pairs.score, likely))
    one, other, scores, likely = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-scores, -likely))
    return one[order], other[order], scores[order]


def _described(
    clusters: Clusters, scores: np.ndarray, sides: Mapping[str, Side], first: Mapping[str, int]
) -> Iterator[Described]:
    for start in range(0, len(clusters.last), BLOCK):
        block = slice(start, start + BLOCK)
        members = clusters.members[block]
        found: list[dict[str, tuple[str, str]]] = [{} for _ in members]
        for column, (language, before) in enumerate(first.items()):
            (places,) = np.nonzero(members[:, column] >= 0)
            rows, side = members[places, column] - before, sides[language]
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
