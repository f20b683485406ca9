"""What the command lines repeat, in order to start without loading it, is what they start."""

from pathlib import Path

import pytest

from encoder.training import options
from encoder.training.options import TrainingOptions
from encoder.training.recipe import Recipe
from miner.filters import FILTERS
from miner.margin import MARGINS
from miner.selection import RETRIEVALS
from pipelines.cli import arguments
from pipelines.cli import mine as cli
from pipelines.cli.train import _options, _parser


def test_the_names_offered_are_those_there_are() -> None:
    assert tuple(MARGINS) == arguments.MARGINS
    assert tuple(RETRIEVALS) == arguments.RETRIEVALS
    assert tuple(FILTERS) == arguments.FILTERS


def test_the_defaults_of_training_are_those_of_the_library() -> None:
    args = _parser().parse_args(["data", "-o", "out"])
    assert _options(args) == TrainingOptions()
    recipe = Recipe(files={})
    for name in ("vocabulary_size", "held_out", "evaluate_every"):
        assert getattr(args, name) == getattr(recipe, name), name
    offered = {action.dest: action.choices for action in _parser()._actions}
    assert offered["architecture"] == options.ARCHITECTURES
    assert offered["objective"] == options.OBJECTIVES
    assert offered["precision"] == options.PRECISIONS


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("report", ["-o", "out.html"]),
        ("why", ["a", "b"]),
        ("calibrate", ["-o", "out.jsonl", "--decoys-src", "x"]),
        ("rescore", ["-o", "out.jsonl", "--known", "x"]),
    ],
)
def test_what_is_asked_of_a_finished_run(
    command: str, rest: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = [str(tmp_path / name) if name.startswith("out") else name for name in rest]
    assert cli.mine_corpus([command, str(tmp_path), *rest]) == 2
    assert capsys.readouterr().err == (
        f"mine-corpus {command}: error: {tmp_path}: no finished run in it; "
        "make one with mine-corpus ... --work-dir DIR\n"
    )
    assert not list(tmp_path.iterdir())
