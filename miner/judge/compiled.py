"""Features of pairs from their words, compiled by Numba.

Products of words are summed exactly, in any order. All other sums are in the order of the words. So
the features of a pair are the same bits on every CPU, whichever pairs surround it.
"""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part
from miner.judge.parts import NAME, START

SCALE = 2.0**26  # squared, it is half of what float64 counts without a gap
TILE = 4  # rows that two are multiplied by at once: they are loaded once for all
STEPS = (0.15, 0.25, 0.35, 0.45, 0.55, 0.7, 0.85)  # of best cosines
MATCHED = 0.4  # a word with a cosine of this is matched wholly: free translations are far off
LEVEL = 256  # whole numbers per unit of log odds
LOWEST = -16000  # below all levels
LEAST_GAP = 0.5  # that a name's weight counts from: translations of names have lesser gaps
LINKED = 0.3  # the cosine from which the place of a word's match counts
SIDE = len(STEPS) + 12
MARKS = 8
SENTENCE_ENDS = (
    *(0x21, 0x2E, 0x3F, 0x2026, 0x3002, 0xFF01, 0xFF0E, 0xFF1F, 0xFF61, 0x61F, 0x6D4),
    *(0x589, 0x964, 0x965, 0x1362, 0x1367, 0x104A, 0x104B, 0x17D4),
)
TO_WHOLE = np.float32(1.5 * 2.0**23)  # adding it rounds a float32 up to 2**22 to an integer

_compile = compiled()
_part = compiled_part()
# Reordered sums and fused products change no result: sums are exact in float64 in any order.
_part_exact = compiled_part(fastmath={"nnan", "nsz", "contract", "reassoc"})


@_part_exact
def _take_whole(vectors: Any, ids: Any, rows: Any) -> None:
    """Write vectors of words to ``rows`` in whole numbers of 1 / ``SCALE``."""
    for word in range(len(ids)):
        vector, row = vectors[np.uint32(ids[word])], rows[word]
        for place in range(len(vector)):
            row[place] = np.rint(np.float64(vector[place]) * SCALE)


@_part_exact
def _square_sum(row: Any) -> Any:
    """Sum the squares of whole numbers, at most ``SCALE`` squared, exactly."""
    total = 0.0
    for place in range(len(row)):
        total += row[place] * row[place]
    return total


@_part
def _join_words(vectors: Any, weights: Any, ids: Any, rows: Any, joined: Any) -> Any:
    """Join light words to the next ones, and return how many result.

    Their weight is at least the mean weight of the sentence's words. Light words at the end join
    the ones before. Unit vectors are written to ``rows`` in whole numbers of 1 / ``SCALE``, and
    weights, times lengths of mean vectors, to ``joined``.
    """
    total, count = 0.0, 0
    for word in ids:
        total += np.float64(weights[word])
    rows[0], joined[0] = 0, 0
    for word in ids:
        weight, row, vector = np.float64(weights[word]), rows[count], vectors[word]
        for place in range(len(vector)):
            row[place] += weight * np.float64(vector[place])
        joined[count] += weight
        if joined[count] * len(ids) >= total:
            count += 1
            rows[count], joined[count] = 0, 0
    if joined[count] > 0:
        rows[count - 1] += rows[count]
        joined[count - 1] += joined[count]
    for word in range(count):
        row, weight = rows[word], max(joined[word], 1e-30)
        for place in range(len(row)):
            row[place] = np.rint(row[place] / weight * SCALE)
        length = np.sqrt(_square_sum(row))
        for place in range(len(row)):
            row[place] = np.rint(row[place] / max(length, 1.0) * SCALE)
        joined[word] = weight * (length / SCALE)
    return count


@_part_exact
def _products(rows: Any, others: Any) -> Any:
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    fifth, sixth, seventh, eighth = 0.0, 0.0, 0.0, 0.0
    for place in range(rows.shape[1]):
        one, two = rows[0, place], rows[1, place]
        first += one * others[0, place]
        second += one * others[1, place]
        third += one * others[2, place]
        fourth += one * others[3, place]
        fifth += two * others[0, place]
        sixth += two * others[1, place]
        seventh += two * others[2, place]
        eighth += two * others[3, place]
    return first, second, third, fourth, fifth, sixth, seventh, eighth


