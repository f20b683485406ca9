"""The options of words learnt from the text of a language; no library is loaded for them."""

from encoder.training.options import Checked, option

MAX_WORDS = 200_000  # of a language that have vectors: Conneau et al. 2018, section 3.1


class WordOptions(Checked):
    """The options of the vectors of a language's words, given its text."""

    dim: int = option(300, "dimensions of vectors learnt from text", low=1)
    epochs: int = option(5, "passes over the text", low=1)
    min_count: int = option(
        5, "words that the text has less often have no vector of their own", low=1
    )
    learning_rate: float = option(0.05, "at its highest", high=1)
    vocabulary_size: int = option(32_000, "subwords of both languages", low=1)
    ngram_rows: int = option(
        131_072, "vectors that n-grams of letters share, of each language", low=1
    )
    seed: int = option(1, "of all that is random", high=2**63 - 1)
