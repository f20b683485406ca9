"""What languages the corpora are in, whether the encoder covers them, and HTML entities in them.

It is seen once, before anything else is done, and remembered, so that shards, workers and later
runs on a corpus that has grown agree on it.
"""

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from encoder import best_encoder
from encoder.coverage import Coverage, find_coverage, language_key
from encoder.joined import (
    drop_uncovered_parts,
    dropped_part_names,
    parse_joined,
    read_joined_coverage,
    union_spec,
)
from encoder.laser.languages import LASER2, LASER3
from miner.languages import (
    MIN_SHARE,
    SAMPLED,
    known_label,
    language_shares,
    main_language,
)
from miner.storage.atomic import write_text
from miner.storage.corpus.entities import escaped_levels, example, unescape
from miner.storage.documents.split import document_files, is_documents, open_side
from miner.storage.layout import SIDES, WorkFolder
from miner.storage.places import Place
from pipelines.context import RunContext
from pipelines.options import MARGIN, MiningOptions

logger = logging.getLogger(__name__)

SAMPLED_FILES = 20
CONTRADICTED = 0.1  # share of a sample below which a corpus is not in the language it should be in


class Seen(NamedTuple):
    """Shares of languages in a sample, largest first, and levels of entities with an example."""

    shares: Mapping[str, float]
    escapes: int = 0
    entity: str = ""


def decide_languages(run: RunContext, *, remember: bool = True) -> RunContext:
    """Return the run with the languages of its corpora, and warn of what a user should know.

    Whether a corpus has HTML entities is also decided. All is written into the work folder to
    ``remember`` it; where no encoder is used, nothing is.
    """
    options = run.options
    if options.source.embeddings is not None and options.score == MARGIN:
        return run
    seen: dict[Place, Seen] = {}
    parts = {}
    for name in run.job.active_parts:
        own, new = run.for_part(name), []
        for side in SIDES:  # a language's own part has it on both
            if (path := own.options.side(side).path) not in seen:
                seen[path] = _seen(own, side, remember=remember)
                new.append(side)
                if seen[path].escapes:
                    entity = seen[path].entity
                    logger.info("%s: reads HTML entities, such as %s, as characters", path, entity)
        corpora = (own.options.source, own.options.target)
        source, target = (
            replace(corpus, shares=looked.shares, escapes=looked.escapes)
            for corpus in corpora
            for looked in [seen[corpus.path]]
        )
        parts[name] = replace(own.options, source=source, target=target)
        for line in chain.from_iterable(language_warnings(parts[name], side) for side in new):
            logger.warning("%s", line)
    return _decide_encoders(run.with_part_options(parts))


def _decide_encoders(run: RunContext) -> RunContext:
    """Return the run with those parts of a joined encoder that cover the languages of each pair.

    A corpus is encoded with all parts that any of its pairs takes.
    """
    whole = run.options.encoder
    if not parse_joined(whole):
        return run
    parts: dict[str, MiningOptions] = {}
    users = defaultdict(list)
    for name in run.job.pairs:
        options = run.for_part(name).options
        languages = [options.side(side).effective_language for side in SIDES]
        spec = drop_uncovered_parts(whole, languages)
        parts[name] = replace(options, encoder=spec)
        for corpus in options.corpus_names:
            users[corpus].append(spec)
        if left := dropped_part_names(whole, spec):
            about = f"{name}: " if name else ""
            logger.info("%sskipping %s: not for %s", about, left, "-".join(map(str, languages)))
    for name, side in run.job.corpora:
        options = parts.get(name, run.for_part(name).options)
        parts[name] = replace(
            options, encoder=union_spec(users[run.for_part(name).folder.corpus(side)])
        )
    return run.with_part_options(parts)


def resolve_best_encoder(options: MiningOptions) -> str:
    """Return what ``--encoder best`` is: what it was before in the work folder, if anything."""
    path = WorkFolder(options.work_dir).best_encoder
    return path.read_text(encoding="utf-8").strip() if path.exists() else best_encoder()


