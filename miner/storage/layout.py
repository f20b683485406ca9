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
    beads/NNNNN/                beads.parquet (--alignment monotone)
    neighbours/SIDE/NNNNN/      SIDE.ids.npy and SIDE.cosines.npy
    pairs/ judged/ kept/ filtered/ distinct/   pairs.parquet; rejected.parquet, where filters are
                                used;
                                merges.parquet (--alignment monotone);
                                left_out.npy, what certain pairs' sentences have without each other
    rejected/SIDE.parquet       what was left out of a side
    progress/                   what the run has done so far
    run.json                    counts of everything, and the options
    best-encoder.txt            what --encoder best is

Folders of artefacts hold a ``seal.json``, too (``miner.storage.artefacts``). ``NNNNN`` is the index
of a shard; a tile is named after the first shards of both its groups. What was found in paired
documents lies in ``tiles/NNNNN-NNNNN-documents`` and ``neighbours/SIDE/NNNNN-documents``.

A run of many languages has ``sentences/`` and ``embeddings/`` by language instead of by side, and a
folder ``mined/XX-YY/`` with all the rest for each pair of them. ``languages/XX.jsonl`` are the
records of a corpus of many languages.
"""

from __future__ import annotations

from dataclasses import dataclass

from miner.storage.places import Place

SOURCE, TARGET = SIDES = ("source", "target")

# Where a search, or a margin, looks: the whole other side, or documents paired with one's own.
CORPUS, DOCUMENT = SCOPES = ("corpus", "document")

# What ``clean`` removes, and what else no output may lie in.
ARTEFACTS = (
    *("split", "sentences", "embeddings", "documents", "indexes", "tiles", "neighbours"),
    "beads",
    *("pairs", "judged", "kept", "filtered", "distinct"),
    "languages",
)
MINED = "mined"
OWN_FOLDERS = (*ARTEFACTS, MINED, "progress", "rejected")

DUPLICATES, REJECTED, INPUTS = "duplicates.parquet", "rejected.parquet", "inputs.json"
SENTENCES = "sentences.parquet"
ROWS, VECTORS, DROPPED = "rows.npy", "vectors.npy", "dropped.parquet"
CENTROIDS, CELLS = "centroids.npy", "cells.npy"
TRAINED, FILLED = "trained.faiss", "index.faiss"
PAIRS = "pairs.parquet"
LEFT_OUT = "left_out.npy"
BEADS, MERGES = "beads.parquet", "merges.parquet"
DOCUMENT_SIZES, DOCUMENT_SUMS, DOCUMENT_PAIRS = "documents.parquet", "sums.npy", "pairs.tsv"


def shard_file(index: int) -> str:
    """Return the name of a shard's sentences in the artefact of its side."""
    return f"{index:05d}.parquet"


def shard_name(side: str, index: int) -> str:
    """Return the place of a shard in the folders of the stages after reading."""
    return f"{side}/{index:05d}"


def list_name(side: str, index: int) -> str:
    """Return how a shard's list of neighbours is called in a tile."""
    return f"{side}.{index:05d}"


def list_files(name: str) -> tuple[str, str]:
    """Return the files of a list of neighbours: ids and cosines."""
    return f"{name}.ids.npy", f"{name}.cosines.npy"


