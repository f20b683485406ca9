"""Places of artefacts and files in a work folder.

    split/SIDE/NNNNN/NNNNN/     sentences.parquet: part of a group of files of documents
    sentences/SIDE/             NNNNN.parquet (a shard's sentences), duplicates, rejected, inputs
    embeddings/SIDE/NNNNN/      rows.npy, vectors.npy, dropped.parquet; batches/ until it is sealed
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
    scored/NNNNN/               scored.npy: a batch of pairs with the judge's scores;
                                scored_same.npy: pairs with the same text on both sides
    pairs/ judged/ filtered/ distinct/ kept/   pairs.parquet; rejected.parquet after filters;
                                merges.parquet (--alignment monotone); lines.npy (adit rate);
                                identical.parquet, pairs with the same text on both sides;
                                left_out.npy, scores of leave-one-out pairs

Artefacts also have a ``seal.json`` (``miner.storage.artefacts``). ``NNNNN`` is the index
of a shard or batch. A tile is named by the first shards of both groups, or by its first cell.
Results of searches in paired documents are in folders that end in ``-documents``. A run of many
languages has ``sentences/`` and ``embeddings/`` by language instead of by side, a folder
``mined/XX-YY/`` with the rest per pair of languages, and records in ``languages/XX.jsonl``.
"""

from collections.abc import Callable

from miner.storage.places import Place

SOURCE, TARGET = SIDES = ("source", "target")

# The scope of a search or a margin: the whole other side, or the paired documents.
CORPUS, DOCUMENT = SCOPES = ("corpus", "document")
_NAME_ENDS = {CORPUS: "", DOCUMENT: "-documents"}  # of folders with results of a scope

# The folders that ``clean`` removes, and all folders that no output may be in.
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
    """Return the file name of a shard's sentences, such as 00003.parquet."""
    return f"{index:05d}.parquet"


def shard_name(side: str, index: int) -> str:
    """Return a shard's path in folders of stages, such as source/00003."""
    return f"{side}/{index:05d}"


def list_files(name: str) -> tuple[str, str]:
    """Return neighbours' files, ``NAME.ids.npy`` and ``NAME.cosines.npy``."""
    return f"{name}.ids.npy", f"{name}.cosines.npy"


def places_file(side: str) -> str:
    """Return ``SIDE.places.npy``, the file of positions with neighbours."""
    return f"{side}.places.npy"


def floor_files(side: str) -> tuple[str, str]:
    """Return a side's files of row positions and of lower bounds (floors)."""
    return f"{side}.positions.npy", f"{side}.floors.npy"


def _place(template: str) -> Callable[..., Place]:
    return lambda folder, *names: folder.root / template.format(*names)


def _side_place(template: str) -> Callable[..., Place]:
    """Return a method for a place of a side, which language pairs share."""
    return lambda folder, side, *more: folder.shared / template.format(folder.corpus(side), *more)


class WorkFolder:
    """The paths of all artefacts and files in a work folder.

    Nothing is made or checked. ``root`` is the folder. ``corpora`` are the names of the source and
    target corpus: by default the sides, or languages if ``root`` is ``mined/XX-YY`` in a folder
    whose sentences and vectors language pairs share.
    """

    split = _side_place("split/{}/{:05d}")  # sentences of a group of files of documents
    sentences = _side_place("sentences/{}")
    cut = _side_place("sentences/{}.cut.json")  # a file with the side's division into shards
    seen_languages = _side_place("sentences/{}.languages.json")  # a file with the side's languages
    embeddings = _side_place("embeddings/{}/{:05d}")  # a shard's vectors, and finished ``batches``
    pair = _place(MINED + "/{}")  # the work folder of a pair of languages, if there are many
    document_sums = _place("documents/{}")  # sums of a shard's documents
    trained = _place("indexes/{}/trained")  # a side's trained index
    index = _place("indexes/{}")  # a shard's index, or its rows' cells
    cell_tile = _place("tiles/cells-{:06d}")  # cells of a cell join, by the first one
    nearest_tile = _place("tiles/nearest-{:06d}")  # nearest cells, by the first one
    recall = _place("tiles/recall-{}")  # exact neighbours of a sample of a side
    beads = _place("beads/{:05d}")  # a batch of aligned documents
    scored = _place("scored/{:05d}")  # scores of a batch of pairs
    rejected = _place("rejected/{}.parquet")  # a file with a side's rejected records

    def __init__(self, root: Place, corpora: tuple[str, str] = SIDES) -> None:
        self.root, self.corpora = root, corpora
        self.shared = root if corpora == SIDES else root.parent.parent
        self.languages = root / "languages"  # a file for each language of a corpus of many
        self.document_pairs = root / "documents" / "pairs"
        self.cells = root / "indexes" / "cells"  # centroids of a cell join
        self.groups = root / "tiles" / "groups.json"  # a file with the groups of shards
        self.pairs = root / "pairs"  # selected pairs
        self.usual = root / "usual"  # run statistics of the best pairs
        self.judged = root / "judged"  # pairs with scores of the judge and probabilities
        self.filtered = root / "filtered"  # pairs after the filters, and rejected pairs
        self.distinct = root / "distinct"  # pairs without near-copies of better ones
        self.kept = root / "kept"  # pairs to write, and rejected pairs
        self.ordered = root / "ordered"  # the result of each line of adit rate
        self.progress = root / "progress"  # a folder with the run's finished elements
        self.summary = root / "run.json"  # a file with the finished run's counts and options
        self.lock = root / ".lock"  # a file that prevents a second run

    def corpus(self, side: str) -> str:
        """Return the corpus of ``source`` or ``target``, the side or its language."""
        return self.corpora[SIDES.index(side)]

    def tile(self, source: int, target: int, scope: str) -> Place:
        """Return a tile's folder by its groups' first shards and one of SCOPES."""
        return self.root / "tiles" / f"{source:05d}-{target:05d}{_NAME_ENDS[scope]}"

    def neighbours(self, shard: str, scope: str) -> Place:
        """Return a folder of neighbours by a ``shard_name`` and one of SCOPES."""
        return self.root / "neighbours" / f"{shard}{_NAME_ENDS[scope]}"
