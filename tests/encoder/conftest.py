import pytest

from encoder.tokenizer import Tokenizer, train_tokenizer
from tests.encoder.training.language import made_up_pairs

VOCABULARY = 300


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    sentences = [sentence for pair in made_up_pairs(800, seed=7) for sentence in pair]
    return Tokenizer(train_tokenizer(sentences, vocabulary_size=VOCABULARY))


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """Made-up sentences, and some that are odd in every way that text can be."""
    made_up = [sentence for pair in made_up_pairs(40, seed=3) for sentence in pair]
    odd = ["", " ", "\t\u3000\u200b\n", "漢字", "☃" * 50, "a\0b", "A", "a", "ab " * 5000]
    return [*odd[:5], *made_up, *odd[5:]]
