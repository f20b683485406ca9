"""The layout of a work folder: where each artefact lies, and how its files are called.

    split/SIDE/NNNNN/NNNNN/     sentences.parquet: a part of a group of files of documents
    sentences/SIDE/             NNNNN.parquet (a shard's sentences), duplicates, rejected, inputs
    embeddings/SIDE/NNNNN/      rows.npy, vectors.npy, dropped.parquet; batches/ while it is made
    documents/SIDE/NNNNN/       documents.parquet, sums.npy (--document-pairs auto)
    documents/pairs/            pairs.tsv
    indexes/cells/              centroids.npy
    indexes/SIDE/trained/       trained.faiss
    indexes/SIDE/NNNNN/         index.faiss, or cells.npy
    tiles/NNNNN-NNNNN/          SIDE.NNNNN.ids.npy and .cosines.npy of each shard in the tile
    tiles/nearest-NNNNNN/       SIDE.positions.npy and SIDE.floors.npy (a cell join)
    tiles/cells-NNNNNN/         SIDE.places.npy, SIDE.ids.npy, SIDE.cosines.npy (a cell join)
    tiles/recall-SIDE/          the same, of a sample of the side
    beads/NNNNN/                beads.parquet (--alignment monotone)
    neighbours/SIDE/NNNNN/      SIDE.ids.npy and SIDE.cosines.npy
    usual/                      what is usual of the best pairs, in its seal
    scored/NNNNN/               scored.npy: a batch of pairs with the judge's scores; and
                                scored_same.npy, those with the same text on both sides
    pairs/ judged/ filtered/ distinct/ kept/   pairs.parquet; rejected.parquet, where filters are
                                used;
                                merges.parquet (--alignment monotone); lines.npy (adit rate);
                                identical.parquet, pairs with the same text on both sides;
                                left_out.npy, what certain pairs' sentences have without each other
    rejected/SIDE.parquet       what was left out of a side
    progress/                   what the run has done so far
    run.json                    counts of everything, and the options
    best-encoder.txt            what --encoder best is

Folders of artefacts hold a ``seal.json``, too (``miner.storage.artefacts``). ``NNNNN`` is the index
of a shard or batch; a tile is named after the first shards of both its groups, or its first cell.
What was found in paired documents lies in ``tiles/NNNNN-NNNNN-documents`` and
``neighbours/SIDE/NNNNN-documents``.

A run of many languages has ``sentences/`` and ``embeddings/`` by language instead of by side, and a
folder ``mined/XX-YY/`` with all the rest for each pair of them. ``languages/XX.jsonl`` are the
records of a corpus of many languages.
"""

from collections.abc import Callable

from miner.storage.places import Place

SOURCE, TARGET = SIDES = ("source", "target")

# Where a search, or a margin, looks: the whole other side, or documents paired with one's own.
CORPUS, DOCUMENT = SCOPES = ("corpus", "document")
_ENDS = {CORPUS: "", DOCUMENT: "-documents"}  # of the names of what was found there

# What ``clean`` removes, and what else no output may lie in.
ARTEFACTS = (
    *("split", "sentences", "embeddings", "documents", "indexes", "tiles", "neighbours", "beads"),
    *("pairs", "usual", "scored", "judged", "filtered", "distinct", "kept", "ordered", "languages"),
)
MINED = "mined"
CONFIG = "run.toml"  # the options of the last run
LINES_FOLDER = "lines"  # both sides of a file of pairs, as adit rate reads them
OWN_FOLDERS = (*ARTEFACTS, MINED, "progress", "rejected", LINES_FOLDER)

DUPLICATES, REJECTED, INPUTS = "duplicates.parquet", "rejected.parquet", "inputs.json"
SENTENCES = "sentences.parquet"
ROWS, VECTORS, DROPPED = "rows.npy", "vectors.npy", "dropped.parquet"
CENTROIDS, CELLS = "centroids.npy", "cells.npy"
TRAINED, FILLED = "trained.faiss", "index.faiss"
PAIRS = "pairs.parquet"
SCORED, SCORED_SAME, LEFT_OUT = "scored.npy", "scored_same.npy", "left_out.npy"
IDENTICAL = "identical.parquet"
BEADS, MERGES, LINES = "beads.parquet", "merges.parquet", "lines.npy"
DOCUMENT_SIZES, DOCUMENT_SUMS, DOCUMENT_PAIRS = "documents.parquet", "sums.npy", "pairs.tsv"


