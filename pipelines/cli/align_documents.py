"""Run ``align-documents``: which sentences of two translated documents belong together."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from encoder import ENCODERS, load_encoder
from miner.commandline import add_version, run_command
from miner.storage.corpus.formats import INPUT_FORMATS
from miner.storage.places import place

if TYPE_CHECKING:
    from miner.monotone.align import Alignment
    from miner.storage.places import Place


def align_documents(argv: Sequence[str] | None = None, prog: str = "align-documents") -> int:
    """Run ``align-documents``; return the exit status."""
    parser = align_parser(prog)
    args = parser.parse_args(argv)
    return run_command(lambda: _align(args), parser.prog)


def align_parser(prog: str = "align-documents") -> argparse.ArgumentParser:
    """Return the parser of ``align-documents``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Align the sentences of a document and of its translation, in order; sentences "
        "may be merged, split or missing.",
        epilog="A line of OUT, such as [3, 4]:[5]:0.4137, has positions in SRC and in TGT, from 0, "
        "and what it costs to align them: the lower, the more alike. An OUT that ends in .jsonl "
        "has an object a line with cost, ids and texts.",
    )
    add = parser.add_argument
    add("source", type=place, metavar="SRC", help="document with a sentence a line, or as records")
    add("target", type=place, metavar="TGT", help="its translation")
    add("-o", "--output", type=place, metavar="OUT", help="default: standard output")
    add("--encoder", default="mini", metavar="SPEC", help=f"{ENCODERS} (default: mini)")
    add("--src-lang", metavar="XX", help="language of SRC (ISO 639): LASER's prepare text by it")
    add("--tgt-lang", metavar="XX", help="language of TGT")
    add(
        "--input-format",
        choices=INPUT_FORMATS,
        default="auto",
        help="default: by suffix and content",
    )
    add_version(parser)
    return parser


def _align(args: argparse.Namespace) -> int:
    from encoder.words import WordEncoder
    from miner.monotone.align import align
    from miner.monotone.blocks import text_blocks
    from miner.storage.atomic import atomic_file, check_writable

    if args.output is not None:
        check_writable(args.output)
    encoder = load_encoder(args.encoder)
    sides = [_read(path, args.input_format) for path in (args.source, args.target)]
    source, target = (
        text_blocks(
            texts,
            encoder.for_language(language).encode,
            is_bag=isinstance(encoder, WordEncoder),
        )
        for (_, texts), language in zip(sides, (args.src_lang, args.tgt_lang), strict=True)
    )
    found = align(source, target)
    is_json = PurePath(str(args.output)).suffix == ".jsonl"
    lines = _json_lines(found, sides) if is_json else _lines(found)
    if args.output is None:
        sys.stdout.writelines(lines)
        return 0
    with atomic_file(args.output) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8", newline="\n")
    return 0


def _read(path: Place, input_format: str) -> tuple[list[str], list[str]]:
    """Ids and texts of a document; empty texts where a line holds none."""
    from miner.storage.corpus.reader import open_corpus

    ids: list[str] = []
    texts: list[str] = []
    for records in open_corpus(path, input_format=input_format):
        ids += records.ids
        texts += [
            "" if position in records.rejected else text
            for position, text in enumerate(records.texts)
        ]
    return ids, texts


def _lines(found: Alignment) -> Iterator[str]:
    """As Vecalign writes them."""
    for (source, target), cost in zip(found.beads(), found.costs, strict=True):
        yield f"{list(source)}:{list(target)}:{cost:.6f}\n"


def _json_lines(found: Alignment, sides: Sequence[tuple[list[str], list[str]]]) -> Iterator[str]:
    from miner.monotone.blocks import joined

    for bead, cost in zip(found.beads(), found.costs.tolist(), strict=True):
        record: dict[str, object] = {"cost": cost}
        for side, positions, (ids, _) in zip(("source", "target"), bead, sides, strict=True):
            record[f"{side}_ids"] = [ids[position] for position in positions]
        for side, positions, (_, texts) in zip(("source", "target"), bead, sides, strict=True):
            record[f"{side}_text"] = joined([texts[position] for position in positions])
        yield json.dumps(record, ensure_ascii=False) + "\n"
