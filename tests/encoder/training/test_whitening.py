import numpy as np
import pytest

from encoder.training.architectures.bag import partly_whiten


@pytest.fixture
def table() -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.normal(size=(50, 6)) * [9, 4, 2, 1, 1, 0.5]).astype(np.float32)


@pytest.fixture
def vectors(table: np.ndarray) -> np.ndarray:
    """Sums of ten rows of the table; not made unit, so that a map of the table maps them."""
    random = np.random.default_rng(1)
    return np.stack([table[random.integers(50, size=10)].sum(axis=0) for _ in range(3000)])


def test_power_0_changes_nothing(table: np.ndarray, vectors: np.ndarray) -> None:
    np.testing.assert_allclose(partly_whiten(table, vectors, power=0), table, atol=1e-5)


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_the_variances_are_those_of_the_power(
    table: np.ndarray, vectors: np.ndarray, power: float
) -> None:
    """The new vectors' covariance is the old one's to the power of 1 - power, up to a factor."""
    change = np.linalg.lstsq(table, partly_whiten(table, vectors, power=power), rcond=None)[0]
    before = np.linalg.eigvalsh(np.cov(vectors, rowvar=False))
    after = np.linalg.eigvalsh(np.cov(vectors @ change, rowvar=False))
    expected = before ** (1 - power)
    np.testing.assert_allclose(after / after[-1], expected / expected[-1], rtol=1e-3)


def test_one_dimension_stays(table: np.ndarray, vectors: np.ndarray) -> None:
    whitened = partly_whiten(table[:, :1], vectors[:, :1], power=1)
    np.testing.assert_allclose(whitened, table[:, :1], rtol=1e-6)


def test_fewer_sentences_than_dimensions(table: np.ndarray, vectors: np.ndarray) -> None:
    assert np.isfinite(partly_whiten(table, vectors[:3], power=1)).all()
