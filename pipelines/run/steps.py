"""The mining graph, the steps from corpora to an output for each pair.

    corpora [-> split documents] -> read -> encode -> share [-> pair documents] -> train, fill
            indexes -> join nearest cells -> all tiles -> search -> merge -> select (or align
            documents, or rate lines) -> score -> judge -> filter -> drop near-copies -> keep
            -> summary -> export

Elements are small references to sealed artefacts. ``execute`` interprets the steps in this process,
``pipelines.run.beam`` on Beam's engines. If one loses elements, a later stage raises ValueError.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from miner.choices import AS_INPUT, LINES
from miner.storage.documents.split import is_documents
from pipelines.context import RunContext
from pipelines.memory import release_memory
from pipelines.options import WHOLE_JOB, Element, Job, MiningOptions
from pipelines.references import EmbeddedShard, Shard, element_name
from pipelines.run.state import Ledger
from pipelines.stages.encode import embed_shard, share_corpora
from pipelines.stages.export import export_pairs
from pipelines.stages.given import rate_lines
from pipelines.stages.judge import cut_pairs, judge_pairs, score_pairs
from pipelines.stages.keep import drop_near_copies, filter_pairs, keep_pairs
from pipelines.stages.monotone import align_documents, cut_documents, select_beads
from pipelines.stages.ordered import order_lines
from pipelines.stages.pair import pair_documents, sum_documents
from pipelines.stages.reading.read import read_side
from pipelines.stages.reading.split import group_files, join_side, split_group
from pipelines.stages.searching.index import fill_index, prepare_sides, train_side
from pipelines.stages.searching.join import cut_nearest, join_nearest
from pipelines.stages.searching.search import cut_tiles, find_neighbours, search_tile
from pipelines.stages.select import select_pairs
from pipelines.stages.summary import write_summary


@dataclass(frozen=True, kw_only=True)
class MapStep:
    """A step that calls a stage's function on each reference.

    Attributes:
        stage: Called as ``stage(run, reference)``; returns a reference.
        many: Whether ``stage`` returns a list, whose items are elements of their own.
        deals: Whether these items are ``Element`` objects, maybe in other parts of the job.
        encodes: Whether ``stage`` encodes text, which an accelerator speeds up.
        account: Returns counts of sentences from the list of a call's results, for Beam's metrics.
    """

    stage: Callable[[RunContext, Any], Any]
    many: bool = False
    deals: bool = False
    encodes: bool = False
    account: Callable[[Any], Mapping[str, int]] = lambda made: {}

    @property
    def name(self) -> str:
        """The name of the stage's function."""
        return self.stage.__name__


@dataclass(frozen=True, kw_only=True)
class GatherStep:
    """A step that collects references in unordered lists, by part and key.

    Attributes:
        whole: Whether all parts count as the whole job, whose elements the lists become.
        key: Returns the key of a reference.
        as_many_as: A stage that makes as many references as there will be lists, or None.
        each_corpus: Whether ``key`` gives a list per corpus, not per pair; only used in counts.
    """

    name: str
    whole: bool = False
    key: Callable[[Any], str] = lambda reference: ""
    as_many_as: Callable[..., object] | None = None
    each_corpus: bool = False


@dataclass(frozen=True, kw_only=True)
class ReshuffleStep:
    """A step that distributes references evenly among workers."""

    name: str


Step: TypeAlias = MapStep | GatherStep | ReshuffleStep


def _account_of_reading(shards: Sequence[Shard]) -> Mapping[str, int]:
    facts = shards[0].corpus.facts
    kept = {name: facts[name] for name in ("read", "unique", "duplicates")}
    return kept | {f"rejected: {reason}": count for reason, count in facts["rejected"].items()}


def _account_of_encoding(made: Sequence[EmbeddedShard]) -> Mapping[str, int]:
    counts = made[0].vectors.facts["dropped"]
    return {f"rejected: {reason}": count for reason, count in counts.items()}


SPLITTING: tuple[Step, ...] = (
    MapStep(stage=group_files, many=True),
    ReshuffleStep(name="spread files"),
    MapStep(stage=split_group),
    GatherStep(name="all files", key=lambda files: files.side, each_corpus=True),
    MapStep(stage=join_side),
)

ENCODING: tuple[Step, ...] = (
    MapStep(stage=read_side, many=True, account=_account_of_reading),
    ReshuffleStep(name="spread shards"),
    MapStep(stage=embed_shard, encodes=True, account=_account_of_encoding),
)

SHARING: tuple[Step, ...] = (
    GatherStep(name="all shards", whole=True),
    MapStep(stage=share_corpora, many=True, deals=True),
)