@_part
def longest_sentence(offsets: Any) -> Any:
    """Return the largest difference of adjacent ``offsets``, 0 if none."""
    longest = 0
    for sentence in range(len(offsets) - 1):
        longest = max(longest, offsets[sentence + 1] - offsets[sentence])
    return longest


@_part
def _match(rows: Any, others: Any, one: Any, two: Any) -> None:
    """Fill cosine and place of each word's best match on the other side."""
    (best, match), (other_best, other_match) = one, two
    best[:], other_best[:] = -1, -1
    match[:], other_match[:] = 0, 0
    for top in range(0, len(best), 2):
        for start in range(0, len(other_best), TILE):
            products = _products(rows[top : top + 2], others[start : start + TILE])
            for word in range(top, min(top + 2, len(best))):
                for other in range(start, min(start + TILE, len(other_best))):
                    product = products[(word - top) * TILE + other - start]
                    cosine = np.float32(product / SCALE**2)
                    if cosine > best[word]:
                        best[word], match[word] = cosine, other
                    if cosine > other_best[other]:
                        other_best[other], other_match[other] = cosine, word


@_part
def _missing(cosine: Any) -> Any:
    """Return how much of a word is unmatched, 0 to 1, by its best cosine."""
    return 1 - min(max(np.float64(cosine), 0.0) / MATCHED, 1.0)


@_part
def _describe_cover(weights: Any, best: Any, total: float, out: Any) -> None:
    """Add a sentence's features of coverage, all but the last five, to zeros."""
    steps, run = len(STEPS), 0.0
    for word in range(len(weights)):
        raw, cosine = np.float64(weights[word]), np.float64(best[word])
        share, missing = raw / total, _missing(cosine)
        for step in range(steps):
            if cosine >= STEPS[step]:
                out[step] += share
        out[steps] += share * cosine
        out[steps + 1] += share * (1 - missing)
        lost = share * missing
        if lost > out[steps + 2]:
            out[steps + 2], out[steps + 3] = lost, out[steps + 2]
        elif lost > out[steps + 3]:
            out[steps + 3] = lost
        out[steps + 4] = max(out[steps + 4], raw * missing)
        out[steps + 5] += raw * missing
        run = run + lost if cosine < LINKED else 0.0
        out[steps + 6] = max(out[steps + 6], run)


@_part
def _describe_links(weights: Any, one: Any, other_match: Any, total: float, out: Any) -> None:
    """Add the last five features, of the places of matched words, to zeros."""
    (best, match), others = one, len(other_match)
    words, first, last, linked = len(weights), len(STEPS) + 7, 0, False
    for word in range(words):
        raw = np.float64(weights[word])
        share, place = raw / total, match[word]
        if best[word] >= LINKED:
            if other_match[place] == word:
                out[first] += share
            out[first + 1] += share * abs((word + 0.5) / words - (place + 0.5) / others)
            if linked and abs(place - last) <= 2:
                out[first + 2] += share
        if best[word] >= STEPS[-1]:
            out[first + 3] += raw
        linked, last = best[word] >= LINKED, place
    out[first + 4] = words


@_part
def _describe_side(weights: Any, one: Any, other_match: Any, out: Any) -> Any:
    """Add a sentence's ``SIDE`` features to zeros, and return its weight."""
    total = 0.0
    for word in range(len(weights)):
        total += np.float64(weights[word])
    _describe_cover(weights, one[0], total, out)
    _describe_links(weights, one, other_match, total, out)
    return total


@_part
def _room(side: Any) -> Any:
    """Return arrays for vectors, weights, best cosines and matches of words."""
    vectors, _, _, offsets = side
    most = longest_sentence(offsets)
    rows, weights = np.zeros((most + TILE, vectors.shape[1])), np.empty(most + TILE)
    return rows, weights, np.empty(most, np.float32), np.empty(most, np.int64)


@_part
def _take_words(side: Any, pair: int, is_joined: bool, rows: Any, out: Any) -> Any:
    """Write a sentence's vectors and weights, and return how many."""
    vectors, weights, ids, offsets = side
    words = ids[offsets[pair] : offsets[pair + 1]]
    if is_joined:
        return _join_words(vectors, weights, words, rows, out)
    _take_whole(vectors, words, rows)
    for word in range(len(words)):
        out[word] = weights[words[word]]
    return len(words)


