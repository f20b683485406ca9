"""The kernels and a run on an emulated 64-bit Arm CPU."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipelines.cli.mine import mine_corpus

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "arm64.sh"
SAMPLE = ROOT / "eval" / "assets" / "sample" / "de-en"


@pytest.mark.slow
@pytest.mark.arm64
@pytest.mark.skipif(
    not shutil.which("qemu-aarch64-static"), reason="qemu-aarch64-static is not installed"
)
@pytest.mark.usefixtures("best")
def test_kernels_and_a_run_under_qemu(tmp_path: Path) -> None:
    """The same bytes as on this CPU, by the instructions that Arm has for them."""
    folder = os.environ.get("ADIT_ARM64", str(tmp_path))  # keeps what was downloaded
    told = subprocess.run(
        ["bash", str(SCRIPT), folder], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "aarch64 dotprod" in told.stdout
    sides = [str(SAMPLE / f"de-en.training.{language}") for language in ("de", "en")]
    assert mine_corpus([*sides, "-q", "-o", str(tmp_path / "here.tsv")]) == 0
    assert (Path(folder) / "pairs.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
