"""Sentences against a slow comparison of all words, and in real texts."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge.sentences import compare_sentences, sentence_starts


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("They came. You saw.", [2]),
        ("Mr. Smith met her. \u201cWhy?\u201d (Nobody knew\u2026) She left.", [4, 5, 7]),
        ("It is 3. Nothing", []),
        ("Only one. and a half", []),
        ("\u0928\u092e\u0938\u094d\u0924\u0947\u0964 \u0935\u0939 \u0917\u092f\u093e\u0964", [1]),
        ("", []),
    ],
)
def test_sentences_follow_a_last_mark_and_a_space(text: str, starts: list[int]) -> None:
    assert list(sentence_starts(text)) == starts


def test_sentences_are_compared_by_the_weight_of_their_words() -> None:
    languages = "fr", "en"
    makers = word_encoders(load_encoder(), languages)
    texts = [
        ["Le chat dort dans la maison.", "Il pleut.", "Le chien mange. Nous partons demain."] * 2,
        [
            "The cat sleeps in the house. Shares fell sharply on Monday.",
            "It rains.",
            "The dog eats. We are leaving tomorrow.",
            "The cat is asleep. The house",
            "",
            "Nothing here. Not there either. Where else?",
        ],
    ]
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    found = compare_sentences(texts, words)
    for pair, row in enumerate(found):
        one, other = (side.ids[slice(*side.offsets[pair : pair + 2])] for side in words)
        cosines = words[0].vectors[one] @ words[1].vectors[other].T
        expected = []
        for side, ids, axis in ((0, one, 1), (1, other, 0)):
            starts = list(sentence_starts(texts[side][pair]))
            if not starts or not cosines.size:
                continue
            missing = 1 - np.clip(cosines.max(axis=axis) / 0.4, 0, 1)
            weights = words[side].weights[ids]
            lost = [part.sum() for part in np.split(missing * weights, starts)]
            sums = [part.sum() for part in np.split(weights, starts)]
            covered = 1 - np.array(lost) / sums
            least = covered.argmin()
            expected.append((covered[least], np.ptp(covered), lost[least] / weights.mean()))
        if expected:
            least_covered, *greatest = zip(*expected, strict=True)
            assert row[0] == pytest.approx(min(least_covered), abs=1e-4)
            assert row[1:] == pytest.approx([max(values) for values in greatest], abs=1e-3)
        else:
            assert np.isnan(row).all()
    assert np.isnan(found[[1, 4]]).all() and found[0, 0] < 0.5 < found[2, 0]
    back = compare_sentences(texts[::-1], words[::-1])
    assert back.tobytes() == found.tobytes()
