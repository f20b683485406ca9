"""Arguments of commands, without heavy imports for ``--help``."""

import argparse
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from encoder import ENCODERS
from encoder import PRECISIONS as ENCODER_PRECISIONS
from miner import choices
from miner.commandline import add_common_options, add_version, parse_names
from miner.language_codes import base_language, parse_option
from miner.storage.corpus.formats import INPUT_FORMATS
from miner.storage.layout import SCOPES
from miner.storage.places import Place, place
from pipelines.cli.config import add_config
from pipelines.options import CorpusOptions
from pipelines.options import MiningOptions as Default

Group: TypeAlias = argparse._ArgumentGroup | argparse.ArgumentParser

AUTO_PAIRS = "auto"
# Prefix of a corpus's options, and the name of the corpus in help texts.
CORPORA = (("src", "SRC"), ("tgt", "TGT"))
_SELECTS = "which selects them in multilingual TMX, JSON or Parquet"
TEXTS_OF_PAIRS = (
    ("src", f"the source texts, {_SELECTS}"),
    ("tgt", f"the target texts, {_SELECTS}"),
)

PRECISION = (
    "number format in networks: float32; bfloat16 or int8 (often faster, slightly other vectors); "
    "auto (the fastest here whose vectors have a cosine of at least 0.9995 to float32 vectors)"
)
REPAIR = (
    "repair wrong characters (mojibake), HTML entities, invisible characters, spaces, quotes (pip "
    "install 'bitext-adit[repair]')"
)
OUTPUT = (
    ".tsv (score, source, target), .jsonl or .parquet (every field), .tmx (if both languages are "
    "given), .dataset (a folder for Hugging Face's datasets), or a name with %% (pairs.%%: two "
    "files of lines, by language); add .gz or .zst to compress text"
)
FORMATS = (
    "lines: one sentence per line; bucc: id TAB text, which may contain tabs; tsv: id TAB text or "
    "id TAB doc TAB text, without a header; jsonl, parquet: records with text, and optionally id "
    "and doc; documents: raw documents, to split into sentences; auto: by suffix and content "
    f"(default: {CorpusOptions.input_format})"
)
TOP = (
    "write only the N best pairs, 1 or more, of any probability unless --fdr or --threshold is "
    "given"
)
DETECTED = "detected from its name and a sample"
HELP = {
    "--output": f"output file for the pairs, best first: {OUTPUT}",
    # Many languages.
    "--languages": "mine many languages, each read and encoded once: a folder with one "
    "file or folder per language, named by its ISO 639 code (de.txt, pt-BR.jsonl.gz, news.de, "
    "zh/), or a corpus with a field 'language' (.jsonl, .parquet); OUT must be a folder; excludes "
    "--plan and options of SRC and TGT",
    "--pairs": "language pairs to mine, such as de-en,fr-en; requires --languages (default: all)",
    "--format": "format of standard output, tsv, tsv.gz, jsonl, parquet or tmx, or of the files "
    "OUT/XX-YY.ENDING with --languages, also dataset or %% (default: tsv)",
    "--multiway": "also write clusters of sentences that translate each other, at most one per "
    "language, to OUT/multiway.tsv (.jsonl with --format jsonl); requires --languages",
    # Input.
    "--input-format": f"format of the text; {FORMATS}",
    "--max-rejected": "stop if more than N lines of both sides together are rejected, 0 or more; "
    "reasons are blank, not UTF-8, over 10,000 characters and so on (default: no limit)",
    "--keep-duplicates": "also search and pair each copy of a sentence (default: all if monotone, "
    "else the first; .jsonl, .parquet and .dataset have all ids)",
    # Vectors.
    "--encoder": f"encoder of sentences: {ENCODERS} (default: {Default.encoder})",
    "--precision": f"{PRECISION} (default: {Default.precision})",
    "--dim": "numbers per vector in raw --src-embeddings and --tgt-embeddings, 1 or more",
    # Mining.
    "-k": f"nearest neighbours of a sentence, to pair it with; 1 or more (default: {Default.k})",
    "--margin": f"{choices.MARGINS_HELP} (default: {Default.margin})",
    "--retrieval": f"{choices.RETRIEVALS_HELP} (default: {Default.retrieval})",
    "--threshold": "keep pairs with a score above T, which is on the scale of --score: about -9 to "
    "9 for words, 0.8 to 2 for ratio margins (default: pairs with a probability of at least 0.5; "
    "with --score margin, all)",
    "--score": "score of selected pairs; words: from words, numbers, punctuation and neighbours, "
    "with probabilities; margin: only --margin, as in LASER, without probabilities (default: words "
    "if the encoder has word vectors of both languages, otherwise margin)",
    "--align": "same as --score words",
    "--fdr": "keep as many pairs as possible with an estimated share of wrong pairs of at most R, "
    "such as 0.05, below 1; needs --score words (default: pairs of a probability of 0.5 or more)",
    "--all": "write all matched pairs, also improbable ones; conflicts with --fdr and --threshold",
    "--order": "score: each pair once, the best first; input: every line of the input in its "
    "place, with the columns score, probability and reason, as TSV (default: input for --score "
    "texts, and TSV or ||| to TSV, else score)",
    "--repair": f"{REPAIR}, before scoring; --order input adds the repaired texts as columns",
    "--columns": "columns of source and target in a file of pairs, by number from 1 or by name, "
    "such as 3,4 or src,trg (default: by header or content)",
    "--top": f"{TOP} (default: no limit)",
    "--filters": "reject pairs and write them, with the reason, next to OUT unless it is -; names "
    "separated by commas: short (under 3 letters), length (unusual ratio of lengths), copied (both "
    "sides nearly the same), numbers (on both sides, none shared), urls (different addresses), "
    "script, language (other than the corpus's), hub (in over 50 neighbour lists), or web, which "
    f"is {', '.join(choices.FILTER_SETS['web'])} (default: none)",
    "--near-duplicates": "reject pairs that share at least 80%% of their 4-letter sequences "
    "with a better pair (estimated by MinHash; pip install 'bitext-adit[duplicates]')",
    "--keep-identical": "also write pairs with the same text on both sides (default: only --score "
    "margin writes them)",
    "--unmatched-words": "also write each side's words that seem to have no counterpart, in the "
    "fields source_unmatched and target_unmatched of .jsonl, .parquet and .dataset; needs --score "
    "words",
    "--index": "search for neighbours; exact; cells: faster, but misses some, in groups of similar "
    "sentences, such as cells4096:probes=8 (4,096 groups, each sentence in about 8); a FAISS "
    "factory string (pip install 'bitext-adit[faiss]'), such as IVF4096,Flat:nprobe=64; auto: "
    "exact up to 10^11 similarities (lines of SRC x TGT), otherwise cells (default: "
    f"{Default.index})",
    "--search-precision": "number format in which --index exact and cells find candidates; affects "
    f"speed, never results (default: {Default.search_precision}, the fastest on this machine)",
    # Documents.
    "--scope": "corpus: search each sentence in the other corpus; document: only in documents "
    "paired with its own (default: document with --document-pairs or a monotone alignment, "
    "otherwise corpus)",
    "--document-pairs": "file of SOURCE_DOCUMENT TAB TARGET_DOCUMENT lines, or auto, which pairs "
    "translated documents by content and name (default: auto with --scope document or --alignment "
    "monotone, otherwise none)",
    "--alignment": "free: pair sentences in any order; monotone: align paired documents in order, "
    "with merged, split and missing sentences (default: monotone for two folders of documents, "
    "unless --plan, embeddings, or another --retrieval, --index or option here is given; otherwise "
    "free)",
    "--margin-scope": "corpus, document: take the neighbours that --margin compares with from the "
    "whole corpus, or from the paired document (default: as --scope)",
    # The run.
    "--work-dir": "keep sentences, vectors and neighbours in DIR, so that the same command can "
    "resume and later commands reuse them (default: a temporary folder next to OUT)",
    "--memory": "memory limit, such as 800M or 6G (powers of 1024); exits at once if the run "
    "cannot fit (default: half of the machine's memory, without this exit)",
    "--workers": "number of processes on this machine, 1 to its number of cores; above 1 needs pip "
    "install 'bitext-adit[beam]'; all cores are used in any case, and each process takes memory of "
    f"its own (default: {Default.workers})",
    "--runner": "run on another engine by a Beam runner such as FlinkRunner (needs "
    "'bitext-adit[beam]'); put Beam's options last, after -- (default: this machine)",
    "--shards": "minimum number of parts that each side is cut into, 1 or more; more need less "
    "memory each (default: one per worker, more if needed to fit the memory limit)",
    "--plan": "only estimate the run's time, memory and disk, by a trial of the first lines",
}
RATE_HELP = {
    "--output": f"output file for the pairs: {OUTPUT}",
    "--input-format": f"format of SRC and TGT (that of PAIRS is recognised); {FORMATS}",
    "--keep-duplicates": "also search each copy of a sentence, and rate each copy of a pair "
    "(default: only the first; .jsonl, .parquet and .dataset have all ids)",
    "-k": f"nearest neighbours to compare a pair with, 1 or more (default: {Default.k})",
    "--margin": f"score by vectors, {choices.FORMULAS} (default: {Default.margin})",
    "--top": f"{TOP}; needs --order score (default: no limit)",
    "--keep-identical": "also keep pairs with the same text on both sides (default: only --score "
    "margin keeps them)",
    "--score": f"{HELP['--score']}; texts: words without neighbours, in little memory and without "
    "a work folder: each line is written in its place while the input is read, and the first "
    "10,000 lines decide languages and probabilities",
    "--threshold": "keep pairs with a score above T, which is on the scale of --score: about -12 "
    "to 5 for words and texts, 0.8 to 2 for ratio margins (default: all pairs)",
    "--all": "write all pairs, as by default; conflicts with --fdr and --threshold",
    "--fdr": "keep as many pairs as possible with an estimated share of wrong pairs of at most R, "
    "such as 0.05, below 1; needs --score words (default: all pairs)",
    "--filters": f"{HELP['--filters']}; with --order input, the reason is a column",
}
EMBED_HELP = {
    "--lang": "language of IN (a code such as uk or pt-BR; default: detected from a sample)",
    "--vocab": "vocabulary file of a LASER encoder: .fcodes of LASER1, .spm of LASER2, .cvocab of "
    "LASER3 (default: the one in the folder of the checkpoint)",
    "--pretokenized": "lines contain a LASER encoder's subword tokens; blank lines are sentences",
    "--no-normalize": "keep the lengths of the encoder's vectors (default: length 1)",
    "--dtype": "number format of the output; float16 is half as large (default: float32)",
    "--precision": f"{PRECISION} (default: float32; adit mine uses auto)",
}


