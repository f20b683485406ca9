"""The arguments of mine-corpus and embed-corpus; nothing heavy is loaded for their ``--help``."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from encoder import ENCODERS
from encoder import PRECISIONS as ENCODER_PRECISIONS
from miner.commandline import product_version
from miner.storage.corpus.formats import INPUT_FORMATS
from miner.storage.layout import SCOPES
from miner.storage.places import place
from pipelines.options import PRECISIONS

# The names in miner.margin, miner.selection and miner.filters, which would load NumPy for --help.
MARGINS = ("ratio", "distance", "absolute", "csls")
RETRIEVALS = ("max", "intersect", "forward", "backward")
FILTERS = ("short", "length", "copied", "numbers", "hub", "language")


def mine_parser() -> argparse.ArgumentParser:
    """The parser of mine-corpus."""
    parser = argparse.ArgumentParser(
        prog="mine-corpus",
        description="Mine the sentence pairs of two corpora that are translations of each other.",
        epilog="SRC and TGT hold one sentence a line, or records with id, document and text; "
        ".gz, .xz, .zst and .bz2 are decompressed. Bad input is told in one line, with status 2. "
        "mine-corpus status DIR tells how far the run in a work folder is, mine-corpus clean DIR "
        "empties that of a finished one; mine-corpus report, why, calibrate and rescore "
        "tell of the pairs of a finished run. Each has a --help.",
    )
    parser.add_argument(
        "source", type=place, metavar="SRC", help="source corpus: a file, or a folder of files"
    )
    parser.add_argument("target", type=place, metavar="TGT", help="target corpus")
    parser.add_argument(
        *("-o", "--output"),
        type=place,
        required=True,
        metavar="OUT",
        help="pairs, best first: .tsv (score, source, target), .jsonl or .parquet (every field)",
    )
    _add_input_options(parser)
    _add_vector_options(parser)
    _add_mining_options(parser)
    _add_document_options(parser)
    parser.add_argument(
        "--work-dir",
        type=place,
        metavar="DIR",
        help="keep sentences, vectors, indexes and neighbours here; what is there already and "
        "still fits is used again (default: a temporary folder beside OUT)",
    )
    _add_worker_options(parser)
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="hold no more than SIZE, such as 800M or 6G (powers of 1024), in memory; refused if "
        "that cannot do. No result depends on it (default: shards for half of the machine's)",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="tell what the run would take in time, memory and disk; run and write nothing",
    )
    add_common_options(parser)
    return parser


def _add_worker_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("workers (no result depends on them)").add_argument
    add(
        "--shards",
        type=int,
        metavar="N",
        help="cut each side into N shards, or more where memory asks for it (default: 1 for each "
        "worker); one to which only something was added keeps those it has",
    )
    add(
        "--workers", type=int, default=1, metavar="N", help="processes on this machine (default: 1)"
    )
    add(
        "--runner",
        metavar="NAME",
        help="run on another engine by Beam's runner of that name, such as FlinkRunner; Beam's own "
        "options come last, after --",
    )


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    add = group.add_argument
    add("--src-lang", metavar="XX", help="language of SRC (ISO 639): LASER's prepare text by it")
    add("--tgt-lang", metavar="XX", help="language of TGT")
    _add_input_format(group)
    add(
        "--max-rejected",
        type=int,
        metavar="N",
        help="end the run if more than N lines of both sides have to be left out (default: any)",
    )
    add(
        "--keep-duplicates",
        action="store_true",
        help="search every line; else the first of equal sentences stands for all of them",
    )


def _add_input_format(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    group.add_argument(
        "--input-format",
        choices=INPUT_FORMATS,
        default="auto",
        help="default: by suffix and content; tsv is id, text or id, doc, text without a header",
    )


def _add_vector_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("vectors").add_argument
    add("--encoder", default="mini", metavar="SPEC", help=f"{ENCODERS}; default: mini")
    for side, corpus in (("src", "SRC"), ("tgt", "TGT")):
        add(
            f"--{side}-embeddings",
            type=place,
            metavar="FILE",
            help=f"vectors of all lines of {corpus}: .npy, or raw float32 or float16 with --dim",
        )
    add("--dim", type=int, metavar="D", help="dimensions of raw embeddings")


def _add_mining_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("mining").add_argument
    add("-k", type=int, default=4, metavar="K", help="neighbourhood size (default: 4)")
    add(
        "--margin",
        choices=MARGINS,
        default="ratio",
        help="how a cosine is measured against both neighbourhoods (default: ratio)",
    )
    add(
        "--retrieval",
        choices=RETRIEVALS,
        default="max",
        help="max: best first, one to one (default); forward, backward: the best for each "
        "sentence of that side; intersect: best for both",
    )
    add(
        "--threshold",
        type=float,
        default=-math.inf,
        metavar="T",
        help="keep pairs that score strictly above T (default: all)",
    )
    add(
        "--align",
        action="store_true",
        help="hold the words of each mined pair against each other: the score is the margin and "
        "how well they match, which tells translations from sentences on the same subject "
        "(needs an encoder with word vectors, such as mini)",
    )
    add(
        "--filters",
        type=_names,
        default=(),
        metavar="NAMES",
        help=f"reject pairs by rules, such as length, or length,copied, and write them with the "
        f"reason beside OUT; of {', '.join(FILTERS)} (default: none; length is what raised F1)",
    )
    add(
        "--index",
        default="auto",
        metavar="INDEX",
        help="exact; cells, a join of k-means cells that finds most neighbours, or such as "
        "cells4096:probes=8; a FAISS factory string, and FAISS's parameters after a colon, such as "
        "IVF4096,Flat:nprobe=64; or auto (default): exact up to 10^12 similarities, then cells",
    )
    add(
        "--precision",
        choices=PRECISIONS,
        default="auto",
        help="of the exact search's products: no result depends on it, its time does "
        "(default: what is soonest done here)",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split(",")))


def _add_document_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("documents").add_argument
    add(
        "--scope",
        choices=SCOPES,
        default=SCOPES[0],
        help="document: search each sentence in the documents paired with its own "
        "(default: corpus)",
    )
    add(
        "--document-pairs",
        type=place,
        metavar="FILE",
        help="for --scope document: ids of a source and a target document a line, with a tab "
        "between them",
    )
    add(
        "--margin-scope",
        choices=SCOPES,
        help="where the neighbours are that margins compare with (default: as --scope)",
    )


def embed_parser() -> argparse.ArgumentParser:
    """The parser of embed-corpus."""
    parser = argparse.ArgumentParser(
        prog="embed-corpus",
        description="Encode every line of a corpus; row i of the output belongs to line i.",
        epilog="Lines that hold no sentence (blank, undecodable, too long) get the zero vector, "
        "so that rows and lines never shift; mine-corpus leaves them out.",
    )
    parser.add_argument("corpus", type=place, metavar="IN", help="the corpus")
    parser.add_argument(
        *("-o", "--output"),
        type=place,
        required=True,
        metavar="OUT",
        help=".npy, or any other suffix for headerless row-major floats",
    )
    add = parser.add_argument
    add("--encoder", default="mini", metavar="SPEC", help=f"{ENCODERS}; default: mini")
    add("--lang", metavar="XX", help="language of IN (ISO 639): LASER's prepare text by it")
    add("--vocab", type=Path, metavar="FILE", help="a LASER encoder's .cvocab, .spm or .fcodes")
    add(
        "--pretokenized",
        action="store_true",
        help="lines are a LASER encoder's subword tokens; a blank one is a sentence, too",
    )
    add("--no-normalize", action="store_true", help="vectors as the network makes them")
    _add_input_format(parser)
    add("--dtype", choices=("float32", "float16"), default="float32", help="default: float32")
    add(
        "--precision",
        choices=ENCODER_PRECISIONS,
        default="float32",
        help="of a network's products; auto is the fastest with cosines of at least 0.9995 to "
        "float32's (default: float32; mine-corpus takes auto)",
    )
    add_common_options(parser)
    return parser


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="tell nothing but errors")
    volume.add_argument("-v", "--verbose", action="store_true", help="tell more")
    parser.add_argument("--version", action="version", version=f"Adit {product_version()}")
