"""The rows of words, compiled by Numba; ``encoder.bag.features`` has the same in NumPy."""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

_compile = compiled()
_part = compiled_part()
_FIRST, _SECOND, _HALF = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 32)
)


@_part
def _mixed(number: Any) -> Any:
    number = number * _FIRST
    number ^= number >> _HALF
    number *= _SECOND
    return number ^ (number >> _HALF)


@_part
def _spell(pieces: Any, letters: Any, offsets: Any, mark: Any, spelt: Any) -> Any:
    """Write the letters of a word's pieces to ``spelt``, between marks; return how many."""
    length = 1
    for piece in pieces:
        for place in range(offsets[piece], offsets[piece + 1]):
            spelt[length] = letters[place]
            length += 1
    spelt[0] = mark
    spelt[length] = mark
    return length + 1 if length > 1 else 0


@_part
def _hash(spelt: Any, starts: Any, size: Any, base: Any, first: Any, rows: Any, found: Any) -> None:
    """Write the row of each n-gram of ``size`` that begins before ``starts`` to ``found``."""
    for start in range(starts):
        code = np.uint64(size)
        for place in range(size):
            code = code * np.uint64(base) + np.uint64(spelt[start + place])
        found[start] = first + np.int64(_mixed(code) % np.uint64(rows))


@_compile
def rows_of_words(
    ids: Any,
    offsets: Any,
    letters: Any,
    sounds: Any,
    characters: Any,
    marks: Any,
    sizes: Any,
    base: Any,
    first: Any,
    rows: Any,
    found: Any,
    ends: Any,
) -> None:
    """Write the rows of each word to ``found``, one after the other, and where it ends to ``ends``.

    Args:
        ids: the words' pieces.
        offsets: of words in ``ids``.
        letters: ids and offsets of each piece's letters.
        sounds: the same of its consonants.
        characters: the same of the rows of its characters.
        marks: before and after a word's letters, and before and after its sounds.
        sizes: of n-grams of letters, of sounds, and of those that a word begins with.
        base: above all letters.
        first: the row of the first n-gram.
        rows: of n-grams.
        found: room for the rows.
        ends: int64 (W,).
    """
    longest = 0
    for word in range(len(ends)):
        length, count = 0, 0
        for piece in ids[offsets[word] : offsets[word + 1]]:
            length += letters[1][piece + 1] - letters[1][piece]
            count += sounds[1][piece + 1] - sounds[1][piece]
        longest = max(longest, length, count)
    spelt, sounded = np.empty((2, longest + 2), np.int32)
    end = 0
    for word in range(len(ends)):
        pieces = ids[offsets[word] : offsets[word + 1]]
        found[end : end + len(pieces)] = pieces
        end += len(pieces)
        length = _spell(pieces, letters[0], letters[1], marks[0], spelt)
        for size in sizes[0]:
            starts = max(0, length - size + 1)
            _hash(spelt, starts, size, base, first, rows, found[end:])
            end += starts
        count = _spell(pieces, sounds[0], sounds[1], marks[1], sounded)
        for size in sizes[1]:
            starts = max(0, count - size + 1)
            _hash(sounded, starts, size, base, first, rows, found[end:])
            end += starts
        for size in sizes[2]:
            starts = 1 if length >= size else 0
            _hash(spelt, starts, size, base, first, rows, found[end:])
            end += starts
        for piece in pieces:
            for place in range(characters[1][piece], characters[1][piece + 1]):
                found[end] = characters[0][place]
                end += 1
        ends[word] = end