PAIRING = (*ENCODING, MapStep(stage=sum_documents), *SHARING, MapStep(stage=pair_documents))

SEARCHING: tuple[Step, ...] = (
    MapStep(stage=prepare_sides, many=True),
    MapStep(stage=train_side, many=True),
    ReshuffleStep(name="spread sides"),
    MapStep(stage=fill_index),
    GatherStep(name="all indexes"),
    MapStep(stage=cut_nearest, many=True),
    ReshuffleStep(name="spread nearest"),
    MapStep(stage=join_nearest),
    GatherStep(name="all floors"),
    MapStep(stage=cut_tiles, many=True),
    ReshuffleStep(name="spread tiles"),
    MapStep(stage=search_tile, many=True),
    GatherStep(name="by shard", key=lambda part: part.shard.name, as_many_as=fill_index),
    MapStep(stage=find_neighbours),
    GatherStep(name="all neighbours"),
)

ALIGNING: tuple[Step, ...] = (
    MapStep(stage=cut_documents, many=True),
    ReshuffleStep(name="spread documents"),
    MapStep(stage=align_documents, encodes=True),
    GatherStep(name="all documents"),
    MapStep(stage=select_beads),
)

ENDING: tuple[Step, ...] = (
    MapStep(stage=cut_pairs, many=True),
    ReshuffleStep(name="spread pairs"),
    MapStep(stage=score_pairs),
    GatherStep(name="all scored pairs"),
    MapStep(stage=judge_pairs),
    MapStep(stage=filter_pairs),
    MapStep(stage=drop_near_copies),
    MapStep(stage=keep_pairs),
    MapStep(stage=write_summary),
    MapStep(stage=export_pairs),
)


def steps_of(options: MiningOptions) -> tuple[Step, ...]:
    """Return the steps for a run's corpora, or the errors of ``is_documents``."""
    sides = (options.source, options.target)
    has_documents = any(is_documents(side.path, side.input_format) for side in sides)
    encoding = PAIRING if options.pairs_documents else (*ENCODING, *SHARING)
    choosing = ALIGNING
    if not options.is_monotone:
        choosing = (MapStep(stage=rate_lines if options.alignment == LINES else select_pairs),)
    ending = (*ENDING[:-1], MapStep(stage=order_lines)) if options.order == AS_INPUT else ENDING
    return (*(SPLITTING if has_documents else ()), *encoding, *SEARCHING, *choosing, *ending)


def sources_of_elements(steps: Sequence[Step], job: Job) -> dict[str, int | str]:
    """Return the number of elements of the stage of each ``MapStep``, by name.

    An unknown number is replaced by the name of an earlier stage with as many results.
    """
    sources: dict[str, int | str] = {}
    feed: int | str = len(job.corpora)
    for step in steps:
        if isinstance(step, GatherStep):
            one_each = 1 if step.whole else len(job.corpora if step.each_corpus else job.pairs)
            feed = step.as_many_as.__name__ if step.as_many_as else one_each
        elif isinstance(step, MapStep):
            sources[step.name] = feed
            feed = step.name if step.many else feed
    return sources


class StageRunner:
    """A caller of stages, which notes calls and errors in a run's ledger."""

    def __init__(self, run: RunContext) -> None:
        self._run, self._ledger = run, Ledger(run.folder)

    def __call__(self, step: MapStep, element: Element) -> list[Element]:
        """Run and note a stage, and return its elements, or raise its error."""
        start = time.perf_counter()
        try:
            result = step.stage(self._run.for_part(element.part), element.reference)
        except BaseException as error:
            self._ledger.note_failed(step.name, error)
            raise
        items = result if step.many else [result]
        release_memory()
        seconds = time.perf_counter() - start
        name = f"{element.part} {element_name(element.reference)}"
        self._ledger.note_done(step.name, name, made=len(items), seconds=seconds)
        self._run.monitor.note(step.name, seconds)
        return items if step.deals else [Element(element.part, reference) for reference in items]


def execute(run: RunContext, steps: Sequence[Step]) -> None:
    """Run steps in this process, one after another, or raise a stage's error."""
    call = StageRunner(run)
    elements = list(run.job.corpora)
    for step in steps:
        if isinstance(step, MapStep):
            elements = [result for element in elements for result in call(step, element)]
        elif isinstance(step, GatherStep):
            groups: dict[tuple[str, str], list[Any]] = {}
            for part, reference in elements:
                group = WHOLE_JOB if step.whole else part, step.key(reference)
                groups.setdefault(group, []).append(reference)
            elements = [Element(part, references) for (part, _), references in groups.items()]
