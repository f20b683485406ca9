import numpy as np
import pytest

from encoder.use.products import Weights


@pytest.mark.parametrize(("rows", "dim", "columns"), [(1, 4, 1), (5, 33, 64), (13, 256, 100)])
def test_products_are_sums_in_the_order_of_dimensions(rows: int, dim: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    wide = rng.standard_normal((rows, dim + 7)).astype(np.float32)
    left, right = wide[:, 3 : 3 + dim], rng.standard_normal((dim, columns)).astype(np.float32)
    expected = np.zeros((rows, columns))
    for place in range(dim):  # a product is exact in float64, and each sum is rounded once
        expected = (left[:, [place]].astype(np.float64) * right[place] + expected).astype(
            np.float32
        )
    found = Weights(right).multiplied(left)
    np.testing.assert_allclose(found, left @ right, rtol=1e-4, atol=1e-4)
    assert (found == expected).mean() > 0.99  # float64 rounds some sums twice


def test_no_rows_have_no_products() -> None:
    assert Weights(np.ones((4, 3), np.float32)).multiplied(np.ones((0, 4), np.float32)).shape == (
        0,
        3,
    )
