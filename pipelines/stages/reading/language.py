"""Detect the languages of corpora and HTML entities, and check coverage."""

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from encoder import joined
from encoder.coverage import Coverage, find_coverage, language_key
from encoder.laser.languages import LASER2, LASER3
from miner.languages import MIN_SHARE, SAMPLED, known_label, language_shares, main_language
from miner.storage.artefacts import read_json
from miner.storage.atomic import write_text
from miner.storage.corpus.entities import escaped_levels, example, unescape
from miner.storage.documents.split import document_files, is_documents, open_side
from miner.storage.layout import SIDES
from miner.storage.places import Place
from pipelines.context import RunContext
from pipelines.options import MARGIN, MiningOptions

logger = logging.getLogger(__name__)

SAMPLED_FILES = 20
CONTRADICTED = 0.1  # share of a sample below which a corpus is not in its given language


class Sample(NamedTuple):
    """The languages and the HTML entities in a sample of a corpus.

    ``shares`` (0 to 1) are by language, largest first. Entities are to be unescaped ``escapes``
    times, usually 0. ``entity`` is an example of an entity, or "".
    """

    shares: Mapping[str, float]
    escapes: int = 0
    entity: str = ""


def decide_languages(run: RunContext, *, remember: bool = True) -> RunContext:
    """Detect the languages of a run, and drop encoder parts that lack them.

    The run is returned with ``shares``, ``escapes`` and, of joined encoders, ``encoder`` decided.
    With precomputed vectors and scores by margin, it is returned unchanged. Warnings are logged.
    Results in the work folder are used if a corpus only grew and, with ``remember``, stored. An
    unreadable corpus has no shares. A later stage reports it. Errors are of ``language_sample``.
    ValueError says that encoder settings or results are damaged, OSError that none can be stored.
    """
    options = run.options
    if options.source.embeddings is not None and options.score == MARGIN:
        return run
    samples: dict[Place, Sample] = {}
    parts = {}
    for name in dict.fromkeys([*(part for part, _ in run.job.corpora), *run.job.pairs]):
        part, new_sides = run.for_part(name), []
        corpora: dict[str, Any] = {}
        for side in SIDES:  # a language's own part has it on both
            corpus = part.options.side(side)
            if corpus.path not in samples:
                sample = samples[corpus.path] = _read_sample(part, side, remember=remember)
                new_sides.append(side)
                if sample.escapes:
                    message = "%s: reads HTML entities, such as %s, as characters"
                    logger.info(message, corpus.path, sample.entity)
            sample = samples[corpus.path]
            corpora[side] = replace(corpus, shares=sample.shares, escapes=sample.escapes)
        parts[name] = replace(part.options, **corpora)
        for line in chain.from_iterable(language_warnings(parts[name], side) for side in new_sides):
            logger.warning("%s", line)
    return _decide_encoders(run.with_part_options(parts))


def _decide_encoders(run: RunContext) -> RunContext:
    # A corpus is encoded with all parts that any of its pairs uses.
    whole = run.options.encoder
    if not joined.parse_joined(whole):
        return run
    parts: dict[str, MiningOptions] = {}
    users = defaultdict(list)
    for name in run.job.pairs:
        options = run.for_part(name).options
        languages = [options.side(side).effective_language for side in SIDES]
        spec = joined.drop_uncovered_parts(whole, languages)
        parts[name] = replace(options, encoder=spec)
        for corpus in options.corpus_names:
            users[corpus].append(spec)
        if skipped := joined.dropped_part_names(whole, spec):
            prefix = f"{name}: " if name else ""
            pair = "-".join(language or "unknown" for language in languages)
            logger.info("%sskipping %s, which does not cover %s", prefix, skipped, pair)
    for name, side in run.job.corpora:
        part = run.for_part(name)
        spec = joined.union_spec(users[part.folder.corpus(side)])
        parts[name] = replace(parts.get(name, part.options), encoder=spec)
    return run.with_part_options(parts)


def _read_sample(run: RunContext, side: str, *, remember: bool) -> Sample:
    corpus, path = run.options.side(side), run.folder.seen_languages(side)
    texts = language_sample(corpus.path, corpus.input_format)
    if path.exists():
        stored = read_json(path)
        if _digest(texts[: stored["texts"]]) == stored["sha256"]:
            return Sample(**{name: stored[name] for name in Sample._fields if name in stored})
    levels = escaped_levels(texts)
    shares = language_shares([unescape(text, levels) for text in texts])
    sample = Sample(shares, levels, example(texts) if levels else "")
    if remember:
        values = {"texts": len(texts), "sha256": _digest(texts), **sample._asdict()}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(values))
    return sample


