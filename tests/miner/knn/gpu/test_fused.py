"""The fused kernel: what it computes, under Triton's interpreter, and what Hopper would run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed: Linux only")

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as compile_kernel

from miner.knn.gpu.fused import GROUP, MAX_HITS_PER_TILE_ROW, TILINGS, _find_hits

ROOT = Path(__file__).parents[4]
BUFFERS = (("keys", "*i64"), ("counts", "*i32"))
HOPPER = GPUTarget("cuda", 90, 32)


@pytest.mark.slow
def test_under_tritons_interpreter():
    """In a process of its own: Triton decides for or against its interpreter when imported."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", Path(__file__).with_name("interpreted.py")],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter takes the compiler's place"
)
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"{tiling.rows}x{tiling.columns}")
def test_it_compiles_for_hopper(tiling):
    """With its matrix instructions and bulk copies, in its shared memory; this needs no GPU."""
    sizes = {"ROWS": tiling.rows, "COLUMNS": tiling.columns, "DEPTH": tiling.depth}
    sizes |= {"GROUP": GROUP, "MAX_HITS_PER_TILE_ROW": MAX_HITS_PER_TILE_ROW}
    pointers = {"row_floors": "*fp32", "column_floors": "*fp32"}
    pointers |= {f"{line}_{kind}": type_ for line in ("row", "column") for kind, type_ in BUFFERS}
    types = (
        dict.fromkeys(_find_hits.arg_names, "i32") | pointers | dict.fromkeys(sizes, "constexpr")
    )
    types["x"] = f"tensordesc<bf16[{tiling.rows},{tiling.depth}]>"
    types["y"] = f"tensordesc<bf16[{tiling.columns},{tiling.depth}]>"
    compiled = compile_kernel(
        ASTSource(_find_hits, types, sizes),
        target=HOPPER,
        options={"num_warps": tiling.warps, "num_stages": tiling.stages},
    )
    assert "wgmma.mma_async" in compiled.asm["ptx"]
    assert "cp.async.bulk.tensor" in compiled.asm["ptx"]
    assert compiled.metadata.shared <= 227 * 1024
