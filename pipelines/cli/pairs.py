"""Rate pairs for ``adit rate``, and convert them, printing user errors."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from miner.choices import AS_INPUT, BY_SCORE, TEXTS
from miner.commandline import add_common_options, command
from miner.storage.atomic import atomic_file, naming_errors
from miner.storage.layout import LINES_FOLDER, SIDES, WorkFolder
from miner.storage.places import Place, place
from miner.storage.streams import Pipe
from miner.storage.writers import Origin, Output
from miner.wording import counted
from pipelines.cli import arguments, running
from pipelines.cli.running import shown_output, supports_pipes
from pipelines.options import WORDS, CorpusOptions, check_files, check_kept
from pipelines.progress import Monitor

if TYPE_CHECKING:
    from miner.storage.pair_files.base import FilePair, PairFile

logger = logging.getLogger(__name__)

CORPUS_FORMATS = ("src_format", "tgt_format", "input_format")  # options of SRC and TGT
SAMPLED_PAIRS = 8192  # that show which fields the pairs have
# The only options that --score texts works with.
STREAMED = (
    *("source", "target", "output", "src-lang", "tgt-lang", "src-format", "tgt-format"),
    *("input-format", "columns", "repair", "encoder", "score", "order", "threshold", "filters"),
    "keep-identical",
)


@contextmanager
def rated_pairs(args: argparse.Namespace) -> Iterator[Callable[[Place], None]]:
    """Prepare a run of ``adit rate``, and yield a function that writes OUT.

    In ``args``, an order of None is decided, and languages by a file of pairs. For it, or with
    ``--repair``, source, target and formats become two files of lines in the work folder or a
    temporary folder. The function takes the finished run's work folder. With ``--order score``, it
    does nothing. ValueError says that options conflict, or a file is not recognised or has no pair,
    OSError that one cannot be read or written, ModuleNotFoundError that ftfy is missing.
    """
    from miner.storage.artefacts import open_artefact
    from miner.storage.pair_files.repair import repaired
    from miner.storage.pair_files.sides import ORIGINALS_FILE, write_sides, write_texts
    from pipelines.stages.ordered import ordered_lines, write_lines

    with tempfile.TemporaryDirectory(prefix="adit-") as temporary:
        given = _pairs_to_rate(args)
        pairs = repaired(given) if args.repair else given
        if args.repair or args.target is None:
            folder = args.work_dir / LINES_FOLDER if args.work_dir else Path(temporary)
            args.source, args.target = write_sides(pairs, folder, name=args.source)
            args.input_format, args.src_format, args.tgt_format = "lines", None, None
        if args.repair and args.order == BY_SCORE:
            write_texts(given, folder / ORIGINALS_FILE)

        def write(work_dir: Place) -> None:
            if args.order == AS_INPUT:
                lines = ordered_lines(pairs, open_artefact(WorkFolder(work_dir).ordered))
                with _output_file(args) as file:
                    write_lines(file, pairs.header, lines, add_texts=args.repair)

        yield write


def check_streamed(options: Mapping[str, object]) -> None:
    """Check the ``set_options`` of a command with ``--score texts``.

    Raises:
        ValueError: An option, or its value, conflicts with rating while lines are read.
    """
    conflict = next((name for name in options if name not in STREAMED), None)
    if options.get("order") == BY_SCORE:
        conflict = f"order {BY_SCORE}"
    if "hub" in options.get("filters", ()):  # type: ignore[operator]
        conflict = "filters hub"
    if conflict:
        dashes = "-" if len(conflict) == 1 else "--"
        raise ValueError(
            f"{dashes}{conflict} conflicts with --score {TEXTS}, which rates lines as they are "
            "read; omit one of them"
        )


def rate_in_passing(args: argparse.Namespace, monitor: Monitor) -> int:
    """Rate lines by their texts while they are read (``--score texts``).

    OUT or, if ``args.to_stdout``, stdout is written, and 0 is returned. Unless ``args.quiet``,
    counts go to stderr. In ``args``, the order and maybe the encoder and languages are set.
    ValueError says that a file is unreadable or not recognised, that its first 10,000 lines have no
    pair, that options conflict, or that a language has no word vectors or filter. OSError says that
    a file of pairs is missing or OUT cannot be written, ModuleNotFoundError that ftfy is.
    """
    from encoder import BEST, BUNDLED
    from miner.storage.pair_files.repair import repaired
    from pipelines.run.texts import FIRST_LINES, TextRater
    from pipelines.stages.ordered import RatedLine, write_lines

    given = _pairs_to_rate(args)
    pairs = repaired(given) if args.repair else given
    if args.encoder == BEST:  # The best encoder has the words of the bundled one.
        args.encoder = BUNDLED
    sides = (
        CorpusOptions(path=Path(side), language=language)
        for side, language in zip(SIDES, (args.src_lang, args.tgt_lang), strict=True)
    )
    options = replace(running.mining_options(args, Path(), *sides), score=WORDS)
    check_kept(options)
    read = pairs.read()
    first = list(islice(read, FIRST_LINES))
    rater = TextRater.fit(options, first, name=args.source)
    reasons: Counter[str] = Counter()
    wrong = 0.0

    def rated() -> Iterator[RatedLine]:
        nonlocal wrong
        with monitor.stage("rate", None, "lines") as meter:
            for line in rater.rate_lines(chain(first, read)):
                reasons[line.reason] += 1
                wrong += 0 if line.reason else 1 - line.probability
                meter.advance(1)
                yield line

    with _output_file(args) as file:
        write_lines(file, pairs.header, rated(), add_texts=args.repair)
    if not args.quiet:
        total, kept = reasons.total(), reasons.pop("", 0)
        counts = [f"{total:,} read", f"{kept:,} kept"]
        counts += [f"{count:,} {reason}" for reason, count in reasons.most_common()]
        sys.stderr.write(f"lines: {', '.join(counts)}\n")
        sys.stderr.write(f"estimated error rate: {wrong / kept:.1%}\n" if kept else "")
        sys.stderr.write(f"signature: {rater.signature}\n")
    return 0


@contextmanager
def _output_file(args: argparse.Namespace) -> Iterator[IO[bytes]]:
    from miner.storage.pairs import open_compressed

    if args.to_stdout:
        with naming_errors("standard output"):
            yield sys.stdout.buffer
        return
    output = Output.named(args.output)
    with atomic_file(output.path) as place, open_compressed(place, output.compression) as file:
        yield file


def _pairs_to_rate(args: argparse.Namespace) -> PairFile:
    from miner.storage.pair_files.sides import pairs_of_corpora

    is_tsv = Output.named(args.output).ending.lower() == ".tsv"
    if args.target is not None:
        if args.columns:
            raise ValueError("--columns conflicts with TGT; omit one of them")
        formats = (args.src_format or args.input_format, args.tgt_format or args.input_format)
        pairs = pairs_of_corpora(args.source, args.target, formats)
    elif options := [each for each in CORPUS_FORMATS if getattr(args, each) not in (None, "auto")]:
        option = f"--{options[0].replace('_', '-')}"
        raise ValueError(f"{option} requires TGT; omit {option}: the format of pairs is recognised")
    else:
        pairs = _open(args)
    in_order = args.score == TEXTS or (is_tsv and pairs.has_lines)
    args.order = args.order or (AS_INPUT if in_order else BY_SCORE)
    if args.order == AS_INPUT and not is_tsv:
        raise ValueError(
            f"{args.output}: {f'--score {TEXTS}' if args.score == TEXTS else '--order input'} "
            "writes TSV; name an output in .tsv"
        )
    if args.order == AS_INPUT and args.top is not None:
        raise ValueError("--top conflicts with --order input; add --order score")
    if args.order == AS_INPUT and args.unmatched_words:
        raise ValueError(
            "--unmatched-words conflicts with --order input; pass --order score, and an output in "
            ".jsonl"
        )
    return pairs


def _open(args: argparse.Namespace) -> PairFile:
    from miner.storage.pair_files import file_of_pairs, open_pairs

    if not isinstance(args.source, Pipe):
        check_files([file_of_pairs(args.source)], file_of_pairs(args.output))
    given = args.src_lang, args.tgt_lang
    pairs = open_pairs(args.source, columns=args.columns, languages=given)
    if isinstance(args.source, Pipe):
        args.source.release()
    logger.info("%s: %s", args.source, pairs.layout)
    source, target = pairs.languages
    args.src_lang, args.tgt_lang = given[0] or source, given[1] or target
    return pairs


def _add_conversion(parser: argparse.ArgumentParser) -> None:
    help_text = "file of sentence pairs in any format that adit rate reads, or - for standard input"
    parser.add_argument("source", type=place, metavar="PAIRS", help=help_text)
    text = "output file in a format of adit mine: .tsv, .jsonl, .parquet, .tmx, .dataset, NAME.%%"
    arguments.add_output(parser, text, ending="tsv")
    arguments.add_columns(parser, repair=arguments.REPAIR)
    arguments.add_languages(parser, corpora=arguments.TEXTS_OF_PAIRS, default="as in PAIRS")
    add_common_options(parser)


@command(_add_conversion, "adit convert")
@supports_pipes("source", ending="tsv", streams=lambda args: True)
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
    stream = sys.stdout.buffer if args.to_stdout else None
    with naming_errors(shown_output(args)):
        written = write_pairs(args.output, tables, origin=origin, schema=schema, stream=stream)
    if not args.quiet:
        skipped = ", ".join(f"{count:,} {problem}" for problem, count in problems.items())
        sys.stderr.write(f"{shown_output(args)}: {counted(written, 'pairs')} written\n")
        if skipped:
            lines = counted(problems.total(), "lines")
            sys.stderr.write(f"skipped: {lines} ({skipped}), first {first_problem}\n")
    return 0
