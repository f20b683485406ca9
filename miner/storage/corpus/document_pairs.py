"""The list of document pairs that ``mine-corpus --scope document`` searches."""

from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.records import CorpusError
from miner.storage.places import AnyPath


def read_document_pairs(path: AnyPath) -> list[tuple[str, str]]:
    """Return the pairs of a source and a target document, each once, in order.

    A line has the ids of both with a tab between them; a score may follow, after another tab.
    Blank lines mean nothing.

    Raises:
        CorpusError: the file cannot be read, a line is something else, or there is no pair.
    """
    pairs: dict[tuple[str, str], None] = {}
    number = 0
    for batch in line_batches(path):
        texts, rejected = decode_lines(batch)
        for position, text in enumerate(texts):
            number += 1
            source, tab, rest = text.partition("\t")
            target, _, score = rest.partition("\t")
            is_pair = source and target and (not score or _is_number(score))
            if position in rejected or (text.strip() and not is_pair):
                raise CorpusError(
                    f"{path}: line {number} is not a source and a target document with "
                    "a tab between them"
                )
            if tab and text.strip():
                pairs[source, target] = None
    if not pairs:
        raise CorpusError(f"{path}: holds no pair of documents")
    return list(pairs)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