def make_add_option(group: Group, texts: Mapping[str, str] = HELP) -> Callable[..., object]:
    """Return ``group.add_argument`` for an option of ``texts``, its helps."""
    return lambda option, **more: group.add_argument(option, help=texts[option], **more)


def mine_parser(prog: str, *, many: bool = False) -> argparse.ArgumentParser:
    """Build the parser of ``adit mine``, without SRC and TGT if ``many``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} [options] SRC TGT -o OUT\n       {prog} [options] --languages DIR -o OUTDIR",
        description="Mine the sentence pairs of two corpora that are translations of each other, "
        "or mine every pair of many languages.",
        epilog="SRC and TGT contain one sentence per line, or records with id, document and text; "
        ".gz, .xz, .zst and .bz2 are decompressed. Invalid input exits with status 2 and a "
        "one-line error. 'adit status', 'clean', 'report', 'why' and 'calibrate' read the "
        "work folder (--work-dir) of a run.",
    )
    if not many:
        add_corpora(parser)
    add_output(parser, HELP["--output"], ending="tsv")
    add = make_add_option(parser.add_argument_group("many languages"))
    add("--languages", type=place, metavar="DIR")
    add("--pairs", action="append", metavar="PAIRS")
    add("--format", metavar="ENDING")
    add("--multiway", action="store_true")
    _add_inputs(parser)
    _add_mining_options(parser)
    return parser


def rate_parser(prog: str) -> argparse.ArgumentParser:
    """Build the parser of ``adit rate``, where ``alignment`` is "lines"."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} [options] PAIRS -o OUT\n       {prog} [options] SRC TGT -o OUT",
        description="Clean a parallel corpus: score its pairs like mined pairs, against the "
        "nearest sentences in both languages. PAIRS is a file of sentence pairs; line i "
        "of SRC and line i of TGT are a pair.",
        epilog="PAIRS may be TSV, CSV, columns with |||, JSON lines, Parquet, TMX or a zip file of "
        "OPUS, recognised by content. Options, outputs and the work folder (--work-dir) work as in "
        "adit mine. Neighbourhoods need every line, so output begins after the last one is read. "
        "With --score texts, output begins after 10,000 lines.",
    )
    text = "file of sentence pairs or, with TGT, of source sentences; - for standard input"
    parser.add_argument("source", type=place, metavar="PAIRS", help=text)
    parser.add_argument(
        "target", type=place, metavar="TGT", nargs="?", help="translation of SRC, line by line"
    )
    add_output(parser, RATE_HELP["--output"], ending="tsv")
    _add_inputs(parser, is_rating=True)
    _add_mining_options(parser, is_rating=True)
    parser.set_defaults(alignment=choices.LINES)
    return parser


