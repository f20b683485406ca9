"""Runs of many languages: each is read and encoded once, and mined with others."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from miner.storage.artefacts import content_key, produce
from miner.storage.corpus.languages import (
    base_language,
    describe_languages,
    language_pairs,
    languages_of,
    split_languages,
)
from miner.storage.layout import SOURCE, WorkFolder
from miner.storage.places import Place
from pipelines.job import WHOLE, Job, Of
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.progress import counted
from pipelines.stages.reading.cut import digest_of

logger = logging.getLogger(__name__)

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class ManyOptions:
    """What a run of many languages has besides the options of all its pairs.

    ``corpora`` is a folder with a corpus for each language, or a corpus with a field ``language``.
    The pairs of XX and YY are ``XX-YY.`` and ``ending`` in the folder ``output``.
    """

    corpora: Place
    output: Place
    pairs: str = ALL
    ending: str = "tsv"


def find_corpora(
    corpora: Place, work_dir: Place, *, input_format: str = "auto"
) -> dict[str, CorpusOptions]:
    """Return the corpus of each language; those of one file are first parted in ``work_dir``.

    Raises:
        ValueError, OSError: they cannot be read, or have one name.
    """
    if not corpora.exists():
        raise FileNotFoundError(f"{corpora}: there is no such file or folder")
    if corpora.is_dir():
        logger.info("%s", describe_languages(corpora))
        found, _ = languages_of(corpora)
    else:
        found = _parted(corpora, work_dir, input_format)
        input_format = "jsonl"
    if len(found) < 2:
        raise ValueError(
            f"{corpora}: has {counted(len(found), 'languages')}; give a file or folder for each of "
            "two or more, named by its ISO 639 code, such as de.txt and en.txt"
        )
    return {
        name: CorpusOptions(path=path, language=base_language(name), input_format=input_format)
        for name, path in found.items()
    }


def _parted(corpus: Place, work_dir: Place, input_format: str) -> dict[str, Place]:
    digest = digest_of(corpus)
    key = content_key("languages", name=corpus.name, corpus=digest, input_format=input_format)
    write = partial(split_languages, corpus, input_format=input_format)
    artefact = produce(WorkFolder(work_dir).languages, key=key, write=write)
    counts = dict(artefact.facts)
    if lost := counts.pop("", 0):
        logger.warning("%s: %s without a language are left out", corpus, counted(lost, "records"))
    return {name: artefact.folder / f"{name}.jsonl" for name in counts}


def job_of_languages(
    many: ManyOptions, base: MiningOptions, corpora: Mapping[str, CorpusOptions]
) -> Job:
    """Return the job of mining pairs of languages, with the other options of ``base``.

    Raises:
        ValueError: ``many.pairs`` are no pairs of them.
    """
    pairs = {
        f"{one}-{other}": (one, other) for one, other in language_pairs([*corpora], many.pairs)
    }
    languages = list(dict.fromkeys(name for pair in pairs.values() for name in pair))

    def part(name: str, source: str, target: str) -> MiningOptions:
        return replace(
            base,
            source=corpora[source],
            target=corpora[target],
            output=many.output / f"{name}.{many.ending}",
            work_dir=WorkFolder(base.work_dir).pair(name),
            corpus_names=(source, target),
        )

    parts = {name: part(name, *names) for name, names in pairs.items()}
    # Where a language is read and encoded it is the source of a part of its own.
    alone = {name: part(name, name, name) for name in languages}
    return Job(
        parts={WHOLE: base, **alone, **parts},
        corpora=[Of(name, SOURCE) for name in languages],
        pairs=[*parts],
    )
