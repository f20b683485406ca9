"""Small worlds to mine: two corpora, the vectors of their lines, and the pairs planted in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Direction, Pairs
from miner.mining import mine
from miner.storage.layout import SOURCE, TARGET
from pipelines.cli.mine import mine_corpus
from pipelines.context import RunContext
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.references import ChosenPairs, ShardNeighbours
from pipelines.stages.encode import embed_shard
from pipelines.stages.reading.read import read_side
from pipelines.stages.searching.index import fill_index, prepare_sides, train_side
from pipelines.stages.searching.join import cut_nearest, join_nearest
from pipelines.stages.searching.search import cut_tiles, find_neighbours, search_tile
from pipelines.stages.select import select_pairs

DIM = 16

# Beam's graph and its messages between two workers, which are threads of this process: what runs
# on processes is shown by test_runners.py and test_remote.py.
ON_BEAM = [
    *("--runner", "DirectRunner", "--"),
    *("--direct_running_mode=multi_threading", "--direct_num_workers=2"),
]


@dataclass(frozen=True)
class World:
    """Corpora ``src.txt`` and ``tgt.txt`` in ``folder``, their vectors beside them."""

    folder: Path
    source: list[str]
    target: list[str]
    source_vectors: NDArray[np.float32]
    target_vectors: NDArray[np.float32]

    def path(self, name: str) -> Path:
        return self.folder / name

    def save_vectors(self) -> None:
        """Write the vectors as they are now."""
        np.save(self.path("src.npy"), self.source_vectors)
        np.save(self.path("tgt.npy"), self.target_vectors)

    def inputs(self) -> list[str]:
        """The command line's arguments that name the world."""
        return [
            str(self.path("src.txt")),
            str(self.path("tgt.txt")),
            "--src-embeddings",
            str(self.path("src.npy")),
            "--tgt-embeddings",
            str(self.path("tgt.npy")),
            *("--score", "margin"),
        ]

    def mine(self, output: str, *options: str) -> Path:
        """Run mine-corpus, which must succeed; the output's path."""
        assert mine_corpus([*self.inputs(), "-o", str(self.path(output)), "-q", *options]) == 0
        return self.path(output)

    def options(self, output: str, work_dir: Path, **more: object) -> MiningOptions:
        """The same run for ``pipelines.run.mining.mine_corpus``."""
        sides = {
            side: CorpusOptions(
                path=self.path(f"{short}.txt"), embeddings=self.path(f"{short}.npy")
            )
            for side, short in (("source", "src"), ("target", "tgt"))
        }
        places = {"output": self.path(output), "work_dir": work_dir}
        run = {**sides, **places, "score": "margin", **more}
        return MiningOptions(**run)  # type: ignore[arg-type]

    def run(self, output: str, work_dir: Path, **more: object) -> RunContext:
        """The same run for stages."""
        return RunContext(job_of(self.options(output, work_dir, **more)))


def make_world(
    folder: Path, *, sources: int = 40, targets: int = 50, pairs: int = 15, seed: int = 0
) -> World:
    """A world of random vectors, ``pairs`` of them close to one of the other side."""
    random = np.random.default_rng(seed)
    source = random.standard_normal((sources, DIM), dtype=np.float32)
    target = random.standard_normal((targets, DIM), dtype=np.float32)
    own, other = random.permutation(sources)[:pairs], random.permutation(targets)[:pairs]
    target[other] = source[own] + 0.3 * random.standard_normal((pairs, DIM), dtype=np.float32)
    world = World(
        folder=folder,
        source=[f"Satz Nummer {row}" for row in range(sources)],
        target=[f"sentence number {row}" for row in range(targets)],
        source_vectors=source,
        target_vectors=target,
    )
    folder.mkdir(parents=True, exist_ok=True)
    world.save_vectors()
    write_lines(world.path("src.txt"), world.source)
    write_lines(world.path("tgt.txt"), world.target)
    return world


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def mined_in_memory(
    world: World,
    *,
    source_rows: Sequence[int] | None = None,
    target_rows: Sequence[int] | None = None,
    **options: object,
) -> Pairs:
    """What ``miner.mining.mine`` finds among those rows (all by default), as rows of the files."""
    own = np.arange(len(world.source)) if source_rows is None else np.array(source_rows)
    other = np.arange(len(world.target)) if target_rows is None else np.array(target_rows)
    pairs = mine(world.source_vectors[own], world.target_vectors[other], **options)  # type: ignore[arg-type]
    return Pairs(
        **{**_columns(pairs), "source": own[pairs.source], "target": other[pairs.target]},
    )


def records_of(pairs: Pairs, source: Sequence[str], target: Sequence[str]) -> list[dict]:
    """The records that the output should hold for pairs of plain lines without repetitions."""
    columns = {name: column.tolist() for name, column in _columns(pairs).items()}
    return [
        {
            "score": columns["score"][place],
            "source_id": str(columns["source"][place] + 1),
            "target_id": str(columns["target"][place] + 1),
            "source_doc": "",
            "target_doc": "",
            "source_text": source[columns["source"][place]],
            "target_text": target[columns["target"][place]],
            "source_row": columns["source"][place],
            "target_row": columns["target"][place],
            "cosine": columns["cosine"][place],
            "source_mean": columns["source_mean"][place],
            "target_mean": columns["target_mean"][place],
            "rank": columns["rank"][place],
            "direction": Direction(columns["direction"][place]).name.lower(),
            "source_duplicates": [],
            "target_duplicates": [],
        }
        for place in range(len(pairs))
    ]


def _columns(pairs: Pairs) -> Mapping[str, NDArray]:
    return {name: np.asarray(column) for name, column in asdict(pairs).items()}


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def read_pairs(path: Path) -> set[tuple[int, int]]:
    """The (source row, target row) of each pair of a ``.jsonl`` output."""
    return {(record["source_row"], record["target_row"]) for record in read_jsonl(path)}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything under a folder: path to content, None for what is no regular file."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def search_eagerly(options: MiningOptions, *, step: int = 1) -> list[ShardNeighbours]:
    """The graph up to the neighbours, stage by stage; ``step`` -1 hands all things on backwards."""
    run = RunContext(job_of(options))
    embedded = [
        embed_shard(run, shard)
        for side in (SOURCE, TARGET)[::step]
        for shard in read_side(run, side)[::step]
    ]
    searchable = [
        fill_index(run, shard)
        for side in prepare_sides(run, embedded)[::step]
        for shard in train_side(run, side)[::step]
    ]
    by_shard: dict[str, list] = {}
    nearest = [join_nearest(run, tile) for tile in cut_nearest(run, searchable)[::step]]
    for tile in cut_tiles(run, nearest)[::step]:
        for part in search_tile(run, tile)[::step]:
            by_shard.setdefault(part.embedded.shard.name, []).append(part)
    return [find_neighbours(run, parts) for parts in by_shard.values()]


def select_eagerly(options: MiningOptions, *, step: int = 1) -> ChosenPairs:
    """The graph up to the chosen pairs, stage by stage."""
    return select_pairs(RunContext(job_of(options)), search_eagerly(options, step=step))


def one_line(error: str, program: str) -> str:
    """What a command wrote to stderr, which must be its one line of an error."""
    assert error.startswith(f"{program}: error: "), error
    assert error.count("\n") == 1, error
    return error
