"""Words as numbers, pieces and table rows, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

_compile = compiled()
_part = compiled_part()
_PRIME, _FIBONACCI = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)
_SHIFT, _ONE, _SPACE = np.uint64(32), np.uint64(1), np.uint8(32)


@_part
def _longest_text(text: Any, start: Any, stop: Any) -> Any:
    longest, first = 0, start
    for index in range(start, stop):
        if text[index] == _SPACE:
            longest = max(longest, index - first)
            first = index + 1
    return max(longest, stop - first)


@_part
def _equals_text(stored: Any, text: Any, start: Any, stop: Any) -> Any:
    if stored[0] != stop - start:
        return False
    for index in range(start, stop):
        if stored[1 + index - start] != text[index]:
            return False
    return True


@_compile
def number_texts(
    text: Any, lengths: Any, table: Any, before: Any, numbers: Any, counts: Any, new: Any
) -> Any:
    """Assign numbers to the texts of S sentences, by a hash table.

    A text is between spaces, and may be empty. Equal texts have equal numbers, except that all
    texts of a sentence have the number 0 if one is too long for the rows of ``table``. The result
    is the next new number, and the used bytes of ``new``; or -1 and 0, with ``table`` partly
    extended, if a number would reach half the slots.

    Args:
        text: uint8, the sentences' bytes, end to end.
        lengths: int64 (S,), the number of bytes of each sentence.
        table: extended in place: hashes of slots, uint64, a power of two in number; text numbers of
            slots, int32, -1 if empty; and per text number a row of length and bytes, uint8.
        before: the first new number, above 0 and the numbers in the table.
        numbers: int32, receives the number of each text, in order.
        counts: int64 (S,), receives how many texts each sentence has.
        new: uint8, receives the texts that were added, each with a space after it.
    """
    keys, values, kept = table
    last = np.uint64(len(keys) - 1)
    count, position, stop, used = before, 0, 0, 0
    for sentence in range(len(lengths)):
        start, first = stop, position
        stop += lengths[sentence]
        short = _longest_text(text, start, stop) < kept.shape[1]
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
                    keys[slot] == key and _equals_text(kept[values[slot]], text, start, end)
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
                        new[used + byte - start] = text[byte]
                    count += 1
                    used += end - start + 1
                    new[used - 1] = _SPACE
                number = values[slot]
            numbers[position] = number
            position += 1
            start = end + 1
            key = np.uint64(0)
        counts[sentence] = position - first
    return count, used


@_part
def _extend_hash(hash_value: Any, character: Any) -> Any:
    hash_value = (hash_value ^ np.uint64(character)) * _FIBONACCI
    return hash_value ^ (hash_value >> _SHIFT)


@_compile
def enter_pieces(characters: Any, offsets: Any, hashes: Any, slots: Any) -> None:
    """Enter V pieces into a hash table, in place.

    Piece i has the code points ``characters[offsets[i] : offsets[i + 1]]``, int32, with int64
    offsets (V + 1,). ``hashes``, uint64 (V,), get the pieces' hashes. ``slots``, int32, a power of
    two above V in number, are -1 at first, and get the number i of the piece in each used slot.
    """
    last = np.uint64(len(slots) - 1)
    for piece in range(len(hashes)):
        hash_value = np.uint64(0)
        for position in range(offsets[piece], offsets[piece + 1]):
            hash_value = _extend_hash(hash_value, characters[position])
        hashes[piece] = hash_value
        slot = hash_value & last
        while slots[slot] >= 0:
            slot = (slot + _ONE) & last
        slots[slot] = piece


@_part
def _find_piece(hash_value: Any, hashes: Any, slots: Any) -> Any:
    last = np.uint64(len(slots) - 1)
    slot = hash_value & last
    while slots[slot] >= 0 and hashes[slots[slot]] != hash_value:
        slot = (slot + _ONE) & last
    return slots[slot]


@_compile
def compare_cuts(
    characters: Any, offsets: Any, table: Any, unknown: Any, longest: Any, margins: Any, costs: Any
) -> None:
    """Compare the best two cuts of each of W words into pieces.

    Word i has the code points ``characters[offsets[i] : offsets[i + 1]]``, int32, with int64
    offsets (W + 1,). ``table`` is hashes and slots of ``enter_pieces``, and scores of pieces,
    float64 (V,). ``unknown`` is the score of a character without a piece, ``longest`` the length of
    the longest piece. ``costs``, float32 (W,), get the negative score of the best cut, and
    ``margins``, float32 (W,), its lead per character, infinite for one cut.
    """
    hashes, slots, scores = table
    max_length = 0
    for word in range(len(margins)):
        max_length = max(max_length, offsets[word + 1] - offsets[word])
    best, second = np.empty(max_length + 1), np.empty(max_length + 1)
    for word in range(len(margins)):
        first = offsets[word]
        length = offsets[word + 1] - first
        best[:] = -np.inf
        second[:] = -np.inf
        best[0] = 0
        for start in range(length):
            hash_value = np.uint64(0)
            for end in range(start + 1, min(start + longest, length) + 1):
                hash_value = _extend_hash(hash_value, characters[first + end - 1])
                piece = _find_piece(hash_value, hashes, slots)
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
def _mix(number: Any) -> Any:
    number = number * _FIBONACCI
    number ^= number >> _SHIFT
    number *= _SECOND
    return number ^ (number >> _SHIFT)


@_part
def _spell(pieces: Any, letters: Any, mark: Any, spelling: Any) -> Any:
    ids, offsets = letters
    length = 1
    for piece in pieces:
        for index in range(offsets[piece], offsets[piece + 1]):
            spelling[length] = ids[index]
            length += 1
    spelling[0] = mark
    spelling[length] = mark
    return length + 1 if length > 1 else 0


@_part
def _hash_ngrams(spelling: Any, length: Any, size: Any, hashing: Any, rows: Any) -> Any:
    base, first, row_count = hashing
    starts = max(0, length - size + 1)
    for start in range(starts):
        code = np.uint64(size)
        for index in range(size):
            code = code * np.uint64(base) + np.uint64(spelling[start + index])
        rows[start] = first + np.int64(_mix(code) % np.uint64(row_count))
    return starts


@_compile
def rows_of_words(words: Any, spelling: Any, marks: Any, sizes: Any, hashing: Any) -> Any:
    """Return the rows of each word's features in a bag's table.

    They are int32, each word's pieces first, and the words' offsets in them, int64 (W + 1,).

    Args:
        words: a tuple of int32 ids and int64 offsets (W + 1,), the pieces of W words.
        spelling: such tuples for letters, sounds and rows of characters of each of V pieces.
        marks: the code at both ends of a word's letters, and that at both ends of its sounds.
        sizes: int64 arrays of the sizes of n-grams of letters, of sounds, and of word stems.
        hashing: a number above all codes, the first row of n-grams, and the number of their rows.
    """
    ids, offsets = words
    letters, sounds, characters = spelling
    longest, room = 0, len(ids)
    for word in range(len(offsets) - 1):
        length, count = 2, 2
        for piece in ids[offsets[word] : offsets[word + 1]]:
            length += letters[1][piece + 1] - letters[1][piece]
            count += sounds[1][piece + 1] - sounds[1][piece]
            room += characters[1][piece + 1] - characters[1][piece]
        longest = max(longest, length, count)
        room += len(sizes[0]) * length + len(sizes[1]) * count + len(sizes[2])
    letter_codes, sound_codes = np.empty((2, longest), np.int32)
    rows, ends, end = np.empty(room, np.int32), np.zeros(len(offsets), np.int64), 0
    for word in range(len(offsets) - 1):
        pieces = ids[offsets[word] : offsets[word + 1]]
        rows[end : end + len(pieces)] = pieces
        end += len(pieces)
        length = _spell(pieces, letters, marks[0], letter_codes)
        for size in sizes[0]:
            end += _hash_ngrams(letter_codes, length, size, hashing, rows[end:])
        count = _spell(pieces, sounds, marks[1], sound_codes)
        for size in sizes[1]:
            end += _hash_ngrams(sound_codes, count, size, hashing, rows[end:])
        for size in sizes[2]:
            end += _hash_ngrams(letter_codes, min(length, size), size, hashing, rows[end:])
        for piece in pieces:
            for index in range(characters[1][piece], characters[1][piece + 1]):
                rows[end] = characters[0][index]
                end += 1
        ends[word + 1] = end
    return rows[:end], ends