def _add_inputs(parser: argparse.ArgumentParser, *, is_rating: bool = False) -> None:
    texts = HELP | RATE_HELP if is_rating else HELP
    group = parser.add_argument_group("input")
    if is_rating:
        add_languages(group, corpora=TEXTS_OF_PAIRS, default="as in PAIRS, or detected")
    else:
        add_languages(group, default=DETECTED)
    add_input_formats(group, texts)
    add = make_add_option(group, texts)
    add("--max-rejected", type=int, metavar="N")
    add("--keep-duplicates", action="store_true")
    group = parser.add_argument_group("vectors")
    add_encoder(group)
    add = make_add_option(group)
    add("--precision", choices=ENCODER_PRECISIONS, default=Default.precision)
    text = (
        "vectors of all lines of {}, of one encoder for both sides: .npy, or raw float32 or "
        "float16 with --dim (default: --encoder encodes the text)"
    )
    for side, corpus in CORPORA:
        side_text = text.format(corpus)
        group.add_argument(f"--{side}-embeddings", type=place, metavar="FILE", help=side_text)
    add("--dim", type=int, metavar="D")


def _add_mining_options(parser: argparse.ArgumentParser, *, is_rating: bool = False) -> None:
    texts = HELP | RATE_HELP if is_rating else HELP
    scores = (*choices.SCORES, choices.TEXTS) if is_rating else choices.SCORES
    add = make_add_option(parser.add_argument_group("mining"), texts)
    add("-k", type=int, default=Default.k, metavar="K")
    add("--margin", choices=choices.MARGINS, default=Default.margin)
    if is_rating:
        add_columns(parser)
        add("--order", choices=choices.ORDERS)
    else:
        add("--retrieval", choices=choices.RETRIEVALS, default=Default.retrieval)
    add("--threshold", type=float, default=Default.threshold, metavar="T")
    add("--score", choices=scores)
    add("--align", action="store_const", const="words", dest="score")
    add("--fdr", type=float, metavar="R")
    add("--all", action="store_true")
    add("--top", type=int, metavar="N")
    add("--filters", type=_filters, action="extend", default=[], metavar="NAMES")
    add("--near-duplicates", action="store_true")
    add("--keep-identical", action="store_true")
    add("--unmatched-words", action="store_true")
    add("--index", default=Default.index, metavar="INDEX")
    add("--search-precision", choices=choices.SEARCH_PRECISIONS, default=Default.search_precision)
    if not is_rating:
        add = make_add_option(parser.add_argument_group("documents"))
        add("--scope", choices=SCOPES)
        add("--document-pairs", type=_document_pairs, metavar="FILE")
        add("--alignment", choices=choices.ALIGNMENTS)
        add("--margin-scope", choices=SCOPES)
    add = make_add_option(parser.add_argument_group("run (affects time and memory, never results)"))
    add("--work-dir", type=place, metavar="DIR")
    add("--memory", metavar="SIZE")
    add("--workers", type=int, default=Default.workers, metavar="N")
    add("--runner", metavar="NAME")
    add("--shards", type=int, metavar="N")
    add("--plan", action="store_true")
    add_config(parser)
    add_common_options(parser)
    add_version(parser)