def _seen(run: RunContext, side: str, *, remember: bool) -> Seen:
    """Return the languages of a sample, from before if it is unchanged."""
    corpus, path = run.options.side(side), run.folder.seen_languages(side)
    texts = language_sample(corpus.path, corpus.input_format)
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        if _digest(texts[: known["texts"]]) == known["sha256"]:
            return Seen(**{name: known[name] for name in Seen._fields if name in known})
    levels = escaped_levels(texts)
    shares = language_shares([unescape(text, levels) for text in texts])
    seen = Seen(shares, levels, example(texts) if levels else "")
    if remember:
        looked = {"texts": len(texts), "sha256": _digest(texts), **seen._asdict()}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(looked))
    return seen


def only_language(options: MiningOptions, side: str) -> str | None:
    """Return the one language of a side's documents, None for any.

    It is any where the language is not known to the identifier, or not given and hardly in the
    sample; where both sides are in it, or rows of vectors belong to all sentences.
    """
    corpus = options.side(side)
    language = corpus.effective_language
    is_same = options.source.effective_language == options.target.effective_language
    if language is None or corpus.embeddings is not None:
        return None
    if is_same and options.source.path != options.target.path:
        return None
    is_meant = corpus.language is not None or _share(corpus.shares, language) >= CONTRADICTED
    return known_label(language) if is_meant else None


def language_sample(path: Place, input_format: str) -> list[str]:
    """Return a sample of a corpus, which shows its language.

    It is the beginning, or of many documents some sentences of every few.
    """
    try:
        several = path.is_dir() and is_documents(path, input_format)
        files = document_files(path) if several else []
    except (ValueError, OSError):
        return []
    if len(files) <= SAMPLED_FILES:
        return beginning(path, input_format)
    texts: list[str] = []
    for _, file in files[:: len(files) // SAMPLED_FILES]:
        own = beginning(file, "documents")
        texts += own[:: max(1, len(own) * SAMPLED_FILES // SAMPLED)]
    return texts


def beginning(path: Place, input_format: str, *, count: int = SAMPLED) -> list[str]:
    """Return the first sentences, at least ``count`` or all; none if they cannot be read."""
    texts: list[str] = []
    try:
        for records in open_side(path, input_format):
            texts += records.kept_texts()
            if len(texts) >= count:
                break
    except (ValueError, OSError):
        return []  # the stage that reads it says what is wrong
    return texts


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def describe_language(options: MiningOptions, side: str) -> dict[str, Any]:
    """Describe a side's language: given, decided, its share of a sample, the encoder's quality."""
    corpus = options.side(side)
    language = corpus.effective_language
    coverage = find_coverage(_languages(options), language) if language else None
    return {
        "given": corpus.language,
        "decided": language,
        "share": _share(corpus.shares, language) if language and not corpus.language else None,
        "quality": coverage.quality if coverage else None,
    }


def language_warnings(options: MiningOptions, side: str) -> list[str]:
    """Return a line for each thing about a side's language that a user should know."""
    corpus = options.side(side)
    shares, given, language = corpus.shares, corpus.language, corpus.effective_language
    if not shares or not (known := _languages(options)):
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
    if given and _share(shares, given) < CONTRADICTED:
        seen = main_language(shares)
        found = f"{shares[seen]:.0%} of a sample is {seen}" if seen else mixed
        lines.append(f"{name}: given as {given}, but {found}")
    coverage = find_coverage(known, language)
    if coverage is None:
        lines.append(
            f"{name}: {options.encoder} does not cover {language}, so few pairs will be correct"
            + _laser(language)
        )
    elif coverage.quality == "weak":
        lines.append(
            f"{name}: {options.encoder} is weak in {language}, with a search error of about "
            f"{coverage.error:.0%}" + _laser(language)
        )
    return lines


def _share(shares: Mapping[str, float], language: str) -> float:
    name = language_key(language)
    return sum(share for code, share in shares.items() if language_key(code) == name)


def _languages(options: MiningOptions) -> Mapping[str, Coverage]:
    """Return what the encoder of the run covers, as far as is known; nothing if it has none."""
    return {} if options.source.embeddings is not None else read_joined_coverage(options.encoder)


def _laser(language: str) -> str:
    name = language_key(language)
    covered = any(code.startswith(f"{name}_") for code in (*LASER2, *LASER3))
    return f"; to use LASER, which covers it, run 'adit fetch {language} -o DIR'" if covered else ""
