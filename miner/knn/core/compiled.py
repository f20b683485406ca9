"""Inner loops of the search, compiled by Numba (``miner.compiling``)."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from miner.compiling import compiled, compiled_part

BLOCK = 32  # a constant number compiles to vector instructions without a loop
LANES = 8
TINY = np.finfo(np.float32).tiny
TO_WHOLE = 1.5 * 2.0**52  # adding it rounds a float64 to an integer, in vector instructions
BELOW = np.float32(-np.inf)
SIGN, REST = np.uint32(0x8000), np.uint32(0x7FFF)  # bits of float16

# Reordered sums and fused products don't change results: bounds include their rounding, and cosines
# are exact in float64 in any order (miner.knn.core.rescore).
FASTMATH = {"nnan", "nsz", "contract", "reassoc"}
_compile = compiled(fastmath=FASTMATH)
_part = compiled_part(fastmath=FASTMATH)


def _as_float(value: Any) -> Any:
    """Convert int32, float32 or bfloat16 bits to float32, in compiled code."""
    raise NotImplementedError("compiled code only")


@overload(_as_float, inline="always")
def _as_float_of(value: Any) -> Any:
    def of_bits(value: Any) -> Any:
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)

    def of_number(value: Any) -> Any:
        return np.float32(value)

    return of_bits if value == types.uint16 else of_number


@_part
def _holds(ids: Any, number: Any) -> Any:
    for other in ids:
        if other == number:
            return True
    return False


@_part
def _exceeds(tile: Any, row: Any, start: Any, slack: Any, row_code: Any, column_codes: Any) -> Any:
    """Return whether one of BLOCK bounds exceeds its row's or column's floor."""
    row_scale, row_bias, row_floor = row_code
    column_scale, column_bias, column_floor = column_codes
    hits = np.int32(0)
    for column in range(np.uint64(start), np.uint64(start + BLOCK)):
        value = _as_float(tile[row, column]) * (row_scale * column_scale[column])
        bound = value + abs(value) * slack + (row_bias + column_bias[column])
        hits |= np.int32(1) if bound > min(row_floor, column_floor[column]) else np.int32(0)
    return hits != 0


@_part
def longer(numbers: Any) -> Any:
    """Copy an array (N,) to one (2 N,), whose second half is undefined."""
    return np.concatenate((numbers, np.empty_like(numbers)))


@_compile
def hits(tile: Any, slack: Any, row_codes: Any, column_codes: Any) -> Any:
    """Return the hits in a tile (R, C) of products.

    A hit is a product whose bound (``Codes``) exceeds the floor of its row or of its column.
    Products are int32, float32, or bits of bfloat16 as uint16. ``slack`` is that of both sides.
    ``row_codes`` are ``scale`` and ``bias`` of the rows' ``Codes``, and floors, float32 (R,) each,
    and ``column_codes`` the columns' ``scale``, ``bias`` and floors, (C,) each.

    Returns:
        Places, row times C plus column, int32 (H,), and bounds, float32 (H,), by row, then column.
    """
    (scale, bias, floor), (column_scale, column_bias, column_floor) = row_codes, column_codes
    rows, columns = tile.shape
    places, bounds = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    count = 0
    for row in range(rows):
        row_code = row_scale, row_bias, row_floor = scale[row], bias[row], floor[row]
        for start in range(0, columns, BLOCK):
            whole = start + BLOCK <= columns
            if whole and not _exceeds(tile, row, start, slack, row_code, column_codes):
                continue
            if count + BLOCK > len(places):
                places, bounds = longer(places), longer(bounds)
            for column in range(start, min(start + BLOCK, columns)):
                value = _as_float(tile[row, column]) * (row_scale * column_scale[column])
                bound = value + abs(value) * slack + (row_bias + column_bias[column])
                if bound > min(row_floor, column_floor[column]):
                    places[count], bounds[count] = row * columns + column, bound
                    count += 1
    return places[:count], bounds[:count]


@_compile
def keep_largest(tile_hits: Any, numbers: Any, bounds: Any, ids: Any) -> None:
    """Insert a tile's hits into lists of each row's largest bounds.

    ``tile_hits`` are from ``hits``, and ``numbers`` (C,) the ids of the tile's columns. ``bounds``
    and ``ids`` (R, K) are the lists, largest first, updated in place. Of equal bounds, the first
    to be inserted stay.
    """
    columns = np.uint32(len(numbers))
    for place, bound in zip(*tile_hits):  # noqa: B905  # Numba knows no strict
        row, column = divmod(np.uint32(place), columns)
        rank = bounds.shape[1] - 1
        if not bound > bounds[row, rank]:
            continue
        while rank > 0 and bounds[row, rank - 1] < bound:
            bounds[row, rank], ids[row, rank] = bounds[row, rank - 1], ids[row, rank - 1]
            rank -= 1
        bounds[row, rank], ids[row, rank] = bound, numbers[column]


@_compile
def round_centred(rows: Any, mean: Any, limits: Any, codes: Any) -> None:
    """Round rows (N, D) minus their ``mean`` (D,) to codes within ``limits``.

    Limits are the largest code, at most 127, and the largest sum of eight codes of one sign that an
    ``InstructionSet`` adds in 16 bits, eight times the largest code if it adds none. ``codes`` are
    four arrays to fill: codes, int8 or int16 (N, D), and, float32 (N,) each, the units that codes
    count, the lengths of centred rows, and the lengths of rounding errors.
    """
    numbers, steps, lengths, errors = codes
    largest, largest_sum = np.float32(limits[0]), np.float32(limits[1])
    dim = rows.shape[1]
    centred = np.zeros((dim + 15) // 16 * 16, dtype=np.float32)
    for row in range(len(rows)):
        highest, length, error = TINY, np.float32(0), np.float32(0)
        for place in range(dim):
            value = rows[row, place] - mean[place]
            centred[place] = value
            highest = max(highest, abs(value))
            length += value * value
        step = max(highest / largest, TINY)
        if largest_sum < 8 * largest:
            highest = np.float32(0)
            for start in range(0, len(centred), 16):
                for half in range(start, start + 4, 2):
                    above, below = np.float32(0), np.float32(0)
                    for at in range(half, half + 16, 4):
                        for value in (centred[at], centred[at + 1]):
                            above += max(value, np.float32(0))
                            below -= min(value, np.float32(0))
                    highest = max(highest, max(above, below))
            # Rounding adds up to a half to each of the eight codes.
            step = max(step, highest / (largest_sum - np.float32(4)))
        for place in range(dim):
            rounded = np.rint(centred[place] / step)
            numbers[row, place] = np.int8(rounded)
            left = centred[place] - rounded * step
            error += left * left
        steps[row], lengths[row], errors[row] = step, np.sqrt(length), np.sqrt(error)


def _floats_of(row: Any, floats: Any) -> None:
    """Copy a row of float32 or of float16's bits to ``floats``.

    Finite float16 are divided by 2**112, which is exact. Only compiled code may call it.
    """
    raise NotImplementedError("compiled code only")


@overload(_floats_of, inline="always")
def _floats_of_type(row: Any, floats: Any) -> Any:
    def of_halves(row: Any, floats: Any) -> None:
        bits = floats.view(np.uint32)
        for place in range(len(row)):
            half = np.uint32(row[place])
            bits[place] = (half & REST) << np.uint32(13) | (half & SIGN) << np.uint32(16)

    def of_floats(row: Any, floats: Any) -> None:
        floats[:] = row

    return of_halves if row.dtype == types.uint16 else of_floats


@compiled()  # keeps the order of sums, for the same bits everywhere
def unit_rows(vectors: Any, rows: Any, scales: Any, out: Any, places: Any) -> None:
    """Scale rows to length 1, rounded to multiples of 2**-26.

    ``vectors`` (R, D) are float32, or float16's bits as uint16, finite and not zero. ``scales`` are
    1, or 2**112 for float16, and 2**26. Row ``rows[i]`` is written to ``out[places[i]]``, float32.
    """
    unit, factor = scales
    lanes, floats = np.empty(LANES), np.empty(vectors.shape[1], dtype=np.float32)
    row = np.empty(vectors.shape[1])
    whole, step = len(row) - len(row) % LANES, 1 / factor
    for number in range(len(rows)):
        _floats_of(vectors[np.uint64(rows[number])], floats)
        for place in range(len(row)):
            row[place] = np.float64(floats[place]) * unit
        lanes[:] = 0
        for start in range(0, whole, LANES):
            for lane in range(LANES):
                lanes[lane] += row[start + lane] * row[start + lane]
        for place in range(whole, len(row)):
            lanes[place - whole] += row[place] * row[place]
        low = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        high = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        scale = factor / np.sqrt(low + high)
        units = out[np.uint64(places[number])]
        for place in range(len(row)):
            units[place] = (row[place] * scale + TO_WHOLE - TO_WHOLE) * step


@_compile
def rows_in(cells: Any, start: Any, stop: Any) -> Any:
    """Return ascending positions in ``cells`` with one in [start, stop)."""
    rows, count = np.empty(len(cells), dtype=np.int64), 0
    for row in range(len(cells)):
        for cell in cells[row]:
            if start <= cell < stop:
                rows[count] = row
                count += 1
                break
    return rows[:count].copy()


@_compile
def add_rows(rows: Any, groups: Any, sums: Any) -> None:
    """Add row i (N, D) to ``sums[groups[i]]`` (G, D) in place, in order of i."""
    for row in range(len(rows)):
        total = sums[groups[row]]
        for place in range(len(total)):
            total[place] += rows[row, place]


@_part
def _cosine(x: Any, y: Any) -> Any:
    total = 0.0
    for place in range(len(x)):
        total += np.float64(x[place]) * np.float64(y[place])
    return np.float32(total)


@_part
def _precedes(cosine: Any, number: Any, other_cosine: Any, other: Any) -> Any:
    return cosine > other_cosine or (cosine == other_cosine and number < other)


@_part
def _place(ids: Any, cosines: Any, number: Any, cosine: Any) -> None:
    """Insert a neighbour into a sorted list, if it precedes the last one."""
    place = len(ids) - 1
    if not _precedes(cosine, number, cosines[place], ids[place]):
        return
    while place > 0 and _precedes(cosine, number, cosines[place - 1], ids[place - 1]):
        ids[place], cosines[place] = ids[place - 1], cosines[place - 1]
        place -= 1
    ids[place], cosines[place] = number, cosine


@_compile
def merge(ids: Any, cosines: Any, rows: Any, other_ids: Any, other_cosines: Any) -> None:
    """Merge neighbours of some rows into the lists of all rows in place.

    ``ids`` and ``cosines`` (N, K), K >= 1, are all lists, which keep the best K distinct ones, best
    first, ties by id. ``other_ids`` and ``other_cosines`` (P, L) are the neighbours of ``rows``
    (P,) to merge, also best first. Ids are -1, and cosines -inf, at the end of shorter lists.
    """
    for place in range(len(rows)):
        row = rows[place]
        for rank in range(other_ids.shape[1]):
            number, cosine = other_ids[place, rank], other_cosines[place, rank]
            if number < 0 or cosine < cosines[row, -1]:
                break
            if not _holds(ids[row], number):
                _place(ids[row], cosines[row], number, cosine)


@_part
def _rough_cosine(x: Any, y: Any) -> Any:
    total = np.float32(0)
    for place in range(len(x)):
        total += x[place] * y[place]
    return total


@_compile
def take(
    tile_hits: Any, places: Any, rows: Any, names: Any, both: Any, rounding: Any, repeated: Any
) -> None:
    """Insert a tile's hits into the neighbours of its rows and columns.

    A pair's exact cosine is computed if its bound, and its cosine in float32, may exceed the floor
    of its row or column. ``places``, ``rows``, ``names`` and ``both`` are tuples, for the side of
    rows and that of columns.

    Args:
        tile_hits: from ``hits``.
        places: the positions of the tile's rows (R,) and columns (C,) in their sides.
        rows: unit rows (N, D) and (M, D).
        names: the ids of all rows, (N,) and (M,).
        both: ``TopK`` of all rows, which are updated in place.
        rounding: the largest error of a cosine in float32.
        repeated: whether pairs may be in other tiles, or in ``both`` already.
    """
    (row_places, column_places), (x, y), (row_names, column_names) = places, rows, names
    (ids, cosines, floors), (column_ids, column_cosines, column_floors) = both
    columns = np.uint32(len(column_places))
    for place, bound in zip(*tile_hits):  # noqa: B905  # Numba knows no strict
        own, beside = divmod(np.uint32(place), columns)
        row, column = row_places[own], column_places[beside]
        floor, column_floor = floors[row], column_floors[column]
        if not bound > min(floor, column_floor):
            continue
        if not _rough_cosine(x[row], y[column]) + rounding > min(floor, column_floor):
            continue
        cosine = _cosine(x[row], y[column])
        name, column_name = np.int64(row_names[row]), np.int64(column_names[column])
        if cosine > floor and not (repeated and _holds(ids[row], column_name)):
            _place(ids[row], cosines[row], column_name, cosine)
            floors[row] = max(floor, np.nextafter(cosines[row, -1], BELOW))
        if cosine > column_floor and not (repeated and _holds(column_ids[column], name)):
            _place(column_ids[column], column_cosines[column], name, cosine)
            column_floors[column] = max(
                column_floor, np.nextafter(column_cosines[column, -1], BELOW)
            )


@_compile
def rescore(queries: Any, base: Any, candidates: Any, ids: Any, cosines: Any) -> None:
    """Insert candidates into the neighbours of queries, by exact cosines.

    Queries (N, D) and base (M, D) are unit rows. ``candidates`` (N, C) are distinct positions in
    the base, or -1. ``ids`` and ``cosines`` (N, K) are the neighbours, updated in place. K is at
    least 1, and no candidate may be among the neighbours already.
    """
    for row in range(len(queries)):
        for number in candidates[row]:
            if number >= 0:
                cosine = _cosine(queries[row], base[number])
                _place(ids[row], cosines[row], np.int64(number), cosine)
