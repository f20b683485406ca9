"""Mine many language pairs in one run, and encode each language once."""

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
from miner.storage.corpus import filesets
from miner.storage.layout import SOURCE, WorkFolder
from miner.storage.places import Place
from miner.storage.writers import on_a_line
from miner.wording import counted
from pipelines.options import WHOLE_JOB, CorpusOptions, Element, Job, MiningOptions
from pipelines.stages.reading.cut import digest_of

logger = logging.getLogger(__name__)

BLOCK = 8192  # clusters whose texts are in memory

# A cluster's number of languages, links, score, and sentences (id and text) by language.
ClusterRow: TypeAlias = tuple[int, int, float, dict[str, tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class ManyOptions:
    """Options of a run of many languages that runs of a pair lack.

    ``corpora`` is a folder with a corpus per language, or a corpus with a field ``language``.
    ``pairs`` are such as "de-en,fr-en", or "all" for each pair once, in alphabetical order. Their
    outputs in the folder ``output`` are ``XX-YY.ENDING``, with ``ending`` without its first dot.
    """

    corpora: Place
    output: Place
    pairs: str = "all"
    ending: str = "tsv"


def find_corpora(corpora: Place, work_dir: Place, input_format: str) -> dict[str, CorpusOptions]:
    """Find the corpus of each language, as options by language code.

    Codes are as in names, or the BCP 47 tags by which a file is first split in ``work_dir``, where
    records without a known language are skipped.

    Raises:
        FileNotFoundError: ``corpora`` does not exist.
        OSError: A file or folder cannot be read or written.
        ValueError: A corpus is unreadable, a language is repeated, or there are fewer than two.
    """
    if not corpora.exists():
        raise FileNotFoundError(f"--languages {corpora}: file or folder not found; check its path")
    if corpora.is_dir():
        logger.info("%s", filesets.describe_languages(corpora))
        paths, _ = filesets.languages_of(corpora)
    else:
        paths = _split_by_language(corpora, work_dir, input_format)
        input_format = "jsonl"
    if len(paths) < 2:
        raise ValueError(
            f"{corpora}: contains {counted(len(paths), 'languages')}; pass a folder of at least "
            "two, such as de.txt and en.txt, or records with at least two in 'language'"
        )
    return {
        name: CorpusOptions(path=path, language=parse_language(name), input_format=input_format)
        for name, path in paths.items()
    }


def _split_by_language(corpus: Place, work_dir: Place, input_format: str) -> dict[str, Place]:
    digest = digest_of(corpus)
    key = content_key("languages", name=corpus.name, corpus=digest, input_format=input_format)
    write = partial(filesets.split_languages, corpus, input_format=input_format)
    artefact = produce(WorkFolder(work_dir).languages, key=key, write=write)
    counts = dict(artefact.facts)
    if rejected := counts.pop("", 0):
        line = "%s: rejected %s without a code in 'language'; add it to mine them"
        logger.warning(line, corpus, counted(rejected, "records"))
    return {name: artefact.folder / f"{name}.jsonl" for name in counts}


def job_of_languages(
    many: ManyOptions, base: MiningOptions, corpora: Mapping[str, CorpusOptions]
) -> Job:
    """Build the job that mines the language pairs of ``many``.

    ``base``, the whole, has the options that its parts share, except for corpora, outputs and work
    folders. Parts are languages of pairs, as ``de``, and pairs, as ``de-en``. Unknown or repeated
    ``many.pairs`` raise ValueError.
    """

    def part(name: str, source: str, target: str) -> MiningOptions:
        return replace(
            base,
            source=corpora[source],
            target=corpora[target],
            output=many.output / f"{name}.{many.ending}",
            work_dir=WorkFolder(base.work_dir).pair(name),
            corpus_names=(source, target),
        )

    pairs = filesets.language_pairs([*corpora], many.pairs)
    parts = {f"{a}-{b}": part(f"{a}-{b}", a, b) for a, b in pairs}
    # A language is read and encoded as the source of its own part.
    languages = {name: part(name, name, name) for pair in pairs for name in pair}
    return Job(
        parts={WHOLE_JOB: base, **languages, **parts},
        corpora=[Element(name, SOURCE) for name in languages],
        pairs=[*parts],
    )


def write_multiway(many: ManyOptions, job: Job) -> None:
    """Write the clusters of translations in all languages of a finished job.

    The file is ``multiway.tsv`` in ``many.output``, or ``multiway.jsonl`` if ``many.ending`` begins
    with jsonl. A line, after a header in TSV, has a cluster's number of languages, number of links
    (pairs), score of the last link needed for it, and at most one sentence per language. Clusters
    of most languages come first. Of merged sentences, only the first is written. ValueError says
    that languages are more than 64, or a run is unfinished or damaged, OSError that a file cannot
    be read or written.
    """
    runs = {name: open_run(job.parts[name].work_dir) for name in job.pairs}
    sides: dict[str, Side] = {}
    for name, run in runs.items():
        source, target = job.parts[name].corpus_names
        sides |= {source: run.source, target: run.target}
    languages = sorted(sides)
    sizes = [int(sides[language].searched[-1]) + 1 for language in languages]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    offsets = dict(zip(languages, starts.tolist(), strict=False))
    sources, targets, scores = _pairs(job, runs, offsets)
    clusters = _cluster_rows(cluster_pairs(sources, targets, starts), scores, sides, offsets)
    is_json = many.ending.startswith("jsonl")
    lines = _json_lines(clusters) if is_json else _table_lines(clusters, languages)
    path = many.output / f"multiway.{'jsonl' if is_json else 'tsv'}"
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def _pairs(
    job: Job, runs: Mapping[str, Run], offsets: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = []
    for name, run in runs.items():
        pairs = run.pairs
        source, target = (offsets[language] for language in job.parts[name].corpus_names)
        if (chances := run.probabilities) is None:
            chances = np.zeros(len(pairs))
        parts.append((pairs.source + source, pairs.target + target, pairs.score, chances))
    sources, targets, scores, chances = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((-scores, -chances))
    return sources[order], targets[order], scores[order]


def _cluster_rows(
    clusters: Clusters, scores: np.ndarray, sides: Mapping[str, Side], offsets: Mapping[str, int]
) -> Iterator[ClusterRow]:
    for start in range(0, len(clusters.last), BLOCK):
        block = slice(start, start + BLOCK)
        members = clusters.members[block]
        texts: list[dict[str, tuple[str, str]]] = [{} for _ in members]
        for column, (language, offset) in enumerate(offsets.items()):
            (positions,) = np.nonzero(members[:, column] >= 0)
            rows, side = members[positions, column] - offset, sides[language]
            sentences = zip(side.ids(rows), side.texts(rows), strict=True)
            for position, sentence in zip(positions.tolist(), sentences, strict=True):
                texts[position][language] = sentence
        sizes = (members >= 0).sum(axis=1).tolist()
        last = scores[clusters.last[block]].tolist()
        yield from zip(sizes, clusters.links[block].tolist(), last, texts, strict=True)


def _table_lines(clusters: Iterable[ClusterRow], languages: Sequence[str]) -> Iterator[str]:
    yield "\t".join(["languages", "links", "score", *languages])
    for size, links, score, sentences in clusters:
        texts = [on_a_line(sentences.get(name, ("", ""))[1]) for name in languages]
        yield "\t".join([str(size), str(links), repr(score), *texts])


def _json_lines(clusters: Iterable[ClusterRow]) -> Iterator[str]:
    for size, links, score, sentences in clusters:
        texts = {name: {"id": i, "text": text} for name, (i, text) in sentences.items()}
        record = {"languages": size, "links": links, "score": score, "sentences": texts}
        yield json.dumps(record)
