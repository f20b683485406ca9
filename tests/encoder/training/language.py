"""A language pair made up on the spot: random words, and one translation for each."""

import lzma
from pathlib import Path
from typing import Any

import numpy as np

from encoder.training.options import TrainingOptions
from encoder.training.reading import ParallelText
from encoder.training.tasks.task import Setting

WORDS = 150


def made_up_words(letters: str, generator: np.random.Generator) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(generator.choice(list(letters), generator.integers(3, 7)))] = None
    return list(words)


def made_up_pairs(count: int, *, seed: int) -> list[tuple[str, str]]:
    """Sentences of random words, and the same words of the other language in another order."""
    generator = np.random.default_rng(seed)
    source_words = made_up_words("abdeghiklmnorstu", generator)
    target_words = made_up_words("абвгдежзиклмнорст", generator)
    pairs = []
    for _ in range(count):
        words = generator.integers(WORDS, size=generator.integers(3, 9))
        source = " ".join(source_words[word] for word in words)
        target = " ".join(target_words[word] for word in generator.permutation(words))
        pairs.append((source, target))
    return pairs


def made_up_triples(count: int, *, words: int, seed: int) -> list[tuple[str, str, str]]:
    """Short sentences of few words in three languages, word by word."""
    generator = np.random.default_rng(seed)
    letters = "abdeghiklmnorstu", "абвгдежзиклмнорст", "αβγδεζηικλμνορστ"
    languages = [made_up_words(some, generator)[:words] for some in letters]
    triples = []
    for _ in range(count):
        meant = generator.integers(words, size=generator.integers(2, 5))
        one, two, three = (" ".join(own[word] for word in meant) for own in languages)
        triples.append((one, two, three))
    return triples


def write_pairs(path: Path, pairs: list[tuple[str, str]], corpus: str = "made-up") -> Path:
    text = "".join(f"{source}\t{target}\t{corpus}\n" for source, target in pairs)
    path.write_bytes(lzma.compress(text.encode("utf-8"), preset=0))
    return path


class Alike:
    """An encoder that does the same to all languages."""

    def for_language(self, language: str | None) -> "Alike":
        return self


def setting_of(options: TrainingOptions, *names: str, vocabulary: int = 10, **more: Any) -> Setting:
    """What a task begins with, with a sentence for each of the language pairs ``names``."""
    texts = [ParallelText(name=one, source=["a"], target=["b"], corpus=["c"]) for one in names]
    return Setting(options, vocabulary, **{"texts": texts, **more})
