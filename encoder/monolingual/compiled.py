"""The inner loop of skip-gram, compiled by Numba; ``encoder.monolingual.skipgram`` says what of."""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

F = np.float32
MULTIPLIER, INCREMENT = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
SHIFT = np.uint64(33)
LARGEST = F(1 / (1 << 31))
DRAWN = 10  # negatives of a word, shared by its contexts: half the time of as many for each of them

# Sums in any order, which vector instructions need: a result depends on the processor, but neither
# on threads nor on chance.
_compile = compiled(fastmath={"reassoc", "contract", "nsz"})
_part = compiled_part(fastmath={"reassoc", "contract", "nsz"})


@_part
def _next(state: Any) -> Any:
    """Return 31 random bits (the high ones of Knuth's MMIX generator) and advance the state."""
    state[0] = state[0] * MULTIPLIER + INCREMENT
    return state[0] >> SHIFT


@_part
def _dot(first: Any, second: Any) -> Any:
    total = F(0)
    for place in range(len(first)):
        total += first[place] * second[place]
    return total


@_part
def _add(total: Any, row: Any, factor: Any) -> None:
    for place in range(len(total)):
        total[place] += factor * row[place]


@_part
def _learn(hidden: Any, gradient: Any, output: Any, label: Any, rate: Any) -> None:
    """Take one step of logistic regression: of the output row, and of the gradient of the input."""
    error = rate * (label - F(1) / (F(1) + np.exp(-_dot(hidden, output))))
    for place in range(len(hidden)):
        old = output[place]
        output[place] = old + error * hidden[place]
        gradient[place] += error * old


@_part
def _learn_word(
    inputs: Any, own: Any, outputs: Any, around: Any, noise: Any, share: Any, rate: Any, state: Any
) -> None:
    """Learn that a word, the mean of its ``own`` rows, has others ``around`` it."""
    dim = inputs.shape[1]
    hidden, gradient = np.zeros(dim, F), np.zeros(dim, F)
    for row in own:
        _add(hidden, inputs[row], F(1) / F(len(own)))
    for other in around:
        _learn(hidden, gradient, outputs[other], F(1), rate)
    for _ in range(DRAWN):
        wrong = noise[np.int64(_next(state)) % len(noise)]
        _learn(hidden, gradient, outputs[wrong], F(0), rate * share * F(len(around)))
    for row in own:
        _add(inputs[row], gradient, F(1))


@_compile
def train_sentences(words: Any, text: Any, drawn: Any, rate: Any, state: Any) -> None:
    """Go once over sentences, changing the inputs and outputs of words and ``state``.

    Args:
        words: the inputs that they are the means of, float32 (R, D), and the outputs of the V words
            as contexts, float32 (V, D); the rows of inputs of one word after the other, int32, and
            where those of each begin, int64 (V + 1,).
        text: words of the sentences, int32, and where those of each begin, int64 (S + 1,).
        drawn: the probability that a word is looked at, float32 (V,); words as often as they are
            drawn as negatives, int32; how many are looked at on either side, at most; and negatives
            for each context, float32: those of a word share the ``DRAWN`` ones.
        rate: the learning rate, float32.
        state: of the random numbers, uint64 (1,).
    """
    inputs, outputs, rows, row_offsets = words
    ids, offsets = text
    kept, noise, window, negatives = drawn
    share = negatives / F(DRAWN)
    left = np.empty(len(ids) + 1, np.int32)
    around = np.empty(2 * window, np.int32)
    for sentence in range(len(offsets) - 1):
        count = 0
        for place in range(offsets[sentence], offsets[sentence + 1]):
            left[count] = ids[place]
            count += F(_next(state)) * LARGEST < kept[ids[place]]
        for place in range(count):
            reach = 1 + np.int64(_next(state)) % window
            first, last = max(0, place - reach), min(count, place + reach + 1)
            before, after = place - first, last - place - 1
            around[:before] = left[first:place]
            around[before : before + after] = left[place + 1 : last]
            if before + after:
                own = rows[row_offsets[left[place]] : row_offsets[left[place] + 1]]
                others = around[: before + after]
                _learn_word(inputs, own, outputs, others, noise, share, rate, state)
