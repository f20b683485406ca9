"""What a part of a joined encoder brings: the means of its rows, and for `use` its languages.

python benchmarks/joined_parts.py mini --train DATA
python benchmarks/joined_parts.py use --train DATA --ntrex DIR

A mean is that of 2,000 sentences of 40 characters or more of a language's training text; corpora
with non-commercial terms are left out. English is drawn from all languages' text alike.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
from languages import ntrex_errors
from safetensors.numpy import save

from encoder import Encoder, folder_of, load_encoder
from encoder.checkpoint import CONFIG, replace_files
from encoder.coverage import find_coverage, individual, read_coverage
from encoder.joined import ALL, MEANS
from encoder.training.reading import find_parallel_text, read_parallel_text

SENTENCES, MIN_LENGTH = 2000, 40
EXCLUDED = frozenset({"multi30k", "quran", "ted", "django-docs"})
USE_LANGUAGES = (
    "ar de en es fr it ja ko nl pl pt ru th tr zh".split()
)  # Yang et al. 2019, section 2


def main() -> None:
    """Write the means, and the languages where they are measured, into the part's folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("encoder", help="mini, use, or a folder")
    parser.add_argument("--train", type=Path, required=True, nargs="+", help="training text")
    parser.add_argument("--ntrex", type=Path, help="measure the languages of use on it")
    args = parser.parse_args()
    encoder = load_encoder(args.encoder)
    folder = folder_of(args.encoder)
    folder.mkdir(exist_ok=True)
    if args.ntrex is not None:
        errors = {**ntrex_errors(encoder, args.ntrex), "en": 0.0}
        languages = {
            name: {"error": round(errors[name], 4), "measured": "ntrex"} for name in USE_LANGUAGES
        }
        text = json.dumps({"languages": languages, "dim": encoder.dim}, indent=1, sort_keys=True)
        replace_files(folder, {CONFIG: (text + "\n").encode()})
    means = language_means(encoder, args.encoder, args.train)
    replace_files(folder, {MEANS: save(means)})
    print(f"{folder / MEANS}: {len(means) - 1} languages")


def language_means(encoder: Encoder, spec: str, folders: list[Path]) -> dict[str, np.ndarray]:
    """Return the mean of the rows of each language covered, float32 (D,), and of all alike."""
    known = read_coverage(spec)
    texts: dict[str, list[str]] = {}
    english: list[str] = []
    for folder in folders:
        for name, files in sorted(find_parallel_text(folder).items()):
            language, _, other = name.partition("-")
            if other != "en" or find_coverage(known, language) is None:
                continue
            text = read_parallel_text(files, exclude=EXCLUDED)
            texts.setdefault(individual(language), []).extend(text.source)
            english += _drawn(text.target, SENTENCES // 10)
    texts["en"] = english
    means = {
        language: encoder.for_language(language).encode(_drawn(sentences, SENTENCES)).mean(axis=0)
        for language, sentences in sorted(texts.items())
    }
    return {**means, ALL: np.mean([*means.values()], axis=0)}


def _drawn(sentences: list[str], count: int) -> list[str]:
    long = sorted({sentence for sentence in sentences if len(sentence) >= MIN_LENGTH})
    rest = long or sorted(set(sentences))
    return random.Random(1).sample(rest, min(count, len(rest)))


if __name__ == "__main__":
    main()
