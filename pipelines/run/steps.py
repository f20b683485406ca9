"""The mining graph, as data: the steps that lead from corpora to an output for each pair of them.

    corpora [-> split documents] -> read -> encode -> share [-> pair documents] -> train, fill
            indexes -> join nearest cells -> all tiles -> search -> merge -> select (or align
            documents, or rate lines) -> score -> judge -> keep -> filter -> drop near-copies
            -> summary -> export

Elements are small references to sealed artefacts, never sentences or vectors, so next to nothing
is moved. ``pipelines.run.executor`` interprets the steps in this process, ``pipelines.run.beam`` on
Beam's engines; both call the same functions and make the same artefacts. References that an engine
lost are missed by the next stage that gathers (``pipelines.references.whole_side``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from miner.choices import LINES
from miner.storage.documents.split import is_documents
from pipelines.context import RunContext
from pipelines.job import Job
from pipelines.options import MiningOptions
from pipelines.references import EmbeddedShard, Shard
from pipelines.stages.encode import embed_shard
from pipelines.stages.export import export_pairs
from pipelines.stages.given import rate_lines
from pipelines.stages.judge import judge_pairs
from pipelines.stages.keep import drop_near_copies, filter_pairs, keep_pairs
from pipelines.stages.monotone import align_documents, cut_documents, select_beads
from pipelines.stages.pair import pair_documents, sum_documents
from pipelines.stages.reading.read import read_side
from pipelines.stages.reading.split import group_files, join_side, split_group
from pipelines.stages.score import cut_pairs, score_pairs
from pipelines.stages.searching.index import fill_index, prepare_sides, train_side
from pipelines.stages.searching.join import cut_nearest, join_nearest
from pipelines.stages.searching.merge import find_neighbours
from pipelines.stages.searching.search import cut_tiles, search_tile
from pipelines.stages.select import select_pairs
from pipelines.stages.share import share_corpora
from pipelines.stages.summary import write_summary

Account: TypeAlias = Callable[[Any], Mapping[str, int]]


@dataclass(frozen=True, kw_only=True)
class Each:
    """Call a stage's function on each reference; what it returns goes on.

    Where it makes ``many``, it returns a list, each item of which goes on by itself. They belong to
    the part of the job that the reference belongs to, unless it ``deals``: then each is an ``Of``.
    ``account`` counts what became of the sentences that were read; ``encodes`` says that
    accelerators help.
    """

    stage: Callable[[RunContext, Any], Any]
    many: bool = False
    deals: bool = False
    encodes: bool = False
    account: Account | None = None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.stage.__name__


@dataclass(frozen=True, kw_only=True)
class Gather:
    """Put the references of each key into a list, for each part of the job or for the ``whole``.

    Without a key, all of them. There are as many lists as the stage ``as_many_as`` makes
    references, or one for each; or one for each corpus.
    """

    name: str
    whole: bool = False
    key: Callable[[Any], str] = lambda reference: ""
    as_many_as: Callable[..., object] | None = None
    each_corpus: bool = False


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Deal the references out to all workers evenly; else one stage's does the next one's."""

    name: str


Step: TypeAlias = Each | Gather | Spread


def _account_of_reading(shards: Sequence[Shard]) -> Mapping[str, int]:
    facts = shards[0].corpus.facts
    kept = {name: facts[name] for name in ("read", "unique", "duplicates")}
    return kept | {f"rejected: {why}": count for why, count in facts["rejected"].items()}


def _account_of_encoding(embedded: EmbeddedShard) -> Mapping[str, int]:
    counts = embedded.vectors.facts["dropped"]
    return {f"rejected: {why}": count for why, count in counts.items()}


SPLITTING: tuple[Step, ...] = (
    Each(stage=group_files, many=True),
    Spread(name="spread files"),
    Each(stage=split_group),
    Gather(name="all files", key=lambda files: files.side, each_corpus=True),
    Each(stage=join_side),
)

ENCODING: tuple[Step, ...] = (
    Each(stage=read_side, many=True, account=_account_of_reading),
    Spread(name="spread shards"),
    Each(stage=embed_shard, encodes=True, account=_account_of_encoding),
)

SHARING: tuple[Step, ...] = (
    Gather(name="all shards", whole=True),
    Each(stage=share_corpora, many=True, deals=True),
)

PAIRING: tuple[Step, ...] = (
    *ENCODING,
    Each(stage=sum_documents),
    *SHARING,
    Each(stage=pair_documents),
)

SEARCHING: tuple[Step, ...] = (
    Each(stage=prepare_sides, many=True),
    Each(stage=train_side, many=True),
    Spread(name="spread sides"),
    Each(stage=fill_index),
    Gather(name="all indexes"),
    Each(stage=cut_nearest, many=True),
    Spread(name="spread nearest"),
    Each(stage=join_nearest),
    Gather(name="all floors"),
    Each(stage=cut_tiles, many=True),
    Spread(name="spread tiles"),
    Each(stage=search_tile, many=True),
    Gather(name="by shard", key=lambda part: part.shard.name, as_many_as=fill_index),
    Each(stage=find_neighbours),
    Gather(name="all neighbours"),
)

ALIGNING: tuple[Step, ...] = (
    Each(stage=cut_documents, many=True),
    Spread(name="spread documents"),
    Each(stage=align_documents, encodes=True),
    Gather(name="all documents"),
    Each(stage=select_beads),
)

ENDING: tuple[Step, ...] = (
    Each(stage=cut_pairs, many=True),
    Spread(name="spread pairs"),
    Each(stage=score_pairs),
    Gather(name="all scored pairs"),
    Each(stage=judge_pairs),
    Each(stage=keep_pairs),
    Each(stage=filter_pairs),
    Each(stage=drop_near_copies),
    Each(stage=write_summary),
    Each(stage=export_pairs),
)


def steps_of(options: MiningOptions) -> tuple[Step, ...]:
    """Return the steps of a run."""
    choosing: tuple[Step, ...] = (Each(stage=select_pairs),)
    if options.is_monotone:
        choosing = ALIGNING
    elif options.alignment == LINES:
        choosing = (Each(stage=rate_lines),)
    sides = (options.source, options.target)
    has_documents = any(is_documents(side.path, side.input_format) for side in sides)
    return (
        *(SPLITTING if has_documents else ()),
        *(PAIRING if options.pairs_documents else (*ENCODING, *SHARING)),
        *SEARCHING,
        *choosing,
        *ENDING,
    )


def sources_of_elements(steps: Sequence[Step], job: Job) -> dict[str, int | str]:
    """Return, for each stage, how many elements it takes: a number, or as many as a stage makes."""
    found: dict[str, int | str] = {}
    feed: int | str = len(job.corpora)
    for step in steps:
        if isinstance(step, Gather):
            one_each = 1 if step.whole else len(job.corpora if step.each_corpus else job.pairs)
            feed = step.as_many_as.__name__ if step.as_many_as else one_each
        elif isinstance(step, Each):
            found[step.name] = feed
            feed = step.name if step.many else feed
    return found