@_part
def _describe_names(weights: Any, best: Any, flags: Any, mean: float, out: Any) -> None:
    """Fill the number of names, and the greatest gap and weighted gap."""
    for word in range(len(weights)):
        if flags[word] & NAME == 0:
            continue
        gap = 1 - best[word]
        weighted = np.float32(weights[word] / mean * max(0.0, gap - LEAST_GAP))
        if out[0] == 0:
            out[1], out[2] = gap, weighted
        out[0], out[1], out[2] = out[0] + 1, max(out[1], gap), max(out[2], weighted)


@_part
def _describe_sentences(weights: Any, best: Any, flags: Any, mean: float, out: Any) -> None:
    """Fill the features of the least covered sentence."""
    least, greatest, lost, weight, missing = 2.0, -1.0, 0.0, 0.0, 0.0
    for word in range(len(weights)):
        weight += weights[word]
        missing += weights[word] * _missing(best[word])
        if word + 1 == len(weights) or flags[word + 1] & START:
            coverage = 1 - missing / weight if weight > 0 else 1.0
            if coverage < least:
                least, lost = coverage, missing
            greatest, weight, missing = max(greatest, coverage), 0.0, 0.0
    out[3], out[4], out[5] = least, greatest - least, lost / mean


@_part
def _describe_parts(weights: Any, best: Any, flags: Any, total: float, out: Any) -> None:
    """Fill a side's ``PART`` features if it has names or several sentences."""
    if len(flags) == 0:
        return
    mean = total / len(weights) if total > 0 else 1.0
    out[0] = 0
    _describe_names(weights, best, flags, mean, out)
    if (flags[1:] & START).any():
        _describe_sentences(weights, best, flags, mean, out)


@_compile
def describe_words(
    source: Any, target: Any, joins: Any, flags: Any, sides: Any, weights: Any, parts: Any
) -> None:
    """Fill features of the matched words of P pairs in place.

    ``source`` and ``target`` are vectors, weights, ids and offsets of ``Words``. ``joins`` are two
    bools, whether light words of the source and of the target join the next ones, and ``flags``
    the flags of the words of both, which may be empty. ``sides`` (P, 2, SIDE) gets the features of
    source and target, and ``weights`` (P, 2) the sum of each side's word weights. Both are float64
    and zeros at first, which stay if either side has no words. ``parts``, float32 (P, 2, PART),
    gets the number of names; their greatest gap, 1 minus the cosine to the most similar word on
    the other side; their greatest product of a gap above ``LEAST_GAP`` and the weight; and of the
    least covered sentence the coverage, the difference to the best covered sentence of the text,
    and the weight of unmatched words. These weights are in mean weights of the text's words. Values
    stay for texts without flags, without names, and of one sentence.
    """
    rows, own_weights, best, match = _room(source)
    other_rows, other_weights, other_best, other_match = _room(target)
    for pair in range(len(sides)):
        n = _take_words(source, pair, joins[0], rows, own_weights)
        m = _take_words(target, pair, joins[1], other_rows, other_weights)
        if n == 0 or m == 0:
            continue
        one, two = (best[:n], match[:n]), (other_best[:m], other_match[:m])
        _match(rows, other_rows, one, two)
        out = sides[pair]
        weights[pair, 0] = _describe_side(own_weights[:n], one, two[1], out[0])
        weights[pair, 1] = _describe_side(other_weights[:m], two, one[1], out[1])
        own_flags = flags[0][source[3][pair] : source[3][pair + 1]]
        other_flags = flags[1][target[3][pair] : target[3][pair + 1]]
        _describe_parts(own_weights[:n], one[0], own_flags, weights[pair, 0], parts[pair, 0])
        _describe_parts(other_weights[:m], two[0], other_flags, weights[pair, 1], parts[pair, 1])


@_part
def _is_closing(code: Any) -> Any:
    """Return whether a quotation mark or bracket may follow a sentence."""
    return code in (0x5D, 0xBB, 0xFF09) or 0x2018 <= code <= 0x201F or 0x300C <= code <= 0x300F


@_part
def _is_small(code: Any) -> Any:
    is_latin = 0x61 <= code <= 0x7A or 0xDF <= code <= 0xFF
    return is_latin or 0x3B1 <= code <= 0x3C9 or 0x430 <= code <= 0x45F


@_part
def _find_boundaries(text: Any, out: Any) -> None:
    """Set whether a text ends like a sentence, and begins with a small letter."""
    for code in text[::-1]:
        if code in SENTENCE_ENDS:
            out[0] = 1
            break
        if code > 0x2F and not _is_closing(code):
            break
    for code in text:
        is_mark = code <= 0x2F or 0xA0 <= code <= 0xBF or code in SENTENCE_ENDS
        if not (is_mark or _is_closing(code)):
            out[1] = _is_small(code)
            break


