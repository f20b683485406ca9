"""Files of labelled or scored sentences."""

from pathlib import Path

import pytest

from eval.data.labelled import read_examples


def test_scores_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("4.5\tA man.\tEin Mann.\n0\tx\ty\n")
    pairs = read_examples(path, sides=2)
    assert pairs.scores().tolist() == [4.5, 0.0]
    assert pairs.sides == (["A man.", "x"], ["Ein Mann.", "y"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty; expected LABEL TAB sentence TAB sentence lines"),
        ("1\ta\tb\nx\tc\n", "line 2: expected LABEL TAB sentence TAB sentence, not 'x"),
        ("1\ta\tb\nx\tc\td\n", "a score is not a number: .*'x'"),
        ("nan\ta\tb\n", "a score is not a number"),
        ("1\ta\n", "line 1: expected LABEL"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_examples(path, sides=2).scores()
