"""The judge's stages: the chosen pairs scored in batches by their words and all else known of them.

What is usual in a run, which pairs are measured by, is decided before. All scores, and those of
what would be mined for sentences of likely pairs if their translations were not there
(``miner.judge.prior``), then say how likely each pair is right.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.arrays import Direction, FloatArray, IntArray, JudgedPairs, Mask, Neighbours, Pairs
from miner.judge.features import USUAL_PAIRS, Near, Texts, Usual, features, read_texts, spacing_of
from miner.judge.model import load_judge
from miner.judge.prior import LIKELY, Probabilities, best_left, likely_places
from miner.numbers import READING
from miner.same_text import same_texts
from miner.score_ranges import SortedPairsFile, merge_in_ranges, sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import (
    IDENTICAL,
    LEFT_OUT,
    PAIRS,
    SCORED,
    SCORED_SAME,
    SIDES,
    SOURCE,
    TARGET,
)
from miner.storage.pair_tables import numbers_schema, pairs_of, table_of
from miner.threads import even_blocks, use_all_threads
from pipelines.context import RunContext
from pipelines.options import MARGIN, WORDS
from pipelines.references import ChosenPairs, PairBatch, ShardNeighbours, check_complete
from pipelines.stages.export import EXPORT_ROWS, completed_pairs, texts_of
from pipelines.stages.select import range_pairs

logger = logging.getLogger(__name__)

BothTexts: TypeAlias = tuple[list[str], list[str]]

# Pairs of a batch at most, where there are many: they take a worker a minute. Not what memory
# has room for at the time, or a run that goes on would cut others.
BATCH = 1 << 20
BATCHES = 4  # or a multiple, if they have ``EXPORT_ROWS`` pairs or more: workers end together


def resolve_score_method(run: RunContext) -> RunContext:
    """Return the run with all scores decided; a ValueError if words are asked for in vain."""
    parts = {}
    for name in run.job.pairs:
        own = run.for_part(name)
        parts[name] = replace(own.options, score=_decided_score(own, f"{name}: " if name else ""))
    return run.with_part_options(parts)


def _decided_score(run: RunContext, about: str) -> str:
    options = run.options
    why = None
    if options.score != MARGIN:
        try:
            run.word_encoders()
        except ValueError as error:
            why = str(error)
    if why and (options.scores_by_words or options.fdr is not None):
        raise ValueError(f"{about}{'--fdr' if options.fdr else '--score words'}: {why}")
    if why:
        logger.info("%spairs are scored by margin only (%s); writing all of them", about, why)
    return MARGIN if why else options.score or WORDS


def cut_pairs(run: RunContext, chosen: ChosenPairs) -> list[PairBatch]:
    """Cut the chosen pairs into batches.

    Seals ``usual``: what is usual of the first pairs, the best by margin. Without
    ``options.scores_by_words`` there is one batch, which nothing is to be done to.
    """
    if not run.options.scores_by_words:
        return [PairBatch(chosen=chosen, index=0, of=1, rows=range(0), usual=None)]
    rows = pq.read_metadata(chosen.pairs.file(PAIRS)).num_rows

    def write(draft: Draft) -> Mapping[str, Any]:
        if not rows:
            return {}
        lists = (found.load(run.options.scopes[-1]) for found in chosen.shards)
        best = _read(run, *_best_texts(run, chosen, rows))
        return asdict(Usual.of(best, spacing_of(lists)))

    with use_all_threads():
        key = _scores_key(run, chosen, "usual of texts")
        usual = produce(run.folder.usual, key=key, write=write)
    count = BATCHES * max(1, -(-rows // (BATCHES * BATCH)))
    size = max(EXPORT_ROWS, -(-rows // count))
    cut = [range(part.start, part.stop) for part in even_blocks(rows, size)] or [range(0)]
    return [
        PairBatch(chosen=chosen, index=index, of=len(cut), rows=part, usual=usual)
        for index, part in enumerate(cut)
    ]


def _best_texts(run: RunContext, chosen: ChosenPairs, rows: int) -> BothTexts:
    """Return the texts of up to ``USUAL_PAIRS`` best pairs whose sides differ.

    Pairs of identical texts show nothing of translations.
    """
    best: BothTexts = [], []
    start, stop = 0, USUAL_PAIRS
    while start < rows and len(best[0]) < USUAL_PAIRS:
        for table in completed_pairs(run, chosen, PAIRS, rows=range(start, stop)):
            texts = _texts_in(table)
            differ = ~same_texts(*texts)
            for side, own in zip(best, texts, strict=True):
                side.extend(compress(own, differ))
        start, stop = stop, 4 * stop
    return best


def score_pairs(run: RunContext, batch: PairBatch) -> PairBatch:
    """Score the pairs of a batch; seals ``scored/NNNNN``, sorted by their scores.

    Those with the same text on both sides are in a file of their own.
    """
    if batch.usual is None:
        return batch
    rows, usual, chosen = batch.rows, batch.usual.facts, batch.chosen
    key = _scores_key(run, chosen, "score apart", rows=[rows.start, rows.stop], usual=usual)

    def write(draft: Draft) -> Mapping[str, Any]:
        numbers, scores = [numbers_schema().empty_table()], [np.empty(0)]
        same = [np.empty(0, dtype=np.bool_)]
        part = f"{batch.index + 1}/{batch.of}" if batch.of > 1 else ""
        with run.monitor.stage("score", len(rows), "pairs", part) as meter:
            for table in completed_pairs(run, chosen, PAIRS, rows=rows):
                numbers.append(table.select(numbers[0].schema.names))
                both = _texts_in(table)
                same.append(same_texts(*both))
                texts = _read(run, *both, meter.advance)
                # Merged sentences are in no list of neighbours.
                near = None if chosen.merges else Near.of(pairs_of(table))
                scores.append(load_judge().scores(features(texts, near, Usual(**usual))))
        pairs, score = pairs_of(pa.concat_tables(numbers)), np.concatenate(scores)
        known = {field.name: getattr(pairs, field.name) for field in fields(Pairs)}
        known |= {"score": score, "margin": pairs.score, "probability": score}  # not known yet
        is_same = np.concatenate(same)
        for name, rows_of_file in ((SCORED, ~is_same), (SCORED_SAME, is_same)):
            with draft.file(name) as path:
                sort_pairs(path, JudgedPairs(**known).take(rows_of_file), Direction.BOTH)
        return {"identical": int(is_same.sum())}

    folder = run.folder.scored(batch.index)
    return replace(batch, scores=produce(folder, key=key, write=write))


def _scores_key(run: RunContext, chosen: ChosenPairs, stage: str, **more: object) -> str:
    """Return the key of what a stage makes of pairs, their texts and neighbours by the judge."""
    return content_key(
        stage,
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        sentences=[found.embedded.shard.digest for found in chosen.shards],
        neighbours=[lists for found in chosen.shards for lists in found.content],
        maker=run.words_name,
        languages=run.languages,
        judge=load_judge().name,
        numbers=READING,
        **more,
    )


def _texts_in(table: pa.Table) -> BothTexts:
    source, target = (table[f"{side}_text"].to_pylist() for side in SIDES)
    return source, target


def _read(
    run: RunContext,
    source: list[str],
    target: list[str],
    progress: Callable[[int], object] = lambda pairs: None,
) -> Texts:
    makers, languages = run.word_encoders(), run.languages
    return read_texts(makers, source, target, languages=languages, progress=progress)


def judge_pairs(run: RunContext, scored: Sequence[PairBatch]) -> ChosenPairs:
    """Say how likely each pair is right, and sort them anew, if by words; seals ``judged``.

    Probabilities come from the pairs whose sides differ. The others, which would look like the best
    of translations, are put aside, or with ``options.keep_identical`` among all.
    """
    scored = sorted(scored, key=lambda part: part.index)
    batch = scored[0]
    check_complete([part.index for part in scored], batch.of, "batches of pairs")
    if batch.usual is None:
        return batch.chosen
    chosen, usual = batch.chosen, batch.usual.facts
    parts = [part.scores for part in scored if part.scores is not None]
    key = _scores_key(
        run,
        chosen,
        "judge",
        scores=[sorted(part.files.items()) for part in parts],
        keep=run.options.keep_identical,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        files, same = (
            [SortedPairsFile(path=part.file(name), side=Direction.BOTH) for part in parts]
            for name in (SCORED, SCORED_SAME)
        )
        found, left_out = Probabilities(), np.empty(0)
        with use_all_threads():
            if usual:
                found, left_out = _probabilities(run, chosen, files, Usual(**usual))
            draft.array(LEFT_OUT, left_out)
            outputs = {PAIRS: files, IDENTICAL: same}
            if run.options.keep_identical:
                outputs = {PAIRS: files + same, IDENTICAL: []}
            judged, identical = (
                _write_judged(run, draft, name, scored, found) for name, scored in outputs.items()
            )
        about = {"judge": load_judge().name, "words": run.words_name, "usual": usual or None}
        counts = {"judged": judged, "identical": identical}
        return {**chosen.pairs.facts, **about, **counts, "probabilities": asdict(found)}

    judged = produce(run.folder.judged, key=key, write=write)
    return replace(chosen, pairs=judged, identical=judged)


def _write_judged(
    run: RunContext, draft: Draft, name: str, files: Sequence[SortedPairsFile], found: Probabilities
) -> int:
    """Write scored pairs with their probabilities, and count them."""
    count, schema = 0, numbers_schema(judged=True)
    with draft.file(name) as path, pq.ParquetWriter(path, schema) as writer:
        for part in merge_in_ranges(files, size=range_pairs(run.options)):
            assert isinstance(part, JudgedPairs)
            writer.write_table(table_of(replace(part, probability=found.of_scores(part.score))))
            count += len(part)
    return count


def _probabilities(
    run: RunContext, chosen: ChosenPairs, files: Sequence[SortedPairsFile], usual: Usual
) -> tuple[Probabilities, FloatArray]:
    """Estimate by all scores and those of sentences without their translation; and these."""
    usual_scores = load_judge().usual
    # Which pairs are likely right is first estimated by all scores alone.
    first = Probabilities.estimated(usual_scores, (file.records()["score"] for file in files))
    rows = {side: [np.empty(0, np.int64)] for side in SIDES}
    likely = [np.empty(0)]
    for part in merge_in_ranges(files, size=range_pairs(run.options)):
        likely.append(first.of_scores(part.score))
        best = part.take(likely[-1] >= LIKELY)
        rows[SOURCE].append(best.source)
        rows[TARGET].append(best.target)
        if len(best) < len(part):
            break  # the best come first
    places = likely_places(np.concatenate(likely))
    chosen_rows = {side: np.concatenate(own)[places] for side, own in rows.items()}
    left_out = _leave_one_out_scores(run, chosen, chosen_rows, usual)
    scores = (file.records()["score"] for file in files)
    return Probabilities.estimated(usual_scores, scores, left_out), left_out


def _leave_one_out_scores(
    run: RunContext, chosen: ChosenPairs, likely: Mapping[str, IntArray], usual: Usual
) -> FloatArray:
    """Return the judge's scores of what is mined without each other for rows of likely pairs."""
    if chosen.merges is not None:
        return np.empty(0)  # monotone alignments choose beads, not the best of a list
    parts = []
    for own, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        lists = lists_of(run, chosen.of_side(own), likely[own])
        theirs = _neighbourhood_means(run, chosen.of_side(other), lists.ids)
        taken = _best_margins(chosen, other, lists.ids)
        left = best_left(likely[other], lists, theirs, taken, margin=run.options.margin)
        rows = {own: likely[own][left.queries], other: left.rows}
        means = {own: left.own_mean, other: left.other_mean}
        parts.append((rows[SOURCE], rows[TARGET], left.cosine, means[SOURCE], means[TARGET]))
    source, target, *near = map(np.concatenate, zip(*parts, strict=True))
    texts = [
        texts_of([found.embedded.shard for found in chosen.of_side(side)], rows)
        for side, rows in ((SOURCE, source), (TARGET, target))
    ]
    known = read_texts(run.word_encoders(), *texts, languages=run.languages)
    scores = load_judge().scores(features(known, Near(*near), usual))
    return scores[~same_texts(*texts)]  # copies are not written


