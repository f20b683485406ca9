"""What the command lines repeat, in order to start without loading it, is what they start."""

from typing import get_args

from encoder.training import options
from encoder.training.options import TrainingOptions
from encoder.training.recipe import Recipe
from miner import choices
from miner.filters import FILTERS
from miner.knn.core.codes import Precision
from miner.margin import MARGINS
from miner.selection import RETRIEVALS
from pipelines.cli.train import _options, train_parser


def test_the_names_offered_are_those_there_are() -> None:
    assert tuple(MARGINS) == choices.MARGINS
    assert tuple(RETRIEVALS) == choices.RETRIEVALS
    assert tuple(FILTERS) == choices.FILTERS
    assert set(choices.SEARCH_PRECISIONS) == {"auto", *get_args(Precision)}


def test_the_defaults_of_training_are_those_of_the_library() -> None:
    args = train_parser("").parse_args(["data", "-o", "out"])
    assert _options(args) == TrainingOptions()
    recipe = Recipe(files={})
    for name in ("vocabulary_size", "held_out", "evaluate_every"):
        assert getattr(args, name) == getattr(recipe, name), name
    offered = {action.dest: action.choices for action in train_parser("")._actions}
    assert offered["architecture"] == options.ARCHITECTURES
    assert offered["objective"] == options.OBJECTIVES
    assert offered["precision"] == options.PRECISIONS
