import pytest

from miner.knn.core import int8, products, tuning

CACHES = (
    *(products.int8_kernels, products._torch_is_faster, products.int8_is_exact),
    *(products.largest_code, products.largest_sum, tuning._rates),
)


@pytest.fixture(scope="session")
def torch():
    """The package, which an emulated CPU does without."""
    return pytest.importorskip("torch")


@pytest.fixture
def fresh():
    """Nothing is known of what this machine computes products in."""
    for cached in CACHES:
        cached.cache_clear()
    yield
    for cached in CACHES:
        cached.cache_clear()


@pytest.fixture
def no_kernels(fresh, monkeypatch):
    """A CPU without a set of instructions: int8 is left to torch."""
    monkeypatch.setattr(int8, "CHOSEN", None)