def lists_of(run: RunContext, shards: Sequence[ShardNeighbours], rows: IntArray) -> Neighbours:
    """Return the neighbours of some rows of a side, in their order."""
    parts = []
    for shard in shards:
        wanted, places = _locate_rows(shard, rows)
        parts.append((wanted, shard.load(run.options.scopes[0]).part(places)))
    found = Neighbours.none(len(rows), max(part.ids.shape[1] for _, part in parts))
    for wanted, part in parts:
        found.ids[wanted, : part.ids.shape[1]] = part.ids
        found.cosines[wanted, : part.ids.shape[1]] = part.cosines
    return found


def _neighbourhood_means(
    run: RunContext, shards: Sequence[ShardNeighbours], rows: IntArray
) -> FloatArray:
    """Return what margins are measured against at some rows, in the shape of these; 0 at -1."""
    means = np.zeros(rows.shape)
    for shard in shards:
        wanted, places = _locate_rows(shard, rows)
        means[wanted] = shard.load(run.options.scopes[-1]).part(places).means()
    return means


def _locate_rows(shard: ShardNeighbours, rows: IntArray) -> tuple[Mask, IntArray]:
    """Return which of the rows are in a shard, and where."""
    own = shard.embedded.row_ids()
    places = np.minimum(np.searchsorted(own, rows), max(0, len(own) - 1))
    wanted = own[places] == rows if len(own) else np.zeros(rows.shape, dtype=np.bool_)
    return wanted, places[wanted]


def _best_margins(chosen: ChosenPairs, side: str, rows: IntArray) -> FloatArray:
    """Return the best margin of the mined pairs that some rows of a side have, -inf if none."""
    if not rows.size:
        return np.empty(rows.shape)
    distinct, places = np.unique(rows, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    with pq.ParquetFile(chosen.pairs.file(PAIRS)) as file:
        for batch in file.iter_batches(columns=[f"{side}_row", "score"]):
            mined = batch[f"{side}_row"].to_numpy()
            at = np.minimum(np.searchsorted(distinct, mined), len(distinct) - 1)
            hits = distinct[at] == mined
            np.maximum.at(best, at[hits], batch["score"].to_numpy()[hits])
    return best[places].reshape(rows.shape)
