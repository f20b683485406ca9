"""Features of words against a plain reading of what they are."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from encoder.bag.features import CHARACTER_SIZES, LETTER_SIZES, SOUND_SIZES, STEM_SIZES, Features
from encoder.bag.romanization import romanize, to_sounds
from encoder.tokenizer import Tokenizer, Tokens, train_tokenizer
from tests.encoder.test_tokenizer import lists_of, tokens_of

ROWS = 1_000_000_007  # with fewer, two n-grams of these pieces would share a row by chance
PIECES = [
    "",
    "\u2581",
    "\u2581a",
    "\u2581obam",
    "обама",
    "a",
    "\u2581!",
    "漢",
    "\u2581漢字",
    "nn1",
    "x" * 30,
    "\u2581한국",
    "어",
    "\u2581لندن",
]
sentences_of_pieces = st.lists(st.lists(st.integers(0, len(PIECES) - 1), max_size=9), max_size=6)


def one_word_each(count: int) -> Features:
    """Features of words that have a piece, and a row, each."""
    return Features(["\u2581a"] * count)


def oracle_words(sentence: list[int]) -> list[tuple[int, ...]]:
    words: list[tuple[int, ...]] = []
    for piece in sentence:
        if not words or PIECES[piece].startswith(("\u2581", "漢")):
            words.append(())
        words[-1] += (piece,)
    return words


def oracle_ngrams(word: tuple[int, ...]) -> list[str]:
    spelt = [romanize(PIECES[piece]) for piece in word]
    letters, sounds = "".join(spelt), "".join(map(to_sounds, spelt)).upper()
    pieces = [PIECES[piece].strip("\u2581") for piece in word]
    characters = [piece for piece in pieces if set(piece) & set("漢한어")]
    spelling = f"<{letters}>" if letters else ""
    parts = [
        oracle_parts(spelling, LETTER_SIZES),
        oracle_parts(f"[{sounds}]" if sounds else "", SOUND_SIZES),
        [spelling[:size] for size in STEM_SIZES if len(spelling) >= size],
        *(oracle_parts(own, CHARACTER_SIZES) for own in characters),
    ]
    return [ngram for part in parts for ngram in part]


def oracle_parts(text: str, sizes: tuple[int, ...]) -> list[str]:
    return [
        text[start : start + size]
        for size in sizes
        for start in range(max(0, len(text) - size + 1))
    ]


@given(sentences_of_pieces)
def test_words_and_their_pieces(sentences: list[list[int]]) -> None:
    numbers, words = Features(PIECES).split(tokens_of(sentences))
    named = [[tuple(lists_of(words)[n]) for n in sentence] for sentence in lists_of(numbers)]
    assert named == [oracle_words(sentence) for sentence in sentences]
    assert len(words) == len({word for sentence in named for word in sentence})
    assert (numbers.ids.dtype, words.ids.dtype) == (np.int32, np.int32)


@given(sentences_of_pieces)
@example([[3, 12, 5, 11, 9, 9]])  # of a million rows, two of its n-grams shared one
def test_words_have_rows_of_their_ngrams(sentences: list[list[int]]) -> None:
    features = Features(PIECES, ROWS)
    numbers, words = features.split(tokens_of(sentences))
    rows = lists_of(words)
    row_of: dict[str, int] = {}
    for sentence, found in zip(sentences, lists_of(numbers), strict=True):
        for word, number in zip(oracle_words(sentence), found, strict=True):
            pieces, ngrams = rows[number][: len(word)], rows[number][len(word) :]
            assert tuple(pieces) == word
            expected = oracle_ngrams(word)
            assert len(ngrams) == len(expected)
            for name, row in zip(expected, ngrams, strict=True):
                assert len(PIECES) <= row < len(features) == len(PIECES) + ROWS
                assert row_of.setdefault(name, row) == row
    assert len(set(row_of.values())) == len(row_of)


def test_a_word_is_the_same_in_any_company() -> None:
    features = Features(PIECES, ROWS)
    alone = features.split(tokens_of([[3, 4]]))[1]
    numbers, words = features.split(tokens_of([[2], [3, 4, 2], [7, 7], [3, 4]]))
    last = words.take(numbers.ids[-1:].astype(np.int64))
    assert lists_of(last) == lists_of(alone)


def test_ngrams_are_those_that_weights_were_trained_with() -> None:
    """Other rows than these would make nonsense of encoders that are saved."""
    tokens = tokens_of([[0, 1]])
    fifth = Features(["\u2581obama", "漢字"], 24_000)
    assert lists_of(fifth.split(tokens)[1]) == [GOLDEN[0], GOLDEN[1] + STEMS]
    fourth = Features(["\u2581obama", "漢字"], 24_000, scheme=4)
    assert lists_of(fourth.split(tokens)[1]) == GOLDEN
    third = Features(["\u2581obama", "漢字"], 24_000, scheme=3)
    assert lists_of(third.split(tokens)[1]) == [GOLDEN[0], GOLDEN[1][:-1]]


def test_the_third_scheme_knows_three_alphabets() -> None:
    features = Features(["\u2581한국", "\u2581لندن", "\u2581жизнь"], ROWS, scheme=3)
    rows = lists_of(features.split(tokens_of([[0], [1], [2]]))[1])
    assert sorted(map(len, rows)) == [1, 1, 1 + 5 + 4 + 3]


GOLDEN = [
    [1, 13485, 11957, 14111],
    [0, 19061, 4641, 3632, 2763, 20130, 11149, 8223, 9682, 6946, 11515, 1567, 15195, 16944],
]
STEMS = [22669, 11599]


def test_how_many_words_are_dropped() -> None:
    tokens = tokens_of([[2, 5]] * 4000)
    left = Features(PIECES).drop_words(tokens, 0.25, np.random.default_rng(1))
    lengths = np.diff(left.offsets)
    assert set(lengths) == {0, 2}
    assert abs((lengths == 0).mean() - 0.25) < 0.03


def test_rows_are_spread_evenly() -> None:
    generator = np.random.default_rng(1)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    pieces = ["\u2581" + "".join(generator.choice(letters, 7)) for _ in range(3000)]
    features = Features(pieces, 100)
    _, words = features.split(tokens_of([[number] for number in range(len(pieces))]))
    counts = np.bincount(words.ids[words.ids >= len(pieces)] - len(pieces), minlength=100)
    assert counts.min() > 0.7 * counts.mean() and counts.max() < 1.3 * counts.mean()


def test_spelling_matches_across_alphabets() -> None:
    features = Features(["\u2581жизнь", "\u2581zhizn"], ROWS)
    first, second = lists_of(features.split(tokens_of([[0], [1]]))[1])
    assert sorted((first[0], second[0])) == [0, 1]
    assert first[1:] == second[1:]


def test_names_sound_alike_where_vowels_are_not_written() -> None:
    features = Features(["\u2581london", "\u2581لندن", "\u2581लंदन", "\u2581런던"], ROWS)
    rows = lists_of(features.split(tokens_of([[number] for number in range(4)]))[1])
    assert len(set.intersection(*map(set, rows))) == len("[LNTN]") - 3 + 1 + 1 + 1


def test_where_words_begin(tokenizer: Tokenizer) -> None:
    numbers, words = Features(tokenizer.pieces()).split(tokenizer.encode(["abdegihu abdegihu"]))
    assert lists_of(numbers) == [[0, 0]]
    assert len(words) == 1 and len(words.ids) > 1


def test_pieces_are_words_where_there_are_no_spaces() -> None:
    text = [
        "\u6211\u5011\u4eca\u5929\u53bb\u516c\u5712\u6563\u6b65",
        "\u79c1\u306f\u672c\u3092\u8aad\u3080",
    ] * 50
    chinese = Tokenizer(train_tokenizer(text, vocabulary_size=18))
    tokens = chinese.encode(text[:2])
    numbers, _ = Features(chinese.pieces()).split(tokens)
    assert np.array_equal(numbers.offsets, tokens.offsets)


def test_no_sentences_at_all() -> None:
    for rows in (0, ROWS):
        numbers, words = Features(PIECES, rows).split(
            Tokens(ids=np.array([], dtype=np.int32), offsets=np.array([0]))
        )
        assert (len(numbers), len(words), len(words.ids)) == (0, 0, 0)
