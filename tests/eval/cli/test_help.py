"""Parsers load nothing heavy: all of them, built in one fresh interpreter."""

import json
import subprocess
import sys

from tests.test_rooms import HEAVY, ROOT

CODE = """
import json, sys
from eval.cli.bucc_score import score_parser
from eval.cli.encoder import encoder_parser
from eval.cli.runs import runs_parser
helps = [parser.format_help() for parser in (score_parser(), runs_parser(), encoder_parser([]))]
light = sorted(sys.modules)
encoder_parser()
print(json.dumps([helps, light, sorted(sys.modules)]))
"""


def test_parsers_are_quick_to_build() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CODE], check=True, capture_output=True, text=True, cwd=ROOT
    )
    helps, before, after = json.loads(run.stdout)
    assert all("%%" not in text for text in helps)
    assert not set(before) & {*HEAVY, "numpy", "numba"}
    assert not set(after) & {*HEAVY, "numba"}  # the options of all tasks need NumPy alone
