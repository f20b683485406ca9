from pathlib import Path

import pytest

from encoder.tokenizer import Tokenizer, train_tokenizer
from tests.encoder.training.language import made_up_pairs

VOCABULARY = 300


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    sentences = [sentence for pair in made_up_pairs(800, seed=7) for sentence in pair]
    work_dir = Path(tmp_path_factory.mktemp("tokenizer"))
    return Tokenizer(train_tokenizer(sentences, vocabulary_size=VOCABULARY, work_dir=work_dir))


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """Made-up sentences, and some that are odd in every way that text can be."""
    made_up = [sentence for pair in made_up_pairs(40, seed=3) for sentence in pair]
    odd = ["", " ", "\t\u3000\u200b\n", "漢字", "☃" * 50, "a\0b", "A", "a", "ab " * 5000]
    return [*odd[:5], *made_up, *odd[5:]]