@_compile
def count_marks(codes: Any, offsets: Any, counts: Any) -> None:
    """Count letters, marks and capitals of each text into ``counts``.

    ``counts``, float32 (P, 8), are zeros at first, and in the order of letters, question marks,
    colons, opening brackets, commas and capitals (A to Z, U+0391 to U+03A9, U+0410 to U+042F). The
    last two are 1 for a text that ends with a sentence's last mark, maybe before quotation marks,
    and for one whose first letter is small. Semicolons count as colons, and all other code points
    above U+002F as letters, except for U+3002. Capitals are also letters. ``codes`` and ``offsets``
    are from ``code_points``.
    """
    for text in range(len(offsets) - 1):
        _find_boundaries(codes[offsets[text] : offsets[text + 1]], counts[text, 6:])
        for place in range(offsets[text], offsets[text + 1]):
            code = codes[place]
            if code in (0x3F, 0xFF1F, 0x61F, 0x37E, 0x1367):
                counts[text, 1] += 1
            elif code in (0x3A, 0xFF1A, 0x3B, 0xFF1B, 0x61B):
                counts[text, 2] += 1
            elif code in (0x28, 0xFF08, 0x5B, 0xFF3B, 0x3010):
                counts[text, 3] += 1
            elif code in (0x2C, 0xFF0C, 0x3001, 0x60C):
                counts[text, 4] += 1
            elif code > 0x2F and code != 0x3002:
                counts[text, 0] += 1
                if 0x41 <= code <= 0x5A or 0x391 <= code <= 0x3A9 or 0x410 <= code <= 0x42F:
                    counts[text, 5] += 1


@_compile
def sum_leaves(features: Any, nodes: Any, roots: Any, sums: Any) -> None:
    """Add each pair's leaves, one per tree, to ``sums`` in place.

    ``features`` are float32 (P, F), where NaN follows ``missing_left``. ``nodes`` are six arrays of
    ``Judge``, from ``feature`` to ``value``, ``roots`` are its roots, and ``sums`` int64 (P,).
    """
    feature, threshold, missing_left, left, right, value = nodes
    for pair in range(len(features)):
        row, total = features[pair], 0
        for root in roots:
            node = root
            while left[node] >= 0:
                number = row[feature[node]]
                if number <= threshold[node] or (missing_left[node] and np.isnan(number)):
                    node = left[node]
                else:
                    node = right[node]
            total += value[node]
        sums[pair] += total


@_part
def _count_ngrams(text: Any, model: Any, counts: Any, seen: Any) -> Any:
    """Count a text's n-grams, put distinct ones in ``seen``, return how many."""
    state, different = 0, 0
    for letter in text:
        state = model.moves[model.rows[state] + letter]
        ngram = model.found[state]
        if ngram >= 0:
            if counts[ngram] == 0:
                seen[different] = ngram
                different += 1
            counts[ngram] = min(counts[ngram] + 1, len(model.logs) - 1)
    return different


@_part
def _add_weights(scores: Any, weights: Any, log: Any) -> None:
    for language in range(len(scores)):
        scores[language] += log * np.int32(weights[language])


@_compile
def beat_languages(codes: Any, offsets: Any, model: Any, own: Any, leads: Any) -> None:
    """Fill ``leads`` with how far ``own`` languages exceed all others.

    ``leads``, float64 (P,), are the best score of the languages in the mask ``own`` (L,) minus the
    best of the others, 0 for a text without known n-grams. ``model`` and the unit ``STEP / LOG``
    are of ``miner.judge.languages``. Text i has the bytes ``codes[offsets[i] : offsets[i + 1]]``.
    """
    counts = np.zeros(len(model.weights), np.int16)
    seen, scores = np.empty(len(model.weights), np.int32), np.empty(len(own), np.int32)
    for text in range(len(leads)):
        part = codes[offsets[text] : offsets[text + 1]]
        different = _count_ngrams(part, model, counts, seen)
        scores[:] = model.priors
        for ngram in seen[:different]:
            _add_weights(scores, model.weights[ngram], model.logs[counts[ngram]])
            counts[ngram] = 0
        best, other = -(1 << 31), -(1 << 31)
        for language in range(len(scores)):
            if own[language]:
                best = max(best, scores[language])
            else:
                other = max(other, scores[language])
        leads[text] = best - other if different else 0


