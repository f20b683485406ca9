"""Run ``adit align``, and print user errors."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from encoder import load_encoder
from miner.commandline import command
from miner.language_codes import base_language
from miner.languages import seen_language
from miner.storage.places import place
from pipelines.cli.arguments import add_corpora, add_encoder, add_input_formats, add_languages
from pipelines.cli.running import STANDARD, sides_of, supports_pipes

if TYPE_CHECKING:
    from miner.monotone.align import Alignment
    from pipelines.options import CorpusOptions


Bead: TypeAlias = tuple[list[int], list[int], float]
"""Positions of source and of target sentences, and the cost of their alignment."""


class Sentences(NamedTuple):
    """The ids and texts of a document's lines, "" for a rejected line's text."""

    ids: list[str]
    texts: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit align``."""
    parser.epilog = (
        "A line of OUT, such as [3, 4]:[5]:0.413702, has positions in SRC and in TGT, from 0, and "
        "the cost of their alignment, which is lower for more similar sentences. If OUT ends in "
        ".jsonl, it has one object per line with cost, ids and texts. With --document-pairs, SRC "
        "and TGT contain many documents, and OUT must end in .jsonl."
    )
    add = parser.add_argument
    add_corpora(
        parser, "document: one sentence per line, or records, as for adit mine", "its translation"
    )
    text = (
        "output file for the alignment; .jsonl also has texts; .gz and .zst are compressed "
        "(default: standard output)"
    )
    add("-o", "--output", type=place, metavar="OUT", help=text)
    add_encoder(parser)
    add_languages(parser)
    add_input_formats(parser)
    text = "align the document pairs in FILE, an output of adit pair (default: SRC is one document)"
    add("--document-pairs", type=place, metavar="FILE", help=text)


@command(add_arguments, "align-documents")
@supports_pipes("source", "target")
def align_documents(args: argparse.Namespace) -> int:
    """Align the sentences of a document and its translation, in order.

    Sentences can be merged, split or missing.

    Raises:
        ValueError: Printed, not raised, such as ``--document-pairs`` without an output in .jsonl.
    """
    from miner.storage.atomic import atomic_file, check_writable
    from miner.storage.corpus.reader import read_document_pairs
    from miner.storage.pairs import open_compressed, output_format

    if args.output == STANDARD:
        args.output = None
    suffix, compression = output_format(args.output or "")
    is_json = suffix == ".jsonl"
    paired = args.document_pairs is not None
    if paired and not is_json:
        raise ValueError("--document-pairs requires an output (-o) that ends in .jsonl")
    if args.output is not None:
        check_writable(args.output)
    pairs = read_document_pairs(args.document_pairs) if paired else [("", "")]
    sides = [_read(side, by_document=paired) for side in sides_of(args)]
    lines = _alignments(sides, pairs, args, is_json)
    if args.output is None:
        sys.stdout.writelines(lines)
    else:
        with atomic_file(args.output) as path, open_compressed(path, compression) as file:
            file.writelines(line.encode() for line in lines)
    return 0


def _read(side: CorpusOptions, *, by_document: bool) -> dict[str, Sentences]:
    from miner.storage.corpus.entities import escaped_levels
    from miner.storage.corpus.unique_ids import UniqueIds
    from miner.storage.documents.split import open_side
    from pipelines.stages.reading.language import read_beginning

    documents: dict[str, Sentences] = {}
    escapes = escaped_levels(read_beginning(side.path, side.input_format))
    reader = open_side(side.path, side.input_format, escapes=escapes)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(UniqueIds(reader, Path(folder), within_documents=by_document)) as identified,
    ):
        for records in identified:
            for position, sentence_id in enumerate(records.ids()):
                name = records.docs[position] if by_document else ""
                ids, texts = documents.setdefault(name, Sentences([], []))
                ids.append(sentence_id)
                texts.append("" if position in records.rejected else records.texts[position])
        identified.check(side.path)
    documents = {name: document for name, document in documents.items() if any(document.texts)}
    if not documents:
        raise ValueError(f"{side.path}: no line has a sentence; pass a document with text")
    return documents


def _alignments(
    sides: Sequence[dict[str, Sentences]],
    pairs: Sequence[tuple[str, str]],
    args: argparse.Namespace,
    is_json: bool,
) -> Iterator[str]:
    from encoder.words import WordEncoder
    from miner.monotone.align import align
    from miner.monotone.blocks import text_blocks

    languages = [
        (tag and base_language(tag))
        or seen_language([text for document in side.values() for text in document.texts if text])
        for tag, side in zip((args.src_lang, args.tgt_lang), sides, strict=True)
    ]
    encoder = load_encoder(args.encoder).for_languages(languages)
    encoders = [encoder.for_language(language) for language in languages]
    is_bag = isinstance(encoder, WordEncoder)
    present = [(a, b) for a, b in pairs if a in sides[0] and b in sides[1]]
    if not present:
        raise ValueError(
            f"{args.document_pairs}: no pair of documents has sentences in {args.source} and "
            f"{args.target}; pass the files that the pairs were made of, in the same order"
        )
    for names in present:
        documents = [side[name] for name, side in zip(names, sides, strict=True)]
        source, target = (
            text_blocks([*filter(None, document.texts)], side_encoder.encode, is_bag=is_bag)
            for document, side_encoder in zip(documents, encoders, strict=True)
        )
        beads = _beads(align(source, target), documents)
        if is_json:
            yield from _json_lines(beads, documents, names)
        else:
            yield from (f"{source}:{target}:{cost:.6f}\n" for source, target, cost in beads)


def _beads(alignment: Alignment, documents: Sequence[Sentences]) -> Iterator[Bead]:
    filled = [[i for i, text in enumerate(side.texts) if text] for side in documents]
    empty = [deque(i for i, text in enumerate(side.texts) if not text) for side in documents]
    for bead, cost in zip(alignment.beads(), alignment.costs.tolist(), strict=True):
        source, target = ([side[i] for i in rows] for side, rows in zip(filled, bead, strict=True))
        while source and empty[0] and empty[0][0] < source[0]:
            yield [empty[0].popleft()], [], 0.0
        while target and empty[1] and empty[1][0] < target[0]:
            yield [], [empty[1].popleft()], 0.0
        yield source, target, cost
    yield from (([line], [], 0.0) for line in empty[0])
    yield from (([], [line], 0.0) for line in empty[1])


def _json_lines(
    beads: Iterator[Bead], documents: Sequence[Sentences], names: Sequence[str]
) -> Iterator[str]:
    from miner.monotone.blocks import joined

    for *bead, cost in beads:
        sides = list(zip(("source", "target"), bead, documents, names, strict=True))
        record = {
            "cost": cost,
            **{f"{side}_doc": name for side, _, _, name in sides if name},
            **{f"{side}_ids": [doc.ids[i] for i in rows] for side, rows, doc, _ in sides},
            **{
                f"{side}_text": joined([doc.texts[i] for i in rows]) for side, rows, doc, _ in sides
            },
        }
        if record["source_text"] or record["target_text"]:  # else of a line without a sentence
            yield json.dumps(record, ensure_ascii=False) + "\n"
