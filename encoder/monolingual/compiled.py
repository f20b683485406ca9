"""The inner loop of ``encoder.monolingual.skipgram``, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

F = np.float32
MULTIPLIER, INCREMENT = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
SHIFT = np.uint64(33)
UNIT = F(1 / (1 << 31))  # scales 31 random bits to [0, 1)
NEGATIVES_PER_WORD = 10  # negatives that a word's contexts share, to save time

# Vector instructions add in any order, so a result depends on the CPU, but not on threads.
_compile = compiled(fastmath={"reassoc", "contract", "nsz"})
_part = compiled_part(fastmath={"reassoc", "contract", "nsz"})


@_part
def _random_bits(state: Any) -> Any:
    # The high bits of Knuth's MMIX generator.
    state[0] = state[0] * MULTIPLIER + INCREMENT
    return state[0] >> SHIFT


@_part
def _dot(first: Any, second: Any) -> Any:
    total = F(0)
    for column in range(len(first)):
        total += first[column] * second[column]
    return total


@_part
def _add(total: Any, row: Any, factor: Any) -> None:
    for column in range(len(total)):
        total[column] += factor * row[column]


@_part
def _learn(hidden: Any, gradient: Any, output: Any, label: Any, rate: Any) -> None:
    error = rate * (label - F(1) / (F(1) + np.exp(-_dot(hidden, output))))
    for column in range(len(hidden)):
        value = output[column]
        output[column] = value + error * hidden[column]
        gradient[column] += error * value


@_part
def _learn_word(
    inputs: Any, word_rows: Any, outputs: Any, context: Any, sampling: Any, rate: Any, state: Any
) -> None:
    dim, (noise, share) = inputs.shape[1], sampling
    hidden, gradient = np.zeros(dim, F), np.zeros(dim, F)
    for row in word_rows:
        _add(hidden, inputs[row], F(1) / F(len(word_rows)))
    for context_word in context:
        _learn(hidden, gradient, outputs[context_word], F(1), rate)
    for _ in range(NEGATIVES_PER_WORD):
        negative = noise[np.int64(_random_bits(state)) % len(noise)]
        _learn(hidden, gradient, outputs[negative], F(0), rate * share * F(len(context)))
    for row in word_rows:
        _add(inputs[row], gradient, F(1))


@_compile
def train_sentences(words: Any, text: Any, sampling: Any, rate: Any, state: Any) -> None:
    """Train word vectors once on S sentences, in place.

    Args:
        words: R inputs, float32 (R, D); outputs of V words as contexts, float32 (V, D); numbers of
            the inputs of each word, int32; and their offsets, int64 (V + 1,).
        text: the words of the sentences, int32, and their offsets, int64 (S + 1,).
        sampling: the probability to keep a word, float32 (V,); words, int32, from which negatives
            are drawn; the most context words per side; negatives per context word, float32.
        rate: the learning rate, float32.
        state: that of the random generator, uint64 (1,), which is advanced.
    """
    inputs, outputs, rows, row_offsets = words
    ids, offsets = text
    keep_rates, noise, window, negatives = sampling
    share = negatives / F(NEGATIVES_PER_WORD)
    kept = np.empty(len(ids) + 1, np.int32)
    context = np.empty(2 * window, np.int32)
    for sentence in range(len(offsets) - 1):
        count = 0
        for position in range(offsets[sentence], offsets[sentence + 1]):
            kept[count] = ids[position]
            count += F(_random_bits(state)) * UNIT < keep_rates[ids[position]]
        for position in range(count):
            radius = 1 + np.int64(_random_bits(state)) % window
            first, last = max(0, position - radius), min(count, position + radius + 1)
            before, after = position - first, last - position - 1
            context[:before] = kept[first:position]
            context[before : before + after] = kept[position + 1 : last]
            if before + after:
                word_rows = rows[row_offsets[kept[position]] : row_offsets[kept[position] + 1]]
                context_words = context[: before + after]
                _learn_word(inputs, word_rows, outputs, context_words, (noise, share), rate, state)
