"""Rate pairs by their texts only, while their file is read.

The first ``FIRST_LINES`` lines decide languages and statistics, so memory use does not grow.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, islice

import numpy as np

from eval.output import signature
from miner.arrays import FloatArray, Mask
from miner.choices import LINES, TEXTS
from miner.filters import Suspects, check_filter_languages, reasons
from miner.judge.features import PAIRS_PER_THREAD, RunStatistics, Texts, compute_features
from miner.judge.model import bundled_judge
from miner.judge.prior import LIKELY
from miner.languages import language_shares
from miner.same_text import same_texts
from miner.storage.corpus.entities import escaped_levels, unescape
from miner.storage.corpus.records import CorpusError, rejection_of
from miner.storage.layout import SIDES
from miner.storage.pair_files.base import FilePair
from miner.storage.writers import on_a_line
from miner.threads import prefetch, thread_count
from pipelines.context import RunContext
from pipelines.options import MiningOptions, job_of
from pipelines.stages.judge import BothTexts, read_words
from pipelines.stages.ordered import NOT_KEPT, SAME_TEXT, RatedLine
from pipelines.stages.reading.language import language_warnings
from pipelines.stages.summary import removal_fields

logger = logging.getLogger(__name__)

FIRST_LINES = 10_000


@dataclass(frozen=True, kw_only=True)
class TextRater:
    """A rater of sentence pairs by their texts only.

    The options of ``run`` have the languages. ``statistics`` are of the first pairs. Filters use
    the length ratio and scripts of ``typical``, the first pairs that are probably correct.
    """

    run: RunContext
    statistics: RunStatistics
    typical: Suspects

    @classmethod
    def fit(cls, options: MiningOptions, first: Sequence[FilePair], *, name: object) -> "TextRater":
        """Build a rater from the first lines of a file of pairs.

        Missing languages are detected. ``name`` is for errors: CorpusError if no line is a pair,
        ValueError if a filter or words lack a language, or others of ``load_encoder``.
        """
        run = _with_languages(options, first, name)
        both_texts = _usable_texts(run, first)[0]
        both_texts = _take(both_texts, ~same_texts(*both_texts))
        texts = read_words(run, both_texts, is_given=True)
        statistics = RunStatistics.of(texts, is_given=True)
        best = _take(both_texts, _judged(texts, statistics)[1] >= LIKELY)
        typical = Suspects.of(*best, languages=run.languages)
        return cls(run=run, statistics=statistics, typical=typical)

    def rate(self, pairs: Sequence[FilePair]) -> list[RatedLine]:
        """Rate lines, in their order, with NaN for those without a usable pair."""
        both_texts, problems = _usable_texts(self.run, pairs)
        texts = read_words(self.run, both_texts, is_given=True)
        scores, probabilities = _judged(texts, self.statistics)
        why = self._reasons(both_texts, scores > self.run.options.threshold)
        rated = zip(scores.tolist(), probabilities.tolist(), why, strict=True)
        nothing = np.nan, np.nan
        return [
            RatedLine(pair, *nothing, problem) if problem else RatedLine(pair, *next(rated))
            for pair, problem in zip(pairs, problems, strict=True)
        ]

    def rate_lines(self, lines: Iterator[FilePair]) -> Iterator[RatedLine]:
        """Yield lines with their ratings, in order, reading some lines ahead."""
        size = PAIRS_PER_THREAD * thread_count()
        blocks = iter(lambda: list(islice(lines, size)), [])
        return chain.from_iterable(prefetch(self.rate, blocks))

    @property
    def signature(self) -> str:
        """The settings of the run in one line, to compare it with others."""
        options = self.run.options
        return signature(
            "pairs",
            words=self.run.words_name,
            judge=bundled_judge(is_given=True).name,
            retrieval=LINES,
            first=FIRST_LINES,
            **removal_fields(options),
            kept="all" if options.threshold == -np.inf else f"threshold-{options.threshold}",
        )

    def _reasons(self, both_texts: BothTexts, kept: Mask) -> list[str]:
        why = np.where(kept, "", NOT_KEPT).astype(object)
        if not self.run.options.keep_identical:
            why[same_texts(*both_texts)] = SAME_TEXT
        rest = why == ""
        source, target = _take(both_texts, rest)
        suspects = replace(self.typical, source=source, target=target)
        why[rest] = reasons(suspects, self.run.options.filters)
        return why.tolist()


def _with_languages(options: MiningOptions, first: Sequence[FilePair], name: object) -> RunContext:
    run = RunContext(job_of(options))
    both_texts, problems = _usable_texts(run, first)
    if not both_texts[0]:
        if not first:
            raise CorpusError(f"{name}: is empty; pass a file of pairs")
        problem = f"{first[0].place.removeprefix(f'{name} ')}: {problems[0]}"
        raise CorpusError(
            f"{name}: no pairs found in the first {len(first):,} lines ({problem}); correct them, "
            "or pass other --columns or another file"
        )
    for side, texts in zip(SIDES, both_texts, strict=True):
        levels = escaped_levels(texts)
        shares = language_shares([unescape(text, levels) for text in texts])
        corpus = replace(options.side(side), shares=shares, escapes=levels)
        run = run.with_options(**{side: corpus})
    for line in (line for side in SIDES for line in language_warnings(run.options, side)):
        logger.warning("%s", line)
    check_filter_languages(options.filters, run.languages)
    try:
        run.word_encoders()
    except ValueError as error:
        raise ValueError(f"--score {TEXTS}: {error}; use --score margin") from error
    return run


def _judged(texts: Texts, statistics: RunStatistics) -> tuple[FloatArray, FloatArray]:
    judge = bundled_judge(is_given=True)
    scores = judge.scores(compute_features(texts, None, statistics))
    return scores, judge.probabilities([scores]).predict(scores)


def _take(both_texts: BothTexts, mask: Mask) -> BothTexts:
    source, target = ([*compress(texts, mask)] for texts in both_texts)
    return source, target


def _usable_texts(run: RunContext, pairs: Sequence[FilePair]) -> tuple[BothTexts, list[str]]:
    escapes = [run.options.side(side).escapes for side in SIDES]
    sides: BothTexts = [], []
    problems = []
    for pair in pairs:
        texts = [
            unescape(on_a_line(text), levels)
            for text, levels in zip(pair.texts or ("", ""), escapes, strict=True)
        ]
        problems.append(pair.problem or next(filter(None, map(rejection_of, texts)), ""))
        if not problems[-1]:
            for side, text in zip(sides, texts, strict=True):
                side.append(text)
    return sides, problems