@dataclass(frozen=True)
class WorkFolder:
    """The places in a work folder.

    ``corpora`` are the names of both sides where other pairs share their sentences and vectors.
    """

    root: Place
    corpora: tuple[str, str] = SIDES

    @property
    def _shared(self) -> Place:
        return self.root if self.corpora == SIDES else self.root.parent.parent

    def corpus(self, side: str) -> str:
        """Return the name of a side's corpus."""
        return self.corpora[SIDES.index(side)]

    @property
    def languages(self) -> Place:
        """The artefact of a corpus of many languages, a file for each."""
        return self.root / "languages"

    def pair(self, name: str) -> Place:
        """Return the work folder of one pair of many languages."""
        return self.root / MINED / name

    def split(self, side: str, group: int) -> Place:
        """Return the artefact of the sentences of a group of a side's files of documents."""
        return self._shared / "split" / self.corpus(side) / f"{group:05d}"

    def sentences(self, side: str) -> Place:
        """Return the artefact of a side's sentences."""
        return self._shared / "sentences" / self.corpus(side)

    def cut(self, side: str) -> Place:
        """Return the file that remembers how a side was cut into shards."""
        return self._shared / "sentences" / f"{self.corpus(side)}.cut.json"

    def seen_languages(self, side: str) -> Place:
        """Return the file that remembers what languages a side is in."""
        return self._shared / "sentences" / f"{self.corpus(side)}.languages.json"

    def embeddings(self, side: str, index: int) -> Place:
        """Return the artefact of a shard's vectors."""
        return self._shared / "embeddings" / shard_name(self.corpus(side), index)

    def batches(self, side: str, index: int) -> Place:
        """Return the folder of what is encoded of a shard so far."""
        return self.embeddings(side, index) / "batches"

    def document_sums(self, shard: str) -> Place:
        """Return the artefact of the sums of a shard's documents."""
        return self.root / "documents" / shard

    @property
    def document_pairs(self) -> Place:
        """The artefact of the document pairs that were found."""
        return self.root / "documents" / "pairs"

    @property
    def cells(self) -> Place:
        """The artefact of a cell join's centroids."""
        return self.root / "indexes" / "cells"

    def trained(self, side: str) -> Place:
        """Return the artefact of a side's trained index."""
        return self.root / "indexes" / side / "trained"

    def index(self, shard: str) -> Place:
        """Return the artefact of a shard's index, or of its rows' cells."""
        return self.root / "indexes" / shard

    @property
    def groups(self) -> Place:
        """The file that remembers how shards were put into groups."""
        return self.root / "tiles" / "groups.json"

    def tile(self, source: int, target: int, scope: str) -> Place:
        """Return the artefact of a tile whose groups begin with these shards."""
        return self.root / "tiles" / f"{source:05d}-{target:05d}{_suffix(scope)}"

    def neighbours(self, shard: str, scope: str) -> Place:
        """Return the artefact of a shard's neighbours."""
        return self.root / "neighbours" / f"{shard}{_suffix(scope)}"

    def beads(self, index: int) -> Place:
        """Return the artefact of a batch of aligned documents."""
        return self.root / "beads" / f"{index:05d}"

    @property
    def pairs(self) -> Place:
        """The artefact of the pairs as they were chosen."""
        return self.root / "pairs"

    @property
    def judged(self) -> Place:
        """The artefact of the pairs as the judge scores them."""
        return self.root / "judged"

    @property
    def kept(self) -> Place:
        """The artefact of the pairs that are likely enough to be right."""
        return self.root / "kept"

    @property
    def filtered(self) -> Place:
        """The artefact of the pairs that filters let pass, and of those that they reject."""
        return self.root / "filtered"

    @property
    def distinct(self) -> Place:
        """The artefact of the pairs that are no near-copies of better ones."""
        return self.root / "distinct"

    def rejected(self, side: str) -> Place:
        """Return the file of what was left out of a side."""
        return self.root / "rejected" / f"{side}.parquet"

    @property
    def progress(self) -> Place:
        """The folder of what the run has done so far."""
        return self.root / "progress"

    @property
    def summary(self) -> Place:
        """The file of the finished run's counts and options."""
        return self.root / "run.json"

    @property
    def best_encoder(self) -> Place:
        """The file that remembers what ``--encoder best`` is."""
        return self.root / "best-encoder.txt"

    @property
    def lock(self) -> Place:
        """The file that keeps a second run out."""
        return self.root / ".lock"


def _suffix(scope: str) -> str:
    return "-documents" if scope == DOCUMENT else ""
