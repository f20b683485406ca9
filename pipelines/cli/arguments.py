"""The arguments of mine and embed; nothing heavy is loaded for their ``--help``.

Defaults are those of ``pipelines.options``, choices those of ``miner.choices``.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from encoder import ENCODERS
from encoder import PRECISIONS as ENCODER_PRECISIONS
from miner.choices import ALIGNMENTS, FILTERS, LINES, MARGINS, RETRIEVALS, SCORES, SEARCH_PRECISIONS
from miner.commandline import add_common_options, add_version, names
from miner.storage.corpus.formats import INPUT_FORMATS
from miner.storage.layout import SCOPES
from miner.storage.places import Place, place
from pipelines.options import CorpusOptions, MiningOptions

Group: TypeAlias = argparse._ArgumentGroup | argparse.ArgumentParser

AUTO_PAIRS = "auto"
# Of the options that are for one corpus: how they begin, and what the corpus is called in help.
CORPORA = (("src", "SRC"), ("tgt", "TGT"))


def mine_parser(prog: str, *, many: bool = False) -> argparse.ArgumentParser:
    """Return the parser of ``adit mine``; of ``many`` languages, without source and target."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} [options] SRC TGT -o OUT\n       {prog} [options] --languages DIR -o OUTDIR",
        description="Mine the sentence pairs of two corpora that are translations of each other, "
        "or of every two of many.",
        epilog="SRC and TGT hold one sentence a line, or records with id, document and text; "
        ".gz, .xz, .zst and .bz2 are decompressed. Invalid input exits with status 2 and a "
        "one-line error. 'adit status', 'clean', 'report', 'why' and 'calibrate' read the "
        "work folder (--work-dir) of a run.",
    )
    if not many:
        add_corpora(parser)
    _add_output(parser)
    _add_language_options(parser)
    _add_input_options(parser)
    _add_vector_options(parser)
    _add_mining_options(parser)
    _add_document_options(parser)
    _add_run_options(parser)
    add_common_options(parser)
    add_version(parser)
    return parser


def rate_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit rate``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Score the pairs of a parallel corpus, line i of SRC with line i of TGT, "
        "against the nearest sentences in both corpora, as adit mine scores what it mines: to "
        "clean it.",
        epilog="A pair that is there several times is written once. The options, the outputs and "
        "the work folder (--work-dir) are those of adit mine.",
    )
    add_corpora(parser)
    _add_output(parser)
    _add_input_options(parser)
    _add_vector_options(parser)
    _add_mining_options(parser, given=True)
    _add_run_options(parser)
    add_common_options(parser)
    add_version(parser)
    parser.set_defaults(alignment=LINES)
    return parser


def add_corpora(
    parser: argparse.ArgumentParser,
    source: str = "source corpus: a file, a folder of files, or - for standard input",
    target: str = "target corpus, likewise",
) -> None:
    """Add both corpora, described so."""
    parser.add_argument("source", type=place, metavar="SRC", help=source)
    parser.add_argument("target", type=place, metavar="TGT", help=target)


def _add_output(parser: argparse.ArgumentParser) -> None:
    add_output(
        parser,
        "pairs, best first: .tsv (score, source, target), .jsonl or .parquet (every field), "
        ".tmx, .dataset (a folder for Hugging Face's datasets), or a name with %% such as pairs.%% "
        "for two files of lines, by language; text also with .gz or .zst",
        ending="tsv",
    )


def add_output(parser: argparse.ArgumentParser, text: str, *, ending: str) -> None:
    """Add the output, which may be standard output (``pipelines.cli.pipes.through_pipes``)."""
    text = f"{text} (default: -, standard output, as {ending}, unless that is a terminal)"
    parser.add_argument(*("-o", "--output"), type=place, metavar="OUT", help=text)


def _add_language_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("many languages").add_argument
    text = (
        "mine pairs of many languages, each read and encoded once: a folder with a file or "
        "folder for each, named by its ISO 639 code (de.txt, pt-BR.jsonl.gz, news.de, zh/), or a "
        "corpus with a field 'language' (.jsonl, .parquet); OUT is a folder then"
    )
    add("--languages", type=place, metavar="DIR", help=text)
    text = "with --languages: the pairs to mine, such as de-en,fr-en (default: all)"
    add("--pairs", action="append", metavar="PAIRS", help=text)
    add(
        "--format",
        metavar="ENDING",
        help="the format of OUT/XX-YY.ENDING with --languages, or of standard output, named as for "
        "OUT: tsv, tsv.gz, jsonl, parquet, tmx, dataset or %% (default: tsv)",
    )
    add(
        "--multiway",
        action="store_true",
        help="with --languages: write the clusters of sentences that translate each other, at most "
        "one of each language, to OUT/multiway.tsv (.jsonl with --format jsonl)",
    )


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    add = group.add_argument
    add_languages(group)
    add_input_formats(group)
    text = "stop if more than N lines of both sides are unusable (default: no limit)"
    add("--max-rejected", type=int, metavar="N", help=text)
    text = "search every line (default: the first of equal sentences stands for all of them)"
    add("--keep-duplicates", action="store_true", help=text)