def _filters(text: str) -> tuple[str, ...]:
    sets = (choices.FILTER_SETS.get(name, (name,)) for name in parse_names(text))
    return tuple(dict.fromkeys(chain.from_iterable(sets)))


def _document_pairs(text: str) -> Place | str:
    return text if text == AUTO_PAIRS else place(text)


def add_corpora(
    parser: argparse.ArgumentParser,
    source: str = "source corpus: a file, a folder of files, or - for standard input",
    target: str = "target corpus, in the same forms as SRC",
) -> None:
    """Add the arguments SRC and TGT, with these help texts."""
    parser.add_argument("source", type=place, metavar="SRC", help=source)
    parser.add_argument("target", type=place, metavar="TGT", help=target)


def add_output(parser: argparse.ArgumentParser, text: str, *, ending: str) -> None:
    """Add ``-o``, None if omitted, with ``text`` and stdout's format as help."""
    text = f"{text} (default: -, standard output, as {ending}; a terminal needs an explicit -)"
    parser.add_argument("-o", "--output", type=place, metavar="OUT", help=text)


def add_columns(parser: Group, *, repair: str = HELP["--repair"]) -> None:
    """Add ``--columns``, a list, and ``--repair`` with the help ``repair``."""
    add = make_add_option(parser)
    add("--columns", type=parse_names, action="extend", default=[], metavar="A,B")
    parser.add_argument("--repair", action="store_true", help=repair)