def only_language(options: MiningOptions, side: str) -> str | None:
    """Return the language to which a side's documents are restricted, or None.

    It is the language identifier's label. The result is None, so that all sentences stay, if the
    language is unknown to the run or the identifier, or the side has precomputed vectors. It is
    also None if both sides have the same language and different paths.
    """
    corpus = options.side(side)
    language = corpus.effective_language
    is_same = options.source.effective_language == options.target.effective_language
    is_ambiguous = is_same and options.source.path != options.target.path
    if language is None or corpus.embeddings is not None or is_ambiguous:
        return None
    return known_label(language)


def language_sample(path: Place, input_format: str) -> list[str]:
    """Return a sample of a corpus's sentences, empty if it is unreadable.

    It is the beginning or, of a folder of over 20 files of documents, sentences of many files. If
    documents need the extra ``documents``, and it is not installed, ModuleNotFoundError is raised.
    """
    try:
        is_folder = path.is_dir() and is_documents(path, input_format)
        files = document_files(path) if is_folder else []
    except (ValueError, OSError):
        return []
    if len(files) <= SAMPLED_FILES:
        return read_beginning(path, input_format)
    texts: list[str] = []
    for _, file in files[:: len(files) // SAMPLED_FILES]:
        sentences = read_beginning(file, "documents")
        texts += sentences[:: max(1, len(sentences) * SAMPLED_FILES // SAMPLED)]
    return texts


def read_beginning(path: Place, input_format: str, *, count: int = SAMPLED) -> list[str]:
    """Return the first ``count`` sentences or more, or all if fewer.

    An unreadable corpus gives [], but a missing extra for documents raises ModuleNotFoundError.
    """
    texts: list[str] = []
    try:
        for records in open_side(path, input_format):
            texts += records.kept_texts()
            if len(texts) >= count:
                break
    except (ValueError, OSError):
        return []  # the stage that reads it reports the error
    return texts


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def describe_language(options: MiningOptions, side: str) -> dict[str, Any]:
    """Describe a side's language, and the encoder's quality in it.

    Keys are ``given``, ``decided``, ``share`` (0 to 1, of a language that was not given) and
    ``quality`` ("good", "fair" or "weak"). None means unknown. Errors are of ``read_coverage``.
    """
    corpus = options.side(side)
    language = corpus.effective_language
    coverage = find_coverage(_coverage(options), language) if language else None
    return {
        "given": corpus.language,
        "decided": language,
        "share": _share(corpus.shares, language) if language and not corpus.language else None,
        "quality": coverage.quality if coverage else None,
    }


def language_warnings(options: MiningOptions, side: str) -> list[str]:
    """Return warnings about a side's language, a line each, maybe none.

    No ``shares``, no coverage, or precomputed vectors give none. Errors are of ``read_coverage``.
    """
    corpus = options.side(side)
    shares, tag, language = corpus.shares, corpus.language, corpus.effective_language
    if not shares or not (coverages := _coverage(options)):
        return []
    name = options.corpus_names[SIDES.index(side)]
    code, share = next(iter(shares.items()))
    mixed = f"no language has {MIN_SHARE:.0%} of a sample; the largest is {code}, {share:.0%}"
    if language is None:
        return [
            f"{name}: language not recognised ({mixed}); if {options.encoder} does not cover it, "
            "few pairs will be correct (run 'adit encoders' to list its languages)"
        ]
    lines = []
    if tag and _share(shares, tag) < CONTRADICTED:
        main = main_language(shares)
        detected = f"{shares[main]:.0%} of a sample is {main}" if main else mixed
        lines.append(f"{name}: given as {tag}, but {detected}; check the language or the file")
    coverage, problem = find_coverage(coverages, language), ""
    if coverage is None:
        problem = f"does not cover {language}, so few pairs will be correct"
    elif coverage.quality == "weak":
        problem = f"is weak in {language}, with a search error of about {coverage.error:.0%}"
    if problem:
        lines.append(f"{name}: {options.encoder} {problem}{_laser_hint(language)}")
    return lines


def _share(shares: Mapping[str, float], language: str) -> float:
    name = language_key(language)
    return sum(share for code, share in shares.items() if language_key(code) == name)


def _coverage(options: MiningOptions) -> Mapping[str, Coverage]:
    if options.source.embeddings is not None:
        return {}
    return joined.read_joined_coverage(options.encoder)


def _laser_hint(language: str) -> str:
    name = language_key(language)
    covered = any(code.startswith(f"{name}_") for code in (*LASER2, *LASER3))
    return f"; to use LASER, which covers it, run 'adit fetch {language} -o DIR'" if covered else ""
