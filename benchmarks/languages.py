"""Measure how well an encoder covers its languages.

python benchmarks/languages.py encoder/assets/mini/more --ntrex DIR --tatoeba DIR --train DATA

Of what was added to an encoder, the languages are measured as parts of the whole.
The search error of a language is that of NTREX by ratio margin where it is there, else of Tatoeba,
else of the pairs that training held out, both by cosine and both ways.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from encoder import MORE, Encoder, load_encoder
from encoder.checkpoint import CONFIG, read_config, replace_files
from encoder.training.data import hold_out
from encoder.training.evaluation import retrieval_error
from encoder.training.reading import ParallelText, find_parallel_text, read_parallel_text
from eval.data.languages import iso_639_1
from eval.metrics.similarity import best_by_margin, find_nearest, is_wrong
from eval.tasks.aligned import aligned_files
from eval.tasks.tatoeba import load_tatoeba, tatoeba_languages
from miner.storage.streams import read_lines

SETS = ("ntrex", "tatoeba", "held-out")


def main() -> None:
    """Measure, write the languages into the configuration, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("encoder", type=Path, help="folder of an encoder")
    parser.add_argument("--ntrex", type=Path, required=True)
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--train", type=Path, required=True, help="what it was trained on")
    args = parser.parse_args()
    added = args.encoder.name == MORE
    encoder = load_encoder(str(args.encoder.parent if added else args.encoder))
    config = read_config(args.encoder)
    pairs = config["facts"]["pairs"]
    trained = {name.removesuffix("-en"): sum(pairs[name].values()) for name in pairs}
    excluded = frozenset(config["facts"]["excluded"])
    errors = dict(
        zip(
            SETS,
            (
                ntrex_errors(encoder, args.ntrex),
                tatoeba_errors(encoder, args.tatoeba),
                held_out_errors(encoder, args.train, excluded, set(pairs)),
            ),
            strict=True,
        )
    )
    languages = {} if added else {"en": {"error": 0.0, "measured": "ntrex"}}
    rows = []
    own = [name for name in trained if added and encoder.for_language(name) is encoder]
    for language in sorted(name for name in trained if "-" not in name and name not in own):
        found = {name: errors[name][language] for name in SETS if language in errors[name]}
        measured = next(name for name in SETS if name in found)
        languages[language] = {"error": round(found[measured], 4), "measured": measured}
        rows.append((found[measured], language, trained[language], found))
    write_languages(args.encoder, languages)
    print("| language | pairs | NTREX | Tatoeba | held out |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for _, language, count, found in sorted(rows):
        cells = [f"{100 * found[name]:.1f}" if name in found else "" for name in SETS]
        print(f"| {language} | {count:,} | {' | '.join(cells)} |")


def write_languages(folder: Path, languages: dict[str, dict[str, object]]) -> None:
    """Write the languages into the configuration, and leave the weights."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    text = json.dumps(
        {**config, "languages": languages}, indent=1, ensure_ascii=False, sort_keys=True
    )
    replace_files(folder, {CONFIG: (text + "\n").encode()})


class Remembering:
    """An encoder that encodes each text of a language once."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dim, self.precision = encoder.name, encoder.dim, encoder.precision
        self._encoder = encoder
        self._known: dict[str, np.ndarray] = {}
        self._others: dict[str | None, Remembering] = {}

    def for_language(self, language: str | None) -> Remembering:
        """Return the encoder of a language."""
        if language not in self._others:
            self._others[language] = Remembering(self._encoder.for_language(language))
        return self._others[language]

    def for_languages(self, languages: Sequence[str | None]) -> Remembering:
        """Return the encoder of several languages."""
        own = self._encoder.for_languages(languages)
        return self if own.name == self.name else Remembering(own)

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> np.ndarray:
        """Encode sentences as unit rows."""
        new = [text for text in dict.fromkeys(sentences) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in sentences])


def ntrex_errors(
    encoder: Encoder, folder: Path, languages: Collection[str] = ()
) -> dict[str, float]:
    """Return the error of margin search into English by language."""
    files = aligned_files(folder)
    english = encoder.for_language("en").encode(read_lines(files.pop("en")))
    errors = {}
    for language in languages or files:
        path = files[language]
        forward, backward = find_nearest(
            encoder.for_language(language).encode(read_lines(path)), english
        )
        missed = is_wrong(best_by_margin(forward, backward, margin="ratio"))
        errors[language] = float(np.mean(missed))
    return errors


def tatoeba_errors(encoder: Encoder, folder: Path) -> dict[str, float]:
    """Return the mean error of cosine search both ways, by ISO 639-1 code."""
    errors = {}
    for code in tatoeba_languages(folder):
        language = iso_639_1(code)
        source, target = load_tatoeba(folder, code)
        text = ParallelText(name=f"{language}-en", source=source, target=target, corpus=[])
        errors[language] = retrieval_error(encoder, text)
    return errors


def held_out_errors(
    encoder: Encoder, folder: Path, excluded: frozenset[str], pairs: set[str]
) -> dict[str, float]:
    """Return the error of cosine search among each language's held-out pairs."""
    errors = {}
    for name, files in find_parallel_text(folder).items():
        if name in pairs and name.endswith("-en"):
            _, kept = hold_out(read_parallel_text(files, exclude=excluded), 500, seed=1)
            errors[name.removesuffix("-en")] = retrieval_error(encoder, kept)
    return errors


if __name__ == "__main__":
    main()
