"""Measure the F1 of document pairing on Pro Git and on NTREX.

python benchmarks/document_pairing.py PROGIT NTREX

PROGIT has NAME.xx.txt, NTREX xx.txt; ten lines of NTREX make a document. With half of each side's
documents drawn at random, about half of those left have no translation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from encoder import load_encoder
from miner.document_pairing import pair_documents

Documents = dict[str, "np.ndarray"]


def main() -> None:
    progit, ntrex = map(Path, sys.argv[1:])
    for name, read, languages in (
        ("progit", lambda language: sections(progit, language), ("de", "fr", "es", "ru", "zh")),
        ("ntrex", lambda language: parts(ntrex, language), ntrex_languages(ntrex)),
    ):
        english = read("en")
        for language in languages:
            other = read(language)
            whole, halves = f1(other, english), f1(half(other, 1), half(english, 2))
            print(f"{name} {language}-en: F1 {whole:.4f}, of halves {halves:.4f}")


def ntrex_languages(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.txt") if file.stem != "en")


def sections(folder: Path, language: str) -> Documents:
    files = sorted(folder.glob(f"*.{language}.txt"))
    return {
        file.name.partition(".")[0]: encoded(file.read_text(encoding="utf-8"), language)
        for file in files
    }


def parts(folder: Path, language: str) -> Documents:
    lines = (folder / f"{language}.txt").read_text(encoding="utf-8").split("\n")
    starts = range(0, len(lines) - 1, 10)
    return {str(start): encoded("\n".join(lines[start : start + 10]), language) for start in starts}


def encoded(text: str, language: str) -> np.ndarray:
    encoder = ENCODER.for_language(language.partition("-")[0])
    return encoder.encode([line for line in text.split("\n") if line.strip()])


def half(documents: Documents, seed: int) -> Documents:
    kept = np.random.default_rng(seed).random(len(documents)) < 0.5
    return {name: documents[name] for name, keep in zip(documents, kept, strict=True) if keep}


def f1(source: Documents, target: Documents) -> float:
    order = np.random.default_rng(0).permutation(len(target))
    names = list(source), [list(target)[place] for place in order]
    found = pair_documents(list(source.values()), [target[name] for name in names[1]])
    pairs = zip(found.source, found.target, strict=True)
    right = sum(names[0][p] == names[1][q] for p, q in pairs)
    return 2 * right / (len(found) + len(source.keys() & target.keys()))


if __name__ == "__main__":
    ENCODER = load_encoder()
    main()
