"""Every set of instructions of this CPU passes the tests of products, and gives the same bytes."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from encoder.base import SAMPLE
from encoder.laser.int8 import Int8BiLSTM
from encoder.use.encoder import load_use
from miner.instructions import CHOSEN, NONE, USABLE, VARIABLE
from miner.knn import cells, tiled
from miner.knn.core.products import largest_code
from miner.knn.core.rescore import unit_rows
from tests.encoder.test_precision import bilstm

ROOT = Path(__file__).parents[2]
PRODUCTS = ("tests/miner/knn/core/test_int8.py", "tests/encoder/use/test_int8.py")
CODE = "from tests.integration.test_instruction_sets import main; main()"


def searched(dim: int, spread: float) -> Iterator[np.ndarray]:
    """Search vectors of which some are as near as the others' rounding, exactly and by cells."""
    random = np.random.default_rng(dim)
    centres = random.standard_normal((40, dim))
    sides = [
        unit_rows(centres[random.integers(40, size=n)] + spread * random.standard_normal((n, dim)))
        for n in (2500, 2700)
    ]
    found = ()
    for precision in (None, "int8", "int16" if largest_code() < 127 else None):
        options = {"precision": precision, "progress": lambda products: None}
        found += tiled.search_tiles(*sides, k=4, **options)
    centroids = cells.train_cells(np.concatenate(sides), 64)
    reach = cells.fit_probe_radius(sides[0], sides[1][found[0].ids[:, 0]], centroids, probes=7)
    own = [cells.nearest_cells(side, centroids, probes=7, reach=reach) for side in sides]
    found += cells.join_cells(sides, own, part=range(len(centroids)), k=4)
    yield from (centroids, *own)
    for lists in found:
        yield from (lists.ids, lists.cosines)


def encoded() -> Iterator[np.ndarray]:
    """Encode by the networks that have int8 kernels."""
    if CHOSEN:
        for precision in ("float32", "int8"):
            yield load_use(precision=precision).encode(SAMPLE)
        tokens = torch.randint(0, 50, (9, 7), generator=torch.Generator().manual_seed(0))
        yield Int8BiLSTM(bilstm())(tokens).numpy()


def digests() -> dict[str, list[str]]:
    """Return the digests of all that this process finds, in hexadecimal digits."""
    found = {
        **{f"{dim}": searched(dim, spread) for dim, spread in ((64, 1), (300, 0.1), (1100, 0.3))},
        "encoded": encoded(),
    }
    return {
        name: [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays]
        for name, arrays in found.items()
    }


def main() -> None:
    """Run the tests of products, and print ``digests`` in the last line."""
    if CHOSEN and CHOSEN.name != USABLE[0]:  # which runs choose, and so do all other tests
        tests = [*PRODUCTS, "-k", "not of_sets"]
        assert pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *tests]) == 0
    sys.stdout.write(json.dumps(digests()) + "\n")


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    """The digests of the set that runs choose."""
    return digests()


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [*USABLE, NONE])
def test_a_set_of_instructions(chosen: str, expected: dict[str, list[str]]) -> None:
    """With an old CPU's float products, which sum in another order."""
    environment = {**os.environ, VARIABLE: chosen, "OPENBLAS_CORETYPE": "Prescott"}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    if chosen == NONE:  # no set, no int8 vectors
        found["encoded"] = expected["encoded"]
    assert found == expected