def add_languages(group: Group, *, required: bool = False) -> None:
    """Add the languages of both sides."""
    default = "" if required else "; default: detected from a sample"
    for side, corpus in CORPORA:
        text = f"language of {corpus} (ISO 639{default})"
        group.add_argument(f"--{side}-lang", required=required, metavar="XX", help=text)


def add_input_format(group: Group) -> None:
    """Add the format of corpora."""
    text = "tsv is id, text or id, doc, text without a header (default: by suffix and content)"
    group.add_argument(
        "--input-format", choices=INPUT_FORMATS, default=CorpusOptions.input_format, help=text
    )


def add_texts(parser: argparse.ArgumentParser, source: str, target: str) -> None:
    """Add text of two languages, described so, and the folder that is made of it."""
    add_corpora(parser, source, target)
    parser.add_argument(
        *("-o", "--output"), type=Path, required=True, metavar="OUT", help="folder to write"
    )
    add_languages(parser, required=True)
    add_input_format(parser)


def given_texts(args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of ``TextOptions`` of the arguments of ``add_texts``."""
    languages = args.src_lang, args.tgt_lang
    names = ("source", "target", "output", "input_format")
    return {"languages": languages, **{name: getattr(args, name) for name in names}}


def add_input_formats(group: Group) -> None:
    """Add the format of both corpora, and of either."""
    add_input_format(group)
    for side, corpus in CORPORA:
        text = f"format of {corpus} alone (default: as --input-format)"
        group.add_argument(f"--{side}-format", choices=INPUT_FORMATS, help=text)


def add_encoder(group: Group) -> None:
    """Add the encoder."""
    default = MiningOptions.encoder
    group.add_argument(
        "--encoder", default=default, metavar="SPEC", help=f"{ENCODERS} (default: {default})"
    )


def _add_vector_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("vectors")
    add = group.add_argument
    add_encoder(group)
    text = (
        "precision of the encoder's products; auto is the fastest here with cosines of at "
        f"least 0.9995 to float32's (default: {MiningOptions.precision})"
    )
    add("--precision", choices=ENCODER_PRECISIONS, default=MiningOptions.precision, help=text)
    for side, corpus in CORPORA:
        text = (
            f"precomputed vectors of all lines of {corpus}: .npy, or raw float32 or float16 "
            "with --dim"
        )
        group.add_argument(f"--{side}-embeddings", type=place, metavar="FILE", help=text)
    group.add_argument("--dim", type=int, metavar="D", help="dimensions of raw embeddings")


def _add_mining_options(parser: argparse.ArgumentParser, *, given: bool = False) -> None:
    """Add what decides the pairs; those that are ``given`` are not retrieved."""
    add = parser.add_argument_group("mining").add_argument
    default = MiningOptions
    add("-k", type=int, default=default.k, metavar="K", help=f"neighbours (default: {default.k})")
    text = f"how a cosine is compared with those of the neighbours (default: {default.margin})"
    add("--margin", choices=MARGINS, default=default.margin, help=text)
    if not given:
        text = (
            "max: best first, one to one; forward, backward: the best for each sentence of "
            f"SRC or TGT; intersect: the best for both (default: {default.retrieval})"
        )
        add("--retrieval", choices=RETRIEVALS, default=default.retrieval, help=text)
    text = "keep pairs that score above T (default: by their probability)"
    add("--threshold", type=float, default=default.threshold, metavar="T", help=text)
    add(
        "--score",
        choices=SCORES,
        help="words: the judge's log likelihood ratio, from words, numbers, marks and neighbours; "
        "margin: the margin alone, as in LASER (default: words where both languages have vectors "
        "of words)",
    )
    add("--align", action="store_const", const="words", dest="score", help="same as --score words")
    text = (
        "keep as many pairs as possible with an estimated share of at most R wrong, such as "
        "0.05 (default: those that are more likely right than wrong)"
    )
    add("--fdr", type=float, metavar="R", help=text)
    add("--all", action="store_true", help="write all pairs, with those that are likely wrong")
    add("--top", type=int, metavar="N", help="write the N best of all pairs")
    _add_filters_and_search(add)


def _add_filters_and_search(add: Callable[..., object]) -> None:
    default = MiningOptions
    text = (
        "reject pairs and write them, with the reason, beside OUT; one or more, with commas, "
        f"of {', '.join(FILTERS)} (default: none)"
    )
    add("--filters", type=names, action="extend", default=[], metavar="NAMES", help=text)
    add(
        "--near-duplicates",
        action="store_true",
        help="leave out pairs whose texts are near-copies (at least 80%% alike, by MinHash) of a "
        "better pair's",
    )
    text = (
        "exact; cells, a join of k-means cells that finds most neighbours, such as "
        "cells4096:probes=8; a FAISS factory string with parameters after a colon, such as "
        f"IVF4096,Flat:nprobe=64; auto: exact up to 10^12 similarities, then cells (default: "
        f"{default.index})"
    )
    add("--index", default=default.index, metavar="INDEX", help=text)
    add(
        "--search-precision",
        choices=SEARCH_PRECISIONS,
        default=default.search_precision,
        help="precision of the exact search's first pass; affects speed, never results "
        f"(default: {default.search_precision}, the fastest here)",
    )


def _add_document_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("documents").add_argument
    add(
        "--scope",
        choices=SCOPES,
        help="document: search each sentence only in the document paired with its own (default: "
        "document with --document-pairs, --alignment monotone, and for two folders of documents; "
        "otherwise corpus)",
    )
    text = (
        "SOURCE_DOCUMENT TAB TARGET_DOCUMENT lines, or auto, which pairs those that are "
        "translations of each other by what they say and by their names (default: auto)"
    )
    add("--document-pairs", type=_document_pairs, metavar="FILE", help=text)
    add(
        "--alignment",
        choices=ALIGNMENTS,
        help="monotone: align paired documents in order, with merged, split and missing sentences "
        "(default: monotone for two folders of documents, otherwise free)",
    )
    text = "where the neighbours are that margins compare with (default: as --scope)"
    add("--margin-scope", choices=SCOPES, help=text)


def _document_pairs(text: str) -> Place | str:
    return text if text == AUTO_PAIRS else place(text)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the run (affects time and memory, never results)").add_argument
    text = (
        "keep sentences, vectors and neighbours in DIR, where the same command resumes and a "
        "later one reuses them (default: a temporary folder beside OUT)"
    )
    add("--work-dir", type=place, metavar="DIR", help=text)
    add(
        "--memory",
        metavar="SIZE",
        help="hold at most SIZE in memory, such as 800M or 6G (powers of 1024); fails at once if "
        "the run cannot fit (default: half of the machine's)",
    )
    text = f"processes on this machine (default: {MiningOptions.workers})"
    add("--workers", type=int, default=MiningOptions.workers, metavar="N", help=text)
    add(
        "--runner",
        metavar="NAME",
        help="run on another engine by Beam's runner of that name, such as FlinkRunner; Beam's own "
        "options come last, after --",
    )
    text = (
        "cut each side into at least N shards (default: one for each worker, more where "
        "memory asks for it)"
    )
    add("--shards", type=int, metavar="N", help=text)
    text = "estimate the run's time, memory and disk; run and write nothing"
    add("--plan", action="store_true", help=text)


def add_embedding(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit embed``."""
    parser.epilog = (
        "Lines that hold no sentence (blank, undecodable, too long) get the zero vector, so that "
        "rows and lines never shift; adit mine leaves them out."
    )
    parser.add_argument(
        "corpus", type=place, metavar="IN", help="the corpus, or - for standard input"
    )
    add_output(parser, ".npy, or any other suffix for headerless row-major floats", ending=".npy")
    add = parser.add_argument
    add_encoder(parser)
    add("--lang", metavar="XX", help="language of IN (ISO 639; default: detected from a sample)")
    add("--vocab", type=Path, metavar="FILE", help="a LASER encoder's .cvocab, .spm or .fcodes")
    text = "lines are a LASER encoder's subword tokens; a blank one is a sentence, too"
    add("--pretokenized", action="store_true", help=text)
    add("--no-normalize", action="store_true", help="keep the lengths that the network gives")
    add_input_format(parser)
    text = "of the output (default: float32)"
    add("--dtype", choices=("float32", "float16"), default="float32", help=text)
    text = (
        "of a network's products; auto is the fastest with cosines of at least 0.9995 to "
        "float32's (default: float32; adit mine uses auto)"
    )
    add("--precision", choices=ENCODER_PRECISIONS, default="float32", help=text)
    add_common_options(parser)