@_compile
def round_to_whole(values: Any, steps: Any, most: Any, out: Any) -> None:
    """Fill ``out`` with ``values`` (N, K) times ``steps`` (K,), rounded.

    ``values`` are float32 or int32, ``out`` int8, int16 or float32. Numbers are clipped to
    -``most`` to ``most``, which is below 2**22.
    """
    for row in range(len(values)):
        for place in range(len(steps)):
            value = np.float32(values[row, place]) * steps[place]
            out[row, place] = min(max(value, -most), most) + TO_WHOLE - TO_WHOLE


@_part
def _raise_levels(side: Any, pair: int, joining: Any, levels: Any) -> None:
    """Write the level of each meaning in a sentence, without biases."""
    word_levels, ids, offsets = side
    levels[:] = LOWEST
    for place in range(offsets[pair], offsets[pair + 1]):
        word = word_levels[ids[place]]
        for meaning in range(len(levels)):
            levels[meaning] = max(levels[meaning], word[meaning])
        if place + 1 < offsets[pair + 1]:
            following = word_levels[ids[place + 1]]
            for meaning in range(len(levels)):
                both = np.int16(word[meaning] + following[meaning] + joining)
                levels[meaning] = max(levels[meaning], both)


@_part
def _both(one: Any, other: Any) -> Any:
    """Return 3 times a mean of levels, in which the lesser counts twice."""
    return 2 * min(one, other) + max(one, other)


@_part
def _one_sided(levels: Any, start: int, stop: int) -> Any:
    """Return how far each side says a sense that the other does not say."""
    first, second = 3 * LOWEST, 3 * LOWEST
    for sense in range(start, stop):
        own, other = levels[0, sense], levels[1, sense]
        first, second = max(first, _both(own, -other)), max(second, _both(other, -own))
    return first // 3, second // 3


@_part
def _has_words(side: Any, pair: int) -> Any:
    return side[2][pair] < side[2][pair + 1]


@_part
def _raise_senses(levels: Any, members: Any, senses: Any, of_senses: Any) -> None:
    for sense in range(len(of_senses)):
        of_senses[sense] = LOWEST
        for member in range(senses[sense], senses[sense + 1]):
            of_senses[sense] = max(of_senses[sense], np.int32(levels[members[member]]))


@_compile
def compare_meanings(
    source: Any, target: Any, biases: Any, joining: Any, groups: Any, features: Any
) -> None:
    """Fill ``features``, float32 (P, 6), like ``compare_facts``.

    A side is a tuple: levels of its U different words, int16 (U, M), the ids of all words, and the
    offsets of P sentences, (P + 1,). ``biases`` and ``joining`` are of ``Facts``, and ``groups`` is
    a tuple of its members, senses and groups. A pair with a side without words gets NaN.
    """
    members, senses, firsts = groups
    levels = np.empty((2, len(biases)), np.int16)
    of_senses = np.empty((2, len(senses) - 1), np.int32)
    for pair in range(len(features)):
        if not (_has_words(source, pair) and _has_words(target, pair)):
            features[pair] = np.nan
            continue
        _raise_levels(source, pair, joining, levels[0])
        _raise_levels(target, pair, joining, levels[1])
        for side in range(2):
            for meaning in range(len(biases)):
                levels[side, meaning] += biases[meaning]
            _raise_senses(levels[side], members, senses, of_senses[side])
        level_features = features[pair, :5]
        level_features[:] = LOWEST
        shared = 0
        for group in range(len(firsts) - 1):
            start, stop = firsts[group], firsts[group + 1]
            first, second = _one_sided(of_senses, start, stop)
            if stop - start == 1:
                own, other = of_senses[0, start], of_senses[1, start]
                level_features[2] = max(level_features[2], max(first, second))
                level_features[3] = max(level_features[3], min(own, other))
                level_features[4] = max(level_features[4], max(own, other))
                continue
            exchanged = _both(first, second) // 3
            level_features[1] = max(level_features[1], min(level_features[0], exchanged))
            level_features[0] = max(level_features[0], exchanged)
            for sense in range(start, stop):
                shared += min(of_senses[0, sense], of_senses[1, sense]) > 0
        level_features /= np.float32(LEVEL)
        features[pair, 5] = shared
