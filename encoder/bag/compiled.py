"""Words as texts between spaces, their cuts into pieces, and their rows, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

_compile = compiled()
_part = compiled_part()
_PRIME, _FIBONACCI = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)
_SHIFT, _ONE, _SPACE = np.uint64(32), np.uint64(1), np.uint8(32)


@_part
def _longest(text: Any, start: Any, stop: Any) -> Any:
    longest, before = 0, start
    for place in range(start, stop):
        if text[place] == _SPACE:
            longest = max(longest, place - before)
            before = place + 1
    return max(longest, stop - before)


@_part
def _same(kept: Any, text: Any, start: Any, stop: Any) -> Any:
    if kept[0] != stop - start:
        return False
    for place in range(start, stop):
        if kept[1 + place - start] != text[place]:
            return False
    return True


@_compile
def number_texts(
    text: Any, lengths: Any, table: Any, before: Any, numbers: Any, counts: Any, new: Any
) -> Any:
    """Assign numbers to the texts between the spaces of the sentences in ``text``.

    In a sentence with a text that is too long to be kept, all numbers are 0. ``table`` has keys,
    uint64, a power of two of slots for hashes, of which half are used at most; values, int32, the
    number of the text of each slot, -1 in empty ones; and uint8, a row for the bytes of each of the
    ``before`` texts, after their number. Written are ``numbers``, int32, of the texts of each
    sentence; their ``counts``, int64 (S,); and ``new``, uint8, the texts met for the first time, a
    space after each. Returned are how many texts there are now, and the bytes of ``new`` in use;
    or, where there is no more room, -1 and 0.
    """
    keys, values, kept = table
    last = np.uint64(len(keys) - 1)
    count, place, stop, used = before, 0, 0, 0
    for sentence in range(len(lengths)):
        start, first = stop, place
        stop += lengths[sentence]
        short = _longest(text, start, stop) < kept.shape[1]
        key = np.uint64(0)
        for end in range(start, stop + 1):
            if end < stop and text[end] != _SPACE:
                key = (key ^ np.uint64(text[end])) * _PRIME
                continue
            number = 0
            if short:
                key = (key + _ONE) * _FIBONACCI
                key ^= key >> _SHIFT
                slot = key & last
                while values[slot] >= 0 and not (
                    keys[slot] == key and _same(kept[values[slot]], text, start, end)
                ):
                    slot = (slot + _ONE) & last
                if values[slot] < 0:
                    if 2 * count >= len(keys):
                        return -1, 0
                    keys[slot] = key
                    values[slot] = count
                    kept[count, 0] = end - start
                    for byte in range(start, end):
                        kept[count, 1 + byte - start] = text[byte]
                    count += 1
                    for byte in range(start, end):
                        new[used] = text[byte]
                        used += 1
                    new[used] = _SPACE
                    used += 1
                number = values[slot]
            numbers[place] = number
            place += 1
            start = end + 1
            key = np.uint64(0)
        counts[sentence] = place - first
    return count, used


@_part
def _with(number: Any, character: Any) -> Any:
    number = (number ^ np.uint64(character)) * _FIBONACCI
    return number ^ (number >> _SHIFT)


@_compile
def enter_pieces(characters: Any, offsets: Any, hashes: Any, slots: Any) -> None:
    """Write the hash of each piece, and each piece's number to the slot that its hash says."""
    last = np.uint64(len(slots) - 1)
    for piece in range(len(hashes)):
        number = np.uint64(0)
        for place in range(offsets[piece], offsets[piece + 1]):
            number = _with(number, characters[place])
        hashes[piece] = number
        slot = number & last
        while slots[slot] >= 0:
            slot = (slot + _ONE) & last
        slots[slot] = piece


@_part
def _found(number: Any, hashes: Any, slots: Any) -> Any:
    """Return the piece of this hash; -1 if there is none."""
    last = np.uint64(len(slots) - 1)
    slot = number & last
    while slots[slot] >= 0 and hashes[slots[slot]] != number:
        slot = (slot + _ONE) & last
    return slots[slot]


