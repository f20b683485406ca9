import pytest

from miner.knn.core import products, tuning, vnni

CACHES = products.compiled_int8, products.int8_is_exact, tuning.product_rates


@pytest.fixture
def fresh():
    """Nothing is known of what this machine computes products in."""
    for cached in CACHES:
        cached.cache_clear()
    yield
    for cached in CACHES:
        cached.cache_clear()


@pytest.fixture
def no_vnni(fresh, monkeypatch):
    """A processor without the instructions: int8 is left to torch."""
    monkeypatch.setattr(vnni, "AVAILABLE", False)
