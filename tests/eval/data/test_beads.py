"""Files of alignments as Vecalign and Bleualign write them."""

from pathlib import Path

import pytest

from eval.tasks.align import _check_beads, read_beads


def test_lines_with_and_without_costs(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("[0]:[0, 1]\n\n[2,1]:[2]:0.25\n[]:[3]\n", encoding="utf-8")
    beads = read_beads(path)
    assert beads == [((0,), (0, 1)), ((1, 2), (2,)), ((), (3,))]
    _check_beads(beads, 3, 4, path=path)
    with pytest.raises(ValueError, match="position 3"):
        _check_beads(beads, 3, 3, path=path)


@pytest.mark.parametrize("text", ["", "\n", "0-0\n", "[0]:[0]\n[a]:[1]\n"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gold"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="gold"):
        read_beads(path)
