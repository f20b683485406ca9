"""The bundled encoder on the bundled sample, from the command lines to F1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.cli.bucc_score import bucc_score
from pipelines.cli.mine import mine_corpus

SAMPLE = Path(__file__).resolve().parents[2] / "eval" / "assets" / "sample"


@pytest.mark.parametrize(("language", "least_f1"), [("de", 0.8), ("zh", 0.6)])
def test_the_sample_is_mined_well(
    language: str, least_f1: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stem = SAMPLE / f"{language}-en" / f"{language}-en.training"
    pairs = tmp_path / "pairs.jsonl"
    assert mine_corpus([f"{stem}.{language}", f"{stem}.en", "-o", str(pairs), "-q"]) == 0
    capsys.readouterr()
    assert bucc_score([str(pairs), "--gold", f"{stem}.gold", "--optimize", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["f1"] > least_f1
