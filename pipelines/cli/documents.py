"""What ``adit mine`` does with raw documents where its options do not say so."""

import argparse
import logging
from collections.abc import Sequence

from miner.choices import FREE, MONOTONE
from miner.storage.layout import CORPUS, DOCUMENT
from miner.storage.places import Place
from miner.storage.streams import split_compression
from pipelines.cli.arguments import AUTO_PAIRS
from pipelines.options import MiningOptions

logger = logging.getLogger(__name__)


def decide_documents(args: argparse.Namespace, corpora: Sequence[Place] = ()) -> None:
    """Set the arguments that were left out: the formats of folders, ``scope`` and ``alignment``.

    Where all ``corpora`` are folders of documents, they are paired and aligned in order, unless
    options ask for something else.

    Raises:
        ValueError: the options contradict each other.
    """
    are_documents = _are_documents(args, corpora)
    if args.document_pairs is not None and args.scope == CORPUS:
        raise ValueError("--document-pairs: is for --scope document; leave out --scope corpus")
    asked = (args.scope, args.document_pairs, args.alignment, args.margin_scope)
    is_open = (
        all(option is None for option in asked)
        and args.retrieval == MiningOptions.retrieval
        and args.index == MiningOptions.index
        and not (args.src_embeddings or args.plan)
    )
    if are_documents and is_open:
        args.alignment = MONOTONE
        logger.info(
            "folders of documents: those that are translations of each other are paired and "
            "aligned in order; --scope corpus compares all sentences instead"
        )
    args.alignment = args.alignment or FREE
    is_free = args.document_pairs is None and args.alignment == FREE
    args.scope = args.scope or (CORPUS if is_free else DOCUMENT)
    if args.document_pairs == AUTO_PAIRS:
        args.document_pairs = None


def _are_documents(args: argparse.Namespace, corpora: Sequence[Place]) -> bool:
    """Return whether all corpora are folders of documents; those that are will be read as such."""
    from miner.storage.documents.detect import holds_documents, looks_like_a_document

    found = []
    for side, corpus in zip(("src_format", "tgt_format"), corpora, strict=False):
        chosen = getattr(args, side) or args.input_format
        is_open = chosen in ("auto", "documents")
        found.append(is_open and corpus.is_dir() and holds_documents(corpus))
        if found[-1]:
            setattr(args, side, "documents")
        is_text = corpus.is_file() and split_compression(corpus)[0] in ("", ".txt")
        if chosen == "auto" and is_text and looks_like_a_document(corpus):
            logger.warning(
                "%s: looks like a document, not like a sentence a line; --input-format documents "
                "splits it into sentences",
                corpus,
            )
    return bool(found) and all(found)
