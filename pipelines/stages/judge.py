"""Score the chosen pairs with the judge, and estimate their probabilities."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.arrays import Direction, FloatArray, IntArray, JudgedPairs, Neighbours, Pairs
from miner.judge.features import (
    STATISTICS_PAIRS,
    NeighbourhoodStats,
    RunStatistics,
    Texts,
    compute_features,
    mean_spacing,
    read_texts,
)
from miner.judge.model import Judge, bundled_judge
from miner.judge.prior import (
    LIKELY,
    MIN_PAIRS,
    Probabilities,
    leave_one_out_pairs,
    sample_likely_pairs,
)
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
from miner.storage.pair_tables import numbers_schema, pairs_of
from miner.threads import even_blocks, use_all_threads
from pipelines.context import RunContext
from pipelines.options import MARGIN, WORDS
from pipelines.references import ChosenPairs, PairBatch, ShardNeighbours, check_complete, find_rows
from pipelines.stages.export import EXPORT_ROWS, completed_pairs, texts_of
from pipelines.stages.select import range_pairs, write_in_order

logger = logging.getLogger(__name__)

BothTexts: TypeAlias = tuple[list[str], list[str]]

# Most pairs per batch: a minute of a worker's time. It does not depend on free memory, because a
# resumed run must cut the same batches.
BATCH = 1 << 20
BATCHES = 4  # or a multiple, so that workers end together; each has ``EXPORT_ROWS`` pairs or more


def resolve_score_method(run: RunContext) -> RunContext:
    """Return the run with the option ``score`` of each pair decided.

    "margin" stays. None becomes "words", or "margin" if ``RunContext.word_encoders`` raises
    ValueError. This error is passed on if scores by words, ``fdr`` or ``unmatched_words`` were
    requested. Other errors of ``RunContext.word_encoders`` are raised.
    """
    parts = {}
    for name in run.job.pairs:
        pair = run.for_part(name)
        parts[name] = replace(pair.options, score=_decided_score(pair, f"{name}: " if name else ""))
    return run.with_part_options(parts)


def _decided_score(run: RunContext, prefix: str) -> str:
    options = run.options
    if options.score == MARGIN:
        return MARGIN
    try:
        run.word_encoders()
    except ValueError as error:
        needs = {
            "--fdr": options.fdr is not None,
            "--unmatched-words": options.unmatched_words,
            "--score words": options.scores_by_words,
        }
        for option, needs_words in needs.items():
            if needs_words:
                languages = "" if all(run.languages) else "pass --src-lang and --tgt-lang, or "
                raise ValueError(f"{prefix}{option}: {error}; {languages}omit it") from error
        logger.info("%spairs are scored by margin only (%s); writing all of them", prefix, error)
        return MARGIN
    return WORDS


def cut_pairs(run: RunContext, chosen: ChosenPairs) -> list[PairBatch]:
    """Divide the chosen pairs into batches, and save the run statistics.

    These normalise features, and are of the best pairs by margin whose texts differ. Without pairs
    or the judge's scores, the result is one empty batch. Errors of ``word_encoders`` are raised.
    """
    if not run.options.scores_by_words:
        return [PairBatch(chosen=chosen, index=0, total=1, rows=range(0), usual=None)]
    rows = pq.read_metadata(chosen.pairs.file(PAIRS)).num_rows

    def write(draft: Draft) -> Mapping[str, Any]:
        if not rows:
            return {}
        lists = (shard.load(run.options.scopes[-1]) for shard in chosen.shards)
        is_given = _is_given(chosen)
        best = read_words(run, _best_texts(run, chosen, rows), is_given=is_given)
        spacing, makers = mean_spacing(lists), run.word_encoders()
        return asdict(RunStatistics.of(best, spacing, makers=makers, is_given=is_given))

    with use_all_threads():
        key = _scores_key(run, chosen, "usual of texts")
        usual = produce(run.folder.usual, key=key, write=write)
    count = BATCHES * max(1, -(-rows // (BATCHES * BATCH)))
    size = max(EXPORT_ROWS, -(-rows // count))
    ranges = [range(block.start, block.stop) for block in even_blocks(rows, size)] or [range(0)]
    return [
        PairBatch(chosen=chosen, index=index, total=len(ranges), rows=block, usual=usual)
        for index, block in enumerate(ranges)
    ]


def _best_texts(run: RunContext, chosen: ChosenPairs, rows: int) -> BothTexts:
    best: BothTexts = [], []
    start, stop = 0, STATISTICS_PAIRS
    while start < rows and len(best[0]) < STATISTICS_PAIRS:
        for table in completed_pairs(run, chosen, PAIRS, rows=range(start, stop)):
            texts = _texts_in(table)
            differ = ~same_texts(*texts)
            for side, new_texts in zip(best, texts, strict=True):
                side.extend(compress(new_texts, differ))
        start, stop = stop, 4 * stop
    return best


def score_pairs(run: RunContext, batch: PairBatch) -> PairBatch:
    """Score a batch of pairs by the judge, and return it with ``scores``.

    Pairs are by ascending score, their probability for now. A separate file has pairs with the same
    text on both sides. A batch without statistics is unchanged. Errors are as in ``cut_pairs``.
    """
    if batch.usual is None:
        return batch
    rows, usual, chosen = batch.rows, batch.usual.facts, batch.chosen
    is_given = _is_given(chosen)
    key = _scores_key(run, chosen, "score apart", rows=[rows.start, rows.stop], usual=usual)

    def write(draft: Draft) -> Mapping[str, Any]:
        numbers, scores = [numbers_schema().empty_table()], [np.empty(0)]
        same = [np.empty(0, dtype=np.bool_)]
        label = f"{batch.index + 1}/{batch.total}" if batch.total > 1 else ""
        with run.monitor.stage("score", len(rows), "pairs", label) as meter:
            for table in completed_pairs(run, chosen, PAIRS, rows=rows):
                numbers.append(table.select(numbers[0].schema.names))
                both_texts = _texts_in(table)
                same.append(same_texts(*both_texts))
                texts = read_words(run, both_texts, is_given=is_given, progress=meter.advance)
                # Merged sentences are in no list of neighbours.
                neighbourhoods = None if chosen.merges else NeighbourhoodStats.of(pairs_of(table))
                features = compute_features(texts, neighbourhoods, RunStatistics(**usual))
                scores.append(_judge(chosen).scores(features))
        pairs, score = pairs_of(pa.concat_tables(numbers)), np.concatenate(scores)
        columns = {field.name: getattr(pairs, field.name) for field in fields(Pairs)}
        columns |= {"score": score, "margin": pairs.score, "probability": score}  # a placeholder
        is_same = np.concatenate(same)
        for name, rows_of_file in ((SCORED, ~is_same), (SCORED_SAME, is_same)):
            with draft.file(name) as path:
                sort_pairs(path, JudgedPairs(**columns).take(rows_of_file), Direction.BOTH)
        return {"identical": int(is_same.sum())}

    folder = run.folder.scored(batch.index)
    return replace(batch, scores=produce(folder, key=key, write=write))


def _is_given(chosen: ChosenPairs) -> bool:
    return chosen.lines is not None


def _judge(chosen: ChosenPairs) -> Judge:
    return bundled_judge(is_given=_is_given(chosen))


def _scores_key(run: RunContext, chosen: ChosenPairs, stage: str, **more: object) -> str:
    return content_key(
        stage,
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        sentences=[shard.embedded.shard.digest for shard in chosen.shards],
        neighbours=[lists for shard in chosen.shards for lists in shard.content],
        maker=run.words_name,
        languages=run.languages,
        judge=_judge(chosen).name,
        numbers=READING,
        **more,
    )


def _texts_in(table: pa.Table) -> BothTexts:
    source, target = (table[f"{side}_text"].to_pylist() for side in SIDES)
    return source, target


def read_words(
    run: RunContext,
    texts: BothTexts,
    *,
    is_given: bool,
    progress: Callable[[int], object] = lambda pairs: None,
) -> Texts:
    """Call ``read_texts`` with the word encoders and languages of a run.

    Pairs are lines of a parallel corpus if ``is_given``. Errors of ``word_encoders`` are raised.
    """
    makers, languages = run.word_encoders(), run.languages
    return read_texts(makers, *texts, languages=languages, is_given=is_given, progress=progress)


def judge_pairs(run: RunContext, scored: Sequence[PairBatch]) -> ChosenPairs:
    """Compute the probability of each pair, and save all pairs, best first.

    Probabilities come from pairs whose sides differ and, in mining without alignment in order, from
    leave-one-out pairs (``miner.judge.prior``). Pairs with identical sides are in a separate file
    unless ``options.keep_identical``. Without the judge's scores, the chosen pairs are returned.
    ValueError says that a batch is missing or repeated. Errors of ``word_encoders`` are raised.
    """
    scored = sorted(scored, key=lambda part: part.index)
    batch = scored[0]
    check_complete([part.index for part in scored], batch.total, "batches of pairs")
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
        model, left_out = Probabilities(), np.empty(0)
        with use_all_threads():
            if usual:
                model, left_out = _probabilities(run, chosen, files, RunStatistics(**usual))
            draft.array(LEFT_OUT, left_out)
            outputs = {PAIRS: files, IDENTICAL: same}
            if run.options.keep_identical:
                outputs = {PAIRS: files + same, IDENTICAL: []}
            judged, identical = (
                _write_judged(run, draft, name, scored, model) for name, scored in outputs.items()
            )
        origin = {"judge": _judge(chosen).name, "words": run.words_name, "usual": usual or None}
        counts = {"judged": judged, "identical": identical}
        return {**chosen.pairs.facts, **origin, **counts, "probabilities": asdict(model)}

    judged = produce(run.folder.judged, key=key, write=write)
    return replace(chosen, pairs=judged, identical=judged)


def _write_judged(
    run: RunContext, draft: Draft, name: str, files: Sequence[SortedPairsFile], model: Probabilities
) -> int:
    def judged() -> Iterator[JudgedPairs]:
        for part in merge_in_ranges(files, size=range_pairs(run.options)):
            assert isinstance(part, JudgedPairs)
            yield replace(part, probability=model.predict(part.score))

    return write_in_order(draft, name, judged(), judged=True)


def _probabilities(
    run: RunContext, chosen: ChosenPairs, files: Sequence[SortedPairsFile], usual: RunStatistics
) -> tuple[Probabilities, FloatArray]:
    judge = _judge(chosen)
    estimate = judge.probabilities(file.records()["score"] for file in files)
    if judge.is_given:
        return estimate, np.empty(0)
    # This first estimate finds the pairs that are probably correct.
    rows = {side: [np.empty(0, np.int64)] for side in SIDES}
    probabilities = [np.empty(0)]
    for part in merge_in_ranges(files, size=range_pairs(run.options)):
        probabilities.append(estimate.predict(part.score))
        rows[SOURCE].append(part.source)
        rows[TARGET].append(part.target)
        if probabilities[-1].min(initial=1.0) < LIKELY and sum(map(len, rows[SOURCE])) >= MIN_PAIRS:
            break  # the best come first
    sample = sample_likely_pairs(np.concatenate(probabilities))
    chosen_rows = {side: np.concatenate(side_rows)[sample] for side, side_rows in rows.items()}
    left_out = _leave_one_out_scores(run, chosen, chosen_rows, usual)
    scores = (file.records()["score"] for file in files)
    return judge.probabilities(scores, left_out), left_out


def _leave_one_out_scores(
    run: RunContext, chosen: ChosenPairs, likely: Mapping[str, IntArray], usual: RunStatistics
) -> FloatArray:
    if chosen.merges is not None:
        return np.empty(0)  # monotone alignments choose beads, not the best of a list
    parts = []
    for side, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        lists = lists_of(run, chosen.of_side(side), likely[side])
        other_means = _neighbourhood_means(run, chosen.of_side(other), lists.ids)
        margins = _best_margins(chosen, other, lists.ids)
        best = leave_one_out_pairs(
            likely[other], lists, other_means, margins, margin=run.options.margin
        )
        rows = {side: likely[side][best.queries], other: best.rows}
        means = {side: best.own_mean, other: best.other_mean}
        parts.append((rows[SOURCE], rows[TARGET], best.cosine, means[SOURCE], means[TARGET]))
    source, target, *neighbourhood = map(np.concatenate, zip(*parts, strict=True))
    source_texts, target_texts = (
        texts_of([shard.embedded.shard for shard in chosen.of_side(side)], rows)
        for side, rows in ((SOURCE, source), (TARGET, target))
    )
    texts = read_words(run, (source_texts, target_texts), is_given=_is_given(chosen))
    features = compute_features(texts, NeighbourhoodStats(*neighbourhood), usual)
    scores = _judge(chosen).scores(features)
    return scores[~same_texts(source_texts, target_texts)]  # copies are not written


def lists_of(run: RunContext, shards: Sequence[ShardNeighbours], rows: IntArray) -> Neighbours:
    """Return the neighbours of rows (P,) of a side, in the order of ``rows``.

    Ids are rows of the other corpus in the search's scope, or -1. ``shards`` have all ``rows``.
    """
    parts = []
    for shard in shards:
        mask, positions = find_rows(shard.embedded.row_ids(), rows)
        parts.append((mask, shard.load(run.options.scopes[0]).take(positions)))
    neighbours = Neighbours.empty(len(rows), max(part.ids.shape[1] for _, part in parts))
    for mask, part in parts:
        neighbours.ids[mask, : part.ids.shape[1]] = part.ids
        neighbours.cosines[mask, : part.ids.shape[1]] = part.cosines
    return neighbours


def _neighbourhood_means(
    run: RunContext, shards: Sequence[ShardNeighbours], rows: IntArray
) -> FloatArray:
    means = np.zeros(rows.shape)
    for shard in shards:
        mask, positions = find_rows(shard.embedded.row_ids(), rows)
        means[mask] = shard.load(run.options.scopes[-1]).take(positions).means()
    return means


def _best_margins(chosen: ChosenPairs, side: str, rows: IntArray) -> FloatArray:
    if not rows.size:
        return np.empty(rows.shape)
    distinct, inverse = np.unique(rows, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    with pq.ParquetFile(chosen.pairs.file(PAIRS)) as file:
        for batch in file.iter_batches(columns=[f"{side}_row", "score"]):
            mask, positions = find_rows(distinct, batch[f"{side}_row"].to_numpy())
            np.maximum.at(best, positions, batch["score"].to_numpy()[mask])
    return best[inverse].reshape(rows.shape)
