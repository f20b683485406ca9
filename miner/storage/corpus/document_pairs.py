"""The list of document pairs that ``mine-corpus --scope document`` searches."""

from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.records import CorpusError
from miner.storage.places import AnyPath


def read_document_pairs(path: AnyPath) -> list[tuple[str, str]]:
    """Return the pairs of a source and a target document, each once, in order.

    A line has the ids of both with a tab between them; a score may follow, after another tab.
    Blank lines mean nothing. A CorpusError names a line that is something else.
    """
    pairs: dict[tuple[str, str], None] = {}
    number = 0
    for batch in line_batches(path):
        texts, rejected = decode_lines(batch)
        for position, text in enumerate(texts):
            number += 1
            if text.strip() or position in rejected:
                try:
                    pairs[_pair(text)] = None
                except ValueError:
                    raise CorpusError(
                        f"{path}: line {number} is not a source and a target document with "
                        "a tab between them"
                    ) from None
    if not pairs:
        raise CorpusError(f"{path}: holds no pair of documents")
    return list(pairs)


def _pair(line: str) -> tuple[str, str]:
    source, target, *score = line.split("\t", 2)
    if not (source and target):
        raise ValueError(line)
    if any(score):
        float(*score)
    return source, target
