"""Whether files hold documents, rather than a sentence a line, by what is in them."""

import re
from itertools import pairwise

from miner.storage.corpus.filesets import folder_files
from miner.storage.documents.sentences import is_wrapped
from miner.storage.documents.splitting import sentence_spans
from miner.storage.documents.text import read_bytes
from miner.storage.places import Place
from miner.storage.streams import split_compression

# A file of these is one document; a .txt may as well hold a sentence a line.
MARKED = (".md", ".html", ".htm", ".xhtml")
SAMPLED_FILES, SAMPLED_BYTES = 20, 1 << 16
MIN_SENTENCES = 1.5  # in a line, on average
MIN_FILLED = 0.8  # of the lines that the next line's first word would not have fitted into
MAX_WORD = 30  # characters; longer ones are text without spaces

_HTML = re.compile(r"\s*(<!doctype\s+html|<html)", re.IGNORECASE)


def holds_documents(folder: Place) -> bool:
    """Return whether each file of a folder is a document, by suffixes and a sample of texts."""
    files, _ = folder_files(folder)
    suffixes = {file: split_compression(file)[0] for file in files}
    if not files or not all(suffix in (*MARKED, ".txt") for suffix in suffixes.values()):
        return False
    texts = [file for file, suffix in suffixes.items() if suffix == ".txt"]
    sample = texts[:: max(1, len(texts) // SAMPLED_FILES)]
    return sum(map(looks_like_a_document, sample)) * 2 >= len(sample)


def looks_like_a_document(path: Place) -> bool:
    """Return whether a text is wrapped, has lines of several sentences, or is a web page."""
    try:
        data = read_bytes(path, SAMPLED_BYTES)
    except ValueError:  # reported by whoever reads it
        return False
    text = data[:SAMPLED_BYTES].decode("utf-8", errors="replace").replace("\r\n", "\n")
    if _HTML.match(text):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    sentences = sum(1 for line in lines for _ in sentence_spans(line))
    return sentences > MIN_SENTENCES * len(lines) or (is_wrapped(text) and _is_filled(text))


def _is_filled(text: str) -> bool:
    """Return whether lines end where the next one's first word would have made them too long."""
    pairs = [
        (one.rstrip(), other.split()[0])
        for one, other in pairwise(text.split("\n"))
        if one.strip() and other.strip()
    ]
    width = max((len(one) for one, _ in pairs), default=0)
    words = (1 if len(word) > MAX_WORD else len(word) + 1 for _, word in pairs)
    filled = sum(len(one) + word >= width for (one, _), word in zip(pairs, words, strict=True))
    return filled >= MIN_FILLED * len(pairs) > 0
