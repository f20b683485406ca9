"""Write the means and languages of a part of a joined encoder.

python benchmarks/joined_parts.py mini --train DATA
python benchmarks/joined_parts.py use --train DATA --ntrex DIR
python benchmarks/joined_parts.py use/more --train DATA --ntrex DIR

A mean is that of 2,000 sentences of 40 characters or more of a language's training text; corpora
with non-commercial terms are left out. English is drawn from all languages' text alike.

`use/more` is what `use` reads by its glossary (encoder/use/glossary.py): of the languages of `mini`
that NTREX has, those of which both joined miss fewer translations there than `mini` alone. Their
means are added to those of `use`, which stay.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from languages import Remembering, ntrex_errors
from safetensors.numpy import load_file, save

from encoder import BUNDLED, JOINED, MORE, USE, Encoder, folder_of, load_encoder
from encoder.checkpoint import CONFIG, replace_files
from encoder.coverage import language_key, read_coverage
from encoder.joined import ALL, MEANS, JoinedEncoder, load_joined, parse_joined
from encoder.training.reading import find_parallel_text, read_parallel_text
from encoder.use.glossary import added_languages
from eval.tasks.aligned import aligned_files

SENTENCES, MIN_LENGTH = 2000, 40
EXCLUDED = frozenset({"multi30k", "quran", "ted", "django-docs"})
USE_LANGUAGES = (
    "ar de en es fr it ja ko nl pl pt ru th tr zh".split()
)  # Yang et al. 2019, section 2


def main() -> None:
    """Write the means and, if measured, the languages into the part's folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("encoder", help="mini, use, use/more, or a folder")
    parser.add_argument("--train", type=Path, required=True, nargs="+", help="training text")
    parser.add_argument("--ntrex", type=Path, help="measure languages of use on it")
    args = parser.parse_args()
    if args.encoder == f"{USE}/{MORE}":
        add_languages(args.train, args.ntrex)
        return
    encoder = load_encoder(args.encoder)
    folder = folder_of(args.encoder)
    folder.mkdir(exist_ok=True)
    if args.ntrex is not None:
        errors = {**ntrex_errors(encoder, args.ntrex), "en": 0.0}
        _write_languages(folder, {name: errors[name] for name in USE_LANGUAGES}, dim=encoder.dim)
    own = USE_LANGUAGES if args.encoder == USE else read_coverage(args.encoder)
    means = language_means(encoder, own, args.train)
    replace_files(folder, {MEANS: save(means)})
    print(f"{folder / MEANS}: {len(means) - 1} languages")


def add_languages(train: list[Path], ntrex: Path) -> None:
    """Choose the languages that the glossary reads, and write them.

    Measurements start with all languages.
    """
    folder, files = folder_of(USE), aligned_files(ntrex)
    candidates = [name for name in read_coverage(BUNDLED) if name not in USE_LANGUAGES]
    candidates = [name for name in candidates if name in files]
    _write_languages(folder / MORE, dict.fromkeys(candidates, 1.0))
    own = {language_key(name) for name in (*USE_LANGUAGES, ALL)}
    means = {name: mean for name, mean in load_file(folder / MEANS).items() if name in own}
    found = language_means(load_encoder(USE, precision="auto"), candidates, train)
    found = {language_key(name): found[language_key(name)] for name in candidates}
    replace_files(folder, {MEANS: save({**means, **found})})
    before = {name: known.error for name, known in read_coverage(BUNDLED).items()}
    joined_encoder = load_joined(parse_joined(JOINED), precision="auto")
    parts = [replace(part, whole=Remembering(part.whole)) for part in joined_encoder.parts]
    alone, joined = (
        ntrex_errors(encoder, ntrex, candidates)
        for encoder in (parts[-1].whole, JoinedEncoder(parts))
    )
    kept = [name for name in candidates if joined[name] < before[name]]
    print("| language | mini | use | mini+use | |", "| --- | ---: | ---: | ---: | --- |", sep="\n")
    for name in sorted(candidates, key=lambda name: joined[name]):
        cells = " | ".join(f"{100 * errors[name]:.1f}" for errors in (before, alone, joined))
        print(f"| {name} | {cells} | {'' if name in kept else 'left out'} |")
    _write_languages(folder / MORE, {name: alone[name] for name in kept})
    means |= {language_key(name): found[language_key(name)] for name in kept}
    replace_files(folder, {MEANS: save(means)})


def _write_languages(folder: Path, errors: Mapping[str, float], **more: object) -> None:
    """Write the languages into a configuration, which may exist."""
    path = folder / CONFIG
    config = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    languages = {name: {"error": round(e, 4), "measured": "ntrex"} for name, e in errors.items()}
    text = json.dumps({**config, **more, "languages": languages}, indent=1, sort_keys=True)
    replace_files(folder, {CONFIG: (text + "\n").encode()})
    added_languages.cache_clear()


def language_means(
    encoder: Encoder, languages: Iterable[str], folders: list[Path]
) -> dict[str, np.ndarray]:
    """Return the mean row of each language and of all, float32 (D,)."""
    known = set(map(language_key, languages))
    texts: dict[str, list[str]] = {}
    english: list[str] = []
    for folder in folders:
        for name, files in sorted(find_parallel_text(folder).items()):
            language, _, other = name.partition("-")
            if other != "en" or language_key(language) not in known:
                continue
            text = read_parallel_text(files, exclude=EXCLUDED)
            texts.setdefault(language_key(language), []).extend(text.source)
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
