"""The options of word vectors that are learned from text."""

from encoder.training.options import TrainingOptions, ValidatedOptions, inherit_option, option

MAX_WORDS = 200_000  # words with vectors per language (Conneau et al. 2018, section 3.1)


class WordOptions(ValidatedOptions):
    """Options of word vectors, with ValueError as ``ValidatedOptions``."""

    dim: int = option(300, "dimensions of the word vectors", low=1)
    epochs: int = option(5, "number of passes over the text", low=1)
    min_count: int = option(5, "occurrences that a word needs for a vector of its own", low=1)
    learning_rate: float = option(0.05, "first learning rate, which falls to 0", high=1)
    vocabulary_size: int = option(32_000, "number of subwords of both languages together", low=1)
    ngram_rows: int = option(
        131_072, "number of vectors for letter sequences (n-grams), per language", low=1
    )
    seed: int = inherit_option(TrainingOptions, "seed", 1)