@_compile
def compare_cuts(
    characters: Any, offsets: Any, table: Any, unknown: Any, longest: Any, margins: Any, costs: Any
) -> None:
    """Write margins and costs of words: the scores of the two best cuts up to each character."""
    hashes, slots, scores = table
    most = 0
    for word in range(len(margins)):
        most = max(most, offsets[word + 1] - offsets[word])
    best, second = np.empty(most + 1), np.empty(most + 1)
    for word in range(len(margins)):
        first = offsets[word]
        length = offsets[word + 1] - first
        best[:] = -np.inf
        second[:] = -np.inf
        best[0] = 0
        for start in range(length):
            number = np.uint64(0)
            for end in range(start + 1, min(start + longest, length) + 1):
                number = _with(number, characters[first + end - 1])
                piece = _found(number, hashes, slots)
                if piece < 0 and end > start + 1:
                    continue
                score = unknown if piece < 0 else scores[piece]
                for total in (best[start] + score, second[start] + score):
                    if total > best[end]:
                        second[end] = best[end]
                        best[end] = total
                    elif total > second[end]:
                        second[end] = total
        costs[word] = -best[length]
        margins[word] = (best[length] - second[length]) / max(1, length)


@_part
def _mixed(number: Any) -> Any:
    number = number * _FIBONACCI
    number ^= number >> _SHIFT
    number *= _SECOND
    return number ^ (number >> _SHIFT)


@_part
def _spell(pieces: Any, letters: Any, mark: Any, spelt: Any) -> Any:
    """Write the letters of a word's pieces to ``spelt``, between marks; return how many."""
    ids, offsets = letters
    length = 1
    for piece in pieces:
        for place in range(offsets[piece], offsets[piece + 1]):
            spelt[length] = ids[place]
            length += 1
    spelt[0] = mark
    spelt[length] = mark
    return length + 1 if length > 1 else 0


@_part
def _hash(spelt: Any, starts: Any, size: Any, hashed: Any, found: Any) -> None:
    """Write the row of each n-gram of ``size`` that begins before ``starts`` to ``found``."""
    base, first, rows = hashed
    for start in range(starts):
        code = np.uint64(size)
        for place in range(size):
            code = code * np.uint64(base) + np.uint64(spelt[start + place])
        found[start] = first + np.int64(_mixed(code) % np.uint64(rows))


@_compile
def rows_of_words(
    words: Any, spelling: Any, marks: Any, sizes: Any, hashed: Any, found: Any, ends: Any
) -> None:
    """Write the rows of each word to ``found``, one after the other, and where it ends to ``ends``.

    ``words`` are ids and offsets of their pieces; ``spelling`` is the same of each piece's letters,
    of its consonants, and of the rows of its characters. ``marks`` are before and after a word's
    letters, and its sounds; ``sizes`` of n-grams of letters, of sounds, and of those that a word
    begins with. ``hashed`` are a number above all letters, the first row of n-grams, and how many.
    """
    ids, offsets = words
    letters, sounds, characters = spelling
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
        length = _spell(pieces, letters, marks[0], spelt)
        for size in sizes[0]:
            starts = max(0, length - size + 1)
            _hash(spelt, starts, size, hashed, found[end:])
            end += starts
        count = _spell(pieces, sounds, marks[1], sounded)
        for size in sizes[1]:
            starts = max(0, count - size + 1)
            _hash(sounded, starts, size, hashed, found[end:])
            end += starts
        for size in sizes[2]:
            starts = 1 if length >= size else 0
            _hash(spelt, starts, size, hashed, found[end:])
            end += starts
        for piece in pieces:
            for place in range(characters[1][piece], characters[1][piece + 1]):
                found[end] = characters[0][place]
                end += 1
        ends[word] = end