def shard_file(index: int) -> str:
    """Return the name of a shard's sentences in the artefact of its side."""
    return f"{index:05d}.parquet"


def shard_name(side: str, index: int) -> str:
    """Return the place of a shard in the folders of the stages after reading."""
    return f"{side}/{index:05d}"


def list_files(name: str) -> tuple[str, str]:
    """Return the files of a list of neighbours: ids and cosines."""
    return f"{name}.ids.npy", f"{name}.cosines.npy"


def places_file(side: str) -> str:
    """Return the file that says which rows of a shard a list of some has."""
    return f"{side}.places.npy"


def floor_files(side: str) -> tuple[str, str]:
    """Return the files of floors of some of a side's rows: positions in the side, and cosines."""
    return f"{side}.positions.npy", f"{side}.floors.npy"


def _place(template: str) -> Callable[..., Place]:
    """Return a method of a work folder: the place in it that the template makes of arguments."""
    return lambda folder, *names: folder.root / template.format(*names)


def _of_side(template: str) -> Callable[..., Place]:
    """Return the same of a side, by its name, and more: where pairs of its corpus share it."""
    return lambda folder, side, *more: folder.shared / template.format(folder.corpus(side), *more)


class WorkFolder:
    """The places in a work folder: artefacts, if not said otherwise.

    ``corpora`` are the names of both sides where other pairs share their sentences and vectors.
    """

    split = _of_side("split/{}/{:05d}")  # of a group of files of documents: their sentences
    sentences = _of_side("sentences/{}")
    cut = _of_side("sentences/{}.cut.json")  # a file: remembers how the side was cut into shards
    seen_languages = _of_side("sentences/{}.languages.json")  # remembers those the side is in
    embeddings = _of_side("embeddings/{}/{:05d}")  # of a shard: its vectors; and ``batches`` so far
    pair = _place(MINED + "/{}")  # of one of many languages: a work folder
    document_sums = _place("documents/{}")  # of a shard: sums of its documents
    trained = _place("indexes/{}/trained")  # of a side: its trained index
    index = _place("indexes/{}")  # of a shard: its index, or its rows' cells
    cell_tile = _place("tiles/cells-{:06d}")  # of a cell join, by the first of its cells
    nearest_tile = _place("tiles/nearest-{:06d}")  # of nearest cells, by the first of these
    recall = _place("tiles/recall-{}")  # of a side: exact neighbours of a sample
    beads = _place("beads/{:05d}")  # of a batch of aligned documents
    scored = _place("scored/{:05d}")  # of a batch of pairs: their scores
    rejected = _place("rejected/{}.parquet")  # of a side: a file of what was left out

    def __init__(self, root: Place, corpora: tuple[str, str] = SIDES) -> None:
        self.root, self.corpora = root, corpora
        self.shared = root if corpora == SIDES else root.parent.parent
        self.languages = root / "languages"  # of a corpus of many, a file for each
        self.document_pairs = root / "documents" / "pairs"  # that were found
        self.cells = root / "indexes" / "cells"  # centroids of a cell join
        self.groups = root / "tiles" / "groups.json"  # remembers how shards were put into groups
        self.pairs = root / "pairs"  # as they were chosen
        self.usual = root / "usual"  # what is usual of the best of them
        self.judged = root / "judged"  # with scores of the judge and probabilities
        self.filtered = root / "filtered"  # those that filters let pass, and those they reject
        self.distinct = root / "distinct"  # those that are no near-copies of better ones
        self.kept = root / "kept"  # those that are written, and those that filters reject
        self.ordered = root / "ordered"  # what each line of adit rate gets
        self.progress = root / "progress"  # a folder: what the run has done so far
        self.summary = root / "run.json"  # a file: the finished run's counts and options
        self.best_encoder = root / "best-encoder.txt"  # remembers what --encoder best is
        self.lock = root / ".lock"  # a file that keeps a second run out

    def corpus(self, side: str) -> str:
        """Return the name of a side's corpus."""
        return self.corpora[SIDES.index(side)]

    def tile(self, source: int, target: int, scope: str) -> Place:
        """Return the place of a tile whose groups begin with these shards."""
        return self.root / "tiles" / f"{source:05d}-{target:05d}{_ENDS[scope]}"

    def neighbours(self, shard: str, scope: str) -> Place:
        """Return the place of a shard's neighbours."""
        return self.root / "neighbours" / f"{shard}{_ENDS[scope]}"