def add_languages(
    group: Group,
    *,
    required: bool = False,
    corpora: tuple[tuple[str, str], ...] = CORPORA,
    default: str = "detected from a sample",
) -> None:
    """Add ``--PREFIX-lang``, a BCP 47 tag or None, for each of ``corpora``.

    ``corpora`` has prefixes, and names for the help, which shows ``default`` unless ``required``.
    """
    default = "" if required else f"; default: {default}"
    for side, corpus in corpora:
        text = f"language of {corpus} (a code such as uk or pt-BR{default})"
        add = group.add_argument
        add(f"--{side}-lang", type=parse_option, required=required, metavar="XX", help=text)


def add_input_format(group: Group, texts: Mapping[str, str] = HELP) -> None:
    """Add the option ``--input-format``, the format of the corpora."""
    add = make_add_option(group, texts)
    add("--input-format", choices=INPUT_FORMATS, default=CorpusOptions.input_format)


def add_input_formats(group: Group, texts: Mapping[str, str] = HELP) -> None:
    """Add ``--input-format``, and optional ``--src-format``, ``--tgt-format``."""
    add_input_format(group, texts)
    for side, corpus in CORPORA:
        text = f"format of {corpus}, if the sides differ; see --input-format (default: its value)"
        group.add_argument(f"--{side}-format", choices=INPUT_FORMATS, help=text)


def add_encoder(group: Group) -> None:
    """Add the option ``--encoder``."""
    make_add_option(group)("--encoder", default=Default.encoder, metavar="SPEC")


def add_texts(parser: argparse.ArgumentParser, source: str, target: str) -> None:
    """Add arguments for ``given_texts``, with these helps of SRC and TGT."""
    add_corpora(parser, source, target)
    text = "output folder for the encoder; a folder of the same command is resumed"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help=text)
    add_languages(parser, required=True)
    add_input_format(parser)


def given_texts(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of ``add_texts`` as keywords of ``TextOptions``."""
    names = ("source", "target", "output", "input_format")
    fields = {name: getattr(args, name) for name in names}
    languages = base_language(args.src_lang), base_language(args.tgt_lang)
    return {"languages": languages, **fields}


def add_embedding(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit embed``."""
    parser.epilog = (
        "Lines without a sentence (blank, undecodable, too long) get the zero vector, so that row "
        "i is always line i; adit mine rejects these lines."
    )
    text = "corpus to encode: a file, or - for standard input"
    parser.add_argument("corpus", type=place, metavar="IN", help=text)
    text = "output file: .npy, or any other suffix for headerless row-major floats"
    add_output(parser, text, ending=".npy")
    add_encoder(parser)
    add = make_add_option(parser, EMBED_HELP)
    add("--lang", type=parse_option, metavar="XX")
    add("--vocab", type=Path, metavar="FILE")
    add("--pretokenized", action="store_true")
    add("--no-normalize", action="store_true")
    add_input_format(parser)
    add("--dtype", choices=("float32", "float16"), default="float32")
    add("--precision", choices=ENCODER_PRECISIONS, default="float32")
    add_common_options(parser)
