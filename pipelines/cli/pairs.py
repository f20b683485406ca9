"""Rate the pairs of one file, and convert files of pairs."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from miner.choices import AS_INPUT, BY_SCORE
from miner.commandline import add_common_options, command
from miner.storage.layout import LINES_FOLDER, WorkFolder
from miner.storage.places import Place, place
from miner.storage.writers import Origin, Output
from pipelines.cli import running
from pipelines.cli.arguments import add_columns, add_languages, add_output
from pipelines.cli.running import shown_output, supports_pipes

if TYPE_CHECKING:
    from miner.storage.pair_files.base import FilePair, PairFile

logger = logging.getLogger(__name__)

SAMPLED_PAIRS = 8192  # that show which fields the pairs have


@contextmanager
def rated_pairs(args: argparse.Namespace) -> Iterator[Callable[[Place], None]]:
    """Set corpora of lines in ``args``, and yield a function that writes OUT.

    A file of pairs is written as two files of lines to the work folder, or to a temporary one. The
    function takes the work folder of the finished run. It does nothing if the run itself writes.

    Raises:
        ValueError: The file is not recognised, or options conflict.
    """
    from miner.storage.artefacts import open_artefact
    from miner.storage.pair_files.repair import repaired
    from miner.storage.pair_files.sides import pairs_of_corpora, write_sides
    from pipelines.stages.ordered import write_in_order

    is_tsv = Output.named(args.output).ending.lower() == ".tsv"
    with tempfile.TemporaryDirectory(prefix="adit-") as temporary:
        if args.target is not None:
            if args.columns:
                raise ValueError("--columns conflicts with TGT; omit one of them")
            formats = (args.src_format or args.input_format, args.tgt_format or args.input_format)
            pairs = pairs_of_corpora(args.source, args.target, formats)
        else:
            pairs = _open(args)
        args.order = args.order or (AS_INPUT if is_tsv and pairs.has_lines else BY_SCORE)
        if args.order == AS_INPUT and not is_tsv:
            raise ValueError(f"{args.output}: --order input writes TSV; name an output in .tsv")
        if args.order == AS_INPUT and args.top is not None:
            raise ValueError("--top conflicts with --order input; add --order score")
        if args.repair:
            pairs = repaired(pairs)
        if args.repair or args.target is None:
            folder = args.work_dir / LINES_FOLDER if args.work_dir else Path(temporary)
            args.source, args.target = write_sides(pairs, folder)
            args.input_format = "lines"
        if args.order == BY_SCORE:
            yield lambda work_dir: None
            return

        def write(work_dir: Place) -> None:
            ordered = open_artefact(WorkFolder(work_dir).ordered)
            write_in_order(args.output, pairs, ordered, add_texts=args.repair)

        yield write


def _open(args: argparse.Namespace) -> PairFile:
    """Open a file of pairs, and set languages that only the file names."""
    from miner.storage.pair_files import open_pairs

    given = args.src_lang, args.tgt_lang
    pairs = open_pairs(args.source, columns=args.columns, languages=given)
    logger.info("%s: %s", args.source, pairs.layout)
    source, target = pairs.languages
    args.src_lang, args.tgt_lang = given[0] or source, given[1] or target
    return pairs


def _add_conversion(parser: argparse.ArgumentParser) -> None:
    help_text = "file of sentence pairs in any format that adit rate reads, or - for standard input"
    parser.add_argument("source", type=place, metavar="PAIRS", help=help_text)
    add_output(parser, "output file, in any format that adit mine writes", ending="tsv")
    add_columns(parser, repair="repair mojibake, entities, invisible characters, spaces and quotes")
    more = "which also selects them among more than two languages in PAIRS"
    corpora = ("src", f"the source texts, {more}"), ("tgt", f"the target texts, {more}")
    add_languages(parser, corpora=corpora, default="as in PAIRS")
    add_common_options(parser)


@command(_add_conversion, "adit convert")
@supports_pipes("source", ending="tsv")
def convert_pairs(args: argparse.Namespace) -> int:
    """Convert a file of sentence pairs to another format.

    Lines without a pair are skipped and counted.
    """
    from miner.storage.pair_files.base import BLANK
    from miner.storage.pair_files.repair import repaired
    from miner.storage.pair_files.sides import pair_schema, pair_table
    from miner.storage.pairs import check_output, write_pairs

    running.set_up_logging(args)
    pairs = _open(args)
    if args.repair:
        pairs = repaired(pairs)
    origin = Origin(languages=(args.src_lang, args.tgt_lang))
    check_output(args.output, origin)
    problems: Counter[str] = Counter()
    first_problem = ""

    def whole() -> Iterator[FilePair]:
        nonlocal first_problem
        for pair in pairs.read():
            if pair.problem or not all(map(str.strip, pair.texts or ("", ""))):
                problem = pair.problem or BLANK
                first_problem = first_problem or pair.place
                problems[problem] += 1
            else:
                yield pair

    remaining = whole()
    sample = list(islice(remaining, SAMPLED_PAIRS))
    schema = pair_schema(sample)
    following = chain(sample, remaining)
    blocks = iter(lambda: list(islice(following, SAMPLED_PAIRS)), [])
    tables = (pair_table(block, schema) for block in blocks)
    written = write_pairs(args.output, tables, origin=origin, schema=schema)
    if not args.quiet:
        skipped = ", ".join(f"{count:,} {problem}" for problem, count in problems.items())
        sys.stderr.write(f"{shown_output(args)}: {written:,} pairs written\n")
        if skipped:
            sys.stderr.write(f"skipped: {skipped}; the first is {first_problem}\n")
    return 0
