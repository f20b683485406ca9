"""Files of scored pairs."""

from pathlib import Path

import pytest

from eval.data.scored_pairs import read_scored_pairs


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("4.5\tA man.\tEin Mann.\n0\tx\ty\n")
    scores, first, second = read_scored_pairs(path)
    assert (scores.tolist(), first, second) == ([4.5, 0.0], ["A man.", "x"], ["Ein Mann.", "y"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 different scores; at least 2 are needed"),
        ("1\ta\tb\n1\tc\td\n", "1 different scores; at least 2"),
        ("1\ta\tb\nx\tc\td\n", "line 2: expected SCORE TAB sentence TAB sentence, not 'x"),
        ("nan\ta\tb\n", "line 1: expected SCORE"),
        ("1\ta\n", "line 1: expected SCORE"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_scored_pairs(path)
