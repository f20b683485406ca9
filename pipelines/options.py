"""What a mining run is asked to do: made once, by the command line or a caller."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

ROWS_PER_SHARD = 1 << 18  # 262,144 float32 vectors of 384 dimensions are 400 MB


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """One side: its text and, if they were made elsewhere, its vectors."""

    path: Path
    language: str | None = None
    input_format: str = "auto"
    embeddings: Path | None = None
    dim: int | None = None


@dataclass(frozen=True, kw_only=True)
class MiningOptions:
    """A whole run. Fields are those of ``mine-corpus``; see its help."""

    source: CorpusOptions
    target: CorpusOptions
    output: Path
    work_dir: Path
    encoder: str = "mini"
    k: int = 4
    margin: str = "ratio"
    retrieval: str = "max"
    threshold: float = -math.inf
    index: str = "auto"
    keep_duplicates: bool = False
    rows_per_shard: int = ROWS_PER_SHARD

    def side(self, name: str) -> CorpusOptions:
        """The options of the side called ``source`` or ``target``."""
        return self.source if name == SOURCE else self.target


SOURCE, TARGET = "source", "target"


def check_options(options: MiningOptions) -> None:
    """Refuse what cannot be run, before anything is read at length.

    Raises:
        ValueError: one line that says what, where and how to mend it.
    """
    from miner.margin import MARGINS
    from miner.selection import RETRIEVALS
    from miner.storage.pairs import check_output

    if options.k < 1:
        raise ValueError(f"-k {options.k}: a neighbourhood needs at least 1 sentence")
    if math.isnan(options.threshold):
        raise ValueError("--threshold nan: give a number")
    if options.margin not in MARGINS:
        raise ValueError(f"--margin {options.margin}: choose one of {', '.join(MARGINS)}")
    if options.retrieval not in RETRIEVALS:
        raise ValueError(f"--retrieval {options.retrieval}: choose one of {', '.join(RETRIEVALS)}")
    if options.index not in ("exact", "auto"):
        from miner.knn.faiss_index import check_factory

        check_factory(options.index)
    _check_sides(options)
    check_output(options.output)


def _check_sides(options: MiningOptions) -> None:
    source, target = options.source.path, options.target.path
    given = (options.source.embeddings, options.target.embeddings)
    for path in (source, target, *given):
        if path is not None and not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file")
    if source.samefile(target):
        raise ValueError(
            f"{source}: source and target are the same file, "
            "so every sentence would be its own translation; give two corpora"
        )
    for path in (source, target):
        if options.output.exists() and options.output.samefile(path):
            raise ValueError(f"{options.output}: the output would overwrite an input")
    if (given[0] is None) != (given[1] is None):
        only = "--tgt-embeddings" if given[0] is None else "--src-embeddings"
        raise ValueError(
            f"only {only} is given; the vectors of two sides can be compared only if the same "
            "encoder made both: give both files or neither"
        )
