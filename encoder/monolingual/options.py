"""The options of word vectors that are learned from text."""

from encoder.training.options import ValidatedOptions, option

MAX_WORDS = 200_000  # words with vectors per language (Conneau et al. 2018, section 3.1)


class WordOptions(ValidatedOptions):
    """Options of the vectors of a language's words, with their defaults."""

    dim: int = option(300, "dimensions of the word vectors", low=1)
    epochs: int = option(5, "number of passes over the text", low=1)
    min_count: int = option(5, "minimum count of a word with its own vector", low=1)
    learning_rate: float = option(0.05, "maximum learning rate, 0 to 1", high=1)
    vocabulary_size: int = option(32_000, "number of subwords of both languages", low=1)
    ngram_rows: int = option(
        131_072, "number of vectors that character n-grams share, per language", low=1
    )
    seed: int = option(1, "random seed", high=2**63 - 1)
