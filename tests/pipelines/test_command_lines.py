"""What the command lines repeat, in order to start without loading it, is what they start."""

from pathlib import Path
from typing import get_args

import pytest

from encoder.training.options import BiLSTMOptions, Recipe, TranslationOptions
from miner import choices
from miner.commandline import command_parser
from miner.filters import FILTERS
from miner.knn.core.codes import Precision
from miner.knn.method import EXACT_SIMILARITIES
from miner.margin import MARGINS
from miner.selection import RETRIEVALS
from pipelines.cli.arguments import HELP
from pipelines.cli.train import _recipe, add_arguments
from tests.encoder.training.language import write_pairs


def test_the_names_offered_are_those_there_are() -> None:
    assert tuple(MARGINS) == choices.MARGINS
    assert tuple(RETRIEVALS) == choices.RETRIEVALS
    assert tuple(FILTERS) == choices.FILTERS
    # int16 has instructions on some CPUs only: a trial chooses it there.
    assert set(choices.SEARCH_PRECISIONS) == {"auto", *get_args(Precision)} - {"int16"}


def test_the_help_of_index_has_the_limit_of_exact_search() -> None:
    assert f"exact up to 10^{len(str(EXACT_SIMILARITIES)) - 1} similarities" in HELP["--index"]


def test_the_defaults_of_training_are_those_of_the_library(tmp_path: Path) -> None:
    write_pairs(tmp_path / "xx-yy.tsv.xz", [("a", "b")])
    command = [str(tmp_path), "-o", "out"]
    recipe = _recipe(command_parser(add_arguments, "").parse_args(command))
    assert recipe == Recipe(files={"xx-yy": (tmp_path / "xx-yy.tsv.xz",)})
    given = ["--architecture", "bilstm", "--layers", "2", "--objective", "translation"]
    recipe = _recipe(
        command_parser(add_arguments, "").parse_args([*command, *given, "--targets", "xx,yy"])
    )
    assert recipe.options.architecture == BiLSTMOptions(layers=2)
    assert recipe.options.objective == TranslationOptions(targets=("xx", "yy"))


@pytest.mark.parametrize("given", [["--layers", "2"], ["--objective", "translation", "--scale=9"]])
def test_options_of_another_kind_of_training_are_refused(given: list[str]) -> None:
    name = "layers" if len(given) == 2 else "scale"
    with pytest.raises(ValueError, match=f"^--{name} does not apply to --architecture bag with "):
        _recipe(command_parser(add_arguments, "").parse_args(["data", "-o", "out", *given]))
