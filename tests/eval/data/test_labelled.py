"""Files of labelled or scored sentences."""

from pathlib import Path

import pytest

from eval.data.labelled import concat, read_examples, read_parts


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
        ("1\ta\tb\nx\tc\td\n", "pairs.tsv: the score 'x' of example 2 is not a finite number"),
        ("nan\ta\tb\n", "pairs.tsv: the score 'nan' of example 1 is not a finite number"),
        ("1\ta\n", "line 1: expected LABEL"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_examples(path, sides=2).scores()


def test_a_bad_score_of_a_later_file_names_that_file_too(tmp_path: Path) -> None:
    for part, score in (("tr", "1"), ("te", "high")):
        (tmp_path / part).write_text(f"{score}\ta\tb\n")
    parts = {part: read_examples(tmp_path / part, sides=2) for part in ("tr", "te")}
    with pytest.raises(ValueError, match=f"{tmp_path / 'te'}: the score 'high'"):
        concat(parts).scores()


def test_no_file_of_any_part_gives_no_examples(tmp_path: Path) -> None:
    examples = read_parts({"tr": tmp_path / "missing"}, label=0, sides=(1,))
    assert len(examples) == 0 and examples.sides == () and examples.part("tr").shape == (0,)
