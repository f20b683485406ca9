"""The network's sums over neighbouring tokens, compiled by Numba.

Each sentence is computed by itself, token by token in a fixed order, so its numbers do not depend
on what is beside it. Axes: ``T`` tokens of S sentences laid end to end, ``E`` numbers of a piece,
``C`` channels of a branch, ``B`` branches. Token ``t`` is piece ``ids[t]``, and sentence ``s`` has
the tokens ``offsets[s]`` to ``offsets[s + 1]``.
"""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

WIDTHS = (2, 3, 5)  # tokens that a branch looks at
BEFORE = (0, 1, 2)  # of them, those before the one it looks from
EMBEDDING, CHANNELS = 512, 256
HIDDEN = len(WIDTHS) * CHANNELS
FEATURES = EMBEDDING + HIDDEN
F = np.float32

# Nothing is reordered or fused but the sums of one function: vectors are the same on every CPU.
LANES = 16
_compile = compiled(fastmath={"nnan", "nsz"})
_part = compiled_part(fastmath={"nnan", "nsz"})


@_part
def _add_inputs(pieces: Any, scales: Any, ids: Any, hidden: Any) -> None:
    """Add the layer's input to what of the hidden rows, float32 (T, B C), is positive."""
    for token in range(len(ids)):
        for start in range(0, HIDDEN, CHANNELS):
            row = pieces[ids[token], EMBEDDING + start :]
            scale = scales[ids[token], (EMBEDDING + start) // CHANNELS]
            own = hidden[token, start : start + CHANNELS]
            for channel in range(CHANNELS):
                own[channel] = max(own[channel], F(0)) + F(row[channel]) * scale


@_compile
def first_layer(pieces: Any, scales: Any, ids: Any, offsets: Any, bias: Any, hidden: Any) -> None:
    """Write the first convolution of all branches, of a bias (B C,), to ``hidden``: (T, B C).

    ``pieces`` has a row for each piece: its vector (E), the layer's input (B C), and what that
    makes of each place of each branch's window (C each); ``scales`` has one for each C of them.
    """
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        for token in range(first, stop):
            hidden[token] = bias
        for token in range(first, stop):
            row, column = pieces[ids[token]], FEATURES
            for branch in range(len(WIDTHS)):
                for step in range(WIDTHS[branch]):
                    place = token + BEFORE[branch] - step
                    if first <= place < stop:
                        scale = scales[ids[token], column // CHANNELS]
                        own = hidden[place, branch * CHANNELS : (branch + 1) * CHANNELS]
                        for channel in range(CHANNELS):
                            own[channel] += F(row[column + channel]) * scale
                    column += CHANNELS
        _add_inputs(pieces, scales, ids[first:stop], hidden[first:stop])


@_compile
def second_layer(
    products: Any, scales: Any, column_scales: Any, offsets: Any, branch: Any, bias: Any, own: Any
) -> None:
    """Add to one branch of the hidden rows, ``own`` (T, C), its second convolution.

    ``products`` (T, places C), times the scales of their rows and columns, are what the tokens
    make of each place of the window.
    """
    total = np.empty(CHANNELS, F)
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        for token in range(first, stop):
            total[:] = bias
            for step in range(WIDTHS[branch]):
                place = token - BEFORE[branch] + step
                if first <= place < stop:
                    scale, column = scales[place], step * CHANNELS
                    for channel in range(CHANNELS):
                        product = F(products[place, column + channel])
                        total[channel] += product * (scale * column_scales[column + channel])
            for channel in range(CHANNELS):
                own[token, channel] += max(total[channel], F(0))


@_part
def _moments(row: Any, epsilon: Any) -> Any:
    """Return the mean of a row, and what brings its variance to 1, or below by ``epsilon``.

    Rows have a multiple of LANES numbers. These are summed in lanes, then the lanes in order.
    """
    lanes, total = np.zeros(LANES, F), F(0)
    for start in range(0, len(row), LANES):
        for lane in range(LANES):
            lanes[lane] += row[start + lane]
    for lane in range(LANES):
        total += lanes[lane]
    mean = total / F(len(row))
    lanes[:], total = 0, F(0)
    for start in range(0, len(row), LANES):
        for lane in range(LANES):
            lanes[lane] += (row[start + lane] - mean) * (row[start + lane] - mean)
    for lane in range(LANES):
        total += lanes[lane]
    return mean, F(1) / np.sqrt(total / F(len(row)) + epsilon)


@_compile
def normalize(rows: Any, epsilon: Any, scale: Any, shift: Any, out: Any) -> None:
    """Write rows (R, N) with mean 0 and variance 1, times a scale, and shifted (N,)."""
    for number in range(len(rows)):
        mean, norm = _moments(rows[number], epsilon)
        for place in range(rows.shape[1]):
            out[number, place] = (rows[number, place] - mean) * norm * scale[place] + shift[place]


@_compile
def pool(pieces: Any, scales: Any, ids: Any, offsets: Any, hidden: Any, eps: Any, out: Any) -> None:
    """Write the sums (S, E + B C) of the tokens' features, each of mean 0 and variance 1."""
    features, total = np.empty(FEATURES, F), np.empty(FEATURES, np.float64)
    for sentence in range(len(offsets) - 1):
        total[:] = 0
        for token in range(offsets[sentence], offsets[sentence + 1]):
            row, own = pieces[ids[token]], scales[ids[token]]
            for place in range(EMBEDDING):
                features[place] = F(row[place]) * own[place // CHANNELS]
            features[EMBEDDING:] = hidden[token]
            mean, norm = _moments(features, eps)
            for place in range(FEATURES):
                total[place] += (features[place] - mean) * norm
        out[sentence] = total


@_compile
def round_rows(rows: Any, codes: Any, largest: Any, scales: Any) -> None:
    """Write rows (R, C) as ``codes``, whole numbers up to ``largest``, times ``scales`` (R,)."""
    for number in range(len(codes)):
        top = F(0)
        for place in range(codes.shape[1]):
            top = max(top, abs(rows[number, place]))
        scales[number] = top / largest
        inverse = largest / top if top > 0 else F(0)
        for place in range(codes.shape[1]):
            codes[number, place] = np.rint(rows[number, place] * inverse)
