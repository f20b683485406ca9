"""The command lines mine-corpus and embed-corpus.

What is heavy (Beam, torch, pyarrow) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from encoder import PRECISIONS as ENCODER_PRECISIONS
from miner.commandline import product_version, run_command
from miner.storage.formats import INPUT_FORMATS
from pipelines import progress
from pipelines.memory import parse_size
from pipelines.options import PRECISIONS, CorpusOptions, MiningOptions

# The names in miner.margin and miner.selection, which would load NumPy for --help.
MARGINS = ("ratio", "distance", "absolute", "csls")
RETRIEVALS = ("max", "intersect", "forward", "backward")

ENCODERS = (
    "mini (bundled, default), a folder of train-encoder's, laser:FILE.pt (LASER1, LASER2), "
    "laser3:FILE.pt, or st:NAME, a model of sentence-transformers"
)


def mine_corpus(argv: list[str] | None = None) -> int:
    """Run ``mine-corpus``; the exit status."""
    parser = _mine_parser()
    args = parser.parse_args(argv)
    return run_command(lambda: _mine(args), parser.prog)


def embed_corpus(argv: list[str] | None = None) -> int:
    """Run ``embed-corpus``; the exit status."""
    parser = _embed_parser()
    args = parser.parse_args(argv)
    return run_command(lambda: _embed(args), parser.prog)


def _mine_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mine-corpus",
        description="Mine the sentence pairs of two corpora that are translations of each other.",
        epilog="SRC and TGT hold one sentence a line, or records with id, document and text; "
        ".gz, .xz, .zst and .bz2 are decompressed. Bad input is told in one line, with status 2.",
    )
    parser.add_argument("source", type=Path, metavar="SRC", help="source corpus")
    parser.add_argument("target", type=Path, metavar="TGT", help="target corpus")
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        required=True,
        metavar="OUT",
        help="pairs, best first: .tsv (score, source, target), .jsonl or .parquet (every field)",
    )
    _add_input_options(parser)
    _add_vector_options(parser)
    _add_mining_options(parser)
    parser.add_argument(
        "--work-dir",
        type=Path,
        metavar="DIR",
        help="keep sentences, vectors, indexes and neighbours here; what is there already and "
        "still fits is used again (default: a temporary folder beside OUT)",
    )
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


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    add = group.add_argument
    add(
        "--src-lang",
        metavar="XX",
        help="language of SRC (ISO 639): LASER's prepare text by it",
    )
    add("--tgt-lang", metavar="XX", help="language of TGT")
    _add_input_format(group)
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
    add("--encoder", default="mini", metavar="SPEC", help=ENCODERS)
    for side, corpus in (("src", "SRC"), ("tgt", "TGT")):
        add(
            f"--{side}-embeddings",
            type=Path,
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


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="tell nothing but errors")
    volume.add_argument("-v", "--verbose", action="store_true", help="tell more")
    parser.add_argument("--version", action="version", version=f"Adit {product_version()}")


def _mine(args: argparse.Namespace) -> int:
    from pipelines.memory import peak_bytes
    from pipelines.run import mine_corpus as run
    from pipelines.summary import describe, read_summary

    monitor = start_telling(args)
    if args.plan:
        from pipelines.planning import plan_run

        sys.stdout.write(plan_run(_mining_options(args, _planned_work_dir(args))) + "\n")
        return 0
    with _work_dir(args) as work_dir:
        options = _mining_options(args, Path(work_dir))
        try:
            run(options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_after_interrupt(args)) from None
        summary = read_summary(options.work_dir)
    if not args.quiet:
        sys.stderr.write(describe(summary, monitor.seconds, peak_bytes()) + "\n")
    return 0


def _after_interrupt(args: argparse.Namespace) -> str:
    if args.work_dir is None:
        return f"; {args.output} was not written (with --work-dir a second call could go on)"
    return f"; {args.output} was not written; the same command goes on from {args.work_dir}"


def _work_dir(args: argparse.Namespace) -> AbstractContextManager[str | Path]:
    if args.work_dir is not None:
        return nullcontext(args.work_dir)
    from miner.storage.pairs import check_output

    check_output(args.output)  # so that the temporary folder beside it can be made
    return tempfile.TemporaryDirectory(prefix=f".{args.output.name}-", dir=args.output.parent)


def _planned_work_dir(args: argparse.Namespace) -> Path:
    return args.work_dir or args.output.parent / f".{args.output.name}-"


def _mining_options(args: argparse.Namespace, work_dir: Path) -> MiningOptions:
    source, target = (
        CorpusOptions(
            path=path,
            language=language,
            input_format=args.input_format,
            embeddings=embeddings,
            dim=args.dim,
        )
        for path, language, embeddings in (
            (args.source, args.src_lang, args.src_embeddings),
            (args.target, args.tgt_lang, args.tgt_embeddings),
        )
    )
    return MiningOptions(
        source=source,
        target=target,
        output=args.output,
        work_dir=work_dir,
        encoder=args.encoder,
        k=args.k,
        margin=args.margin,
        retrieval=args.retrieval,
        threshold=args.threshold,
        index=args.index,
        precision=args.precision,
        memory=None if args.memory is None else parse_size(args.memory),
        keep_duplicates=args.keep_duplicates,
    )


def start_telling(args: argparse.Namespace) -> progress.Monitor:
    """Set up our own log lines, the libraries' only where asked for, and a monitor of progress."""
    level = logging.ERROR if args.quiet else logging.DEBUG if args.verbose else logging.INFO
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    for room in ("encoder", "miner", "pipelines"):
        logging.getLogger(room).setLevel(level)
    # Beam logs each failure with its whole traceback; the stage's own error is told in one line.
    others = logging.WARNING if args.verbose else logging.CRITICAL
    logging.getLogger("apache_beam").setLevel(others)
    logging.getLogger().setLevel(others)
    monitor = progress.Monitor(bars=sys.stderr.isatty() and not args.quiet)
    progress.install(monitor)
    return monitor


def _embed_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="embed-corpus",
        description="Encode every line of a corpus; row i of the output belongs to line i.",
        epilog="Lines that hold no sentence (blank, undecodable, too long) get the zero vector, "
        "so that rows and lines never shift; mine-corpus leaves them out.",
    )
    parser.add_argument("corpus", type=Path, metavar="IN", help="the corpus")
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        required=True,
        metavar="OUT",
        help=".npy, or any other suffix for headerless row-major floats",
    )
    add = parser.add_argument
    add("--encoder", default="mini", metavar="SPEC", help=ENCODERS)
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


def _embed(args: argparse.Namespace) -> int:
    from pipelines.embedding_file import embed_file

    start_telling(args)
    told = embed_file(
        args.corpus,
        args.output,
        encoder=args.encoder,
        input_format=args.input_format,
        dtype=args.dtype,
        language=args.lang,
        vocabulary=args.vocab,
        pretokenized=args.pretokenized,
        normalize=not args.no_normalize,
        precision=args.precision,
    )
    if not args.quiet:
        sys.stderr.write(told + "\n")
    return 0
