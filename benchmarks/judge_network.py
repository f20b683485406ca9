"""Make miner/assets/judge-network.safetensors, which compares the words of given pairs.

    python benchmarks/judge_network.py TRAIN TRAIN_MORE

TRAIN and TRAIN_MORE are folders of parallel text with English, XX-en.tsv.xz. Half of each batch is
of corpora in TRAIN that no bundled encoder was trained on. A quarter of all English sentences is
kept back. At the end, areas under the ROC curve on some of them are printed, in percent by the kind
of change. Training takes minutes on a GPU, and hours on two cores.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
from changed_pairs import read_corpus
from judge_facts import LANGUAGES, LARGE, choose
from network_training import rate_changes, save_network, train_network

from encoder import load_encoder
from encoder.training.reading import ParallelText, find_parallel_text, read_parallel_text
from miner.judge.facts import BUNDLED

SEEN = "de fr zh ru es it pt cs nl tr ja fi ar hi ko he th pl hu ta et uk vi id lt sw kk".split()
UNSEEN = {  # pairs by corpus and language
    "multi30k": {"de": 6000, "fr": 4000, "cs": 6000},
    "3am": {"zh": 8000},
    "ted": {"vi": 12000},
    "quran": dict.fromkeys("fr zh es ru ar tr id sv bn ur".split(), 6000),
}
COUNTS = 9000, 6000  # pairs of languages of the base encoder, and of others
RATED = 700  # pairs kept back per language
CHARACTERS, SHORT = (20, 300), 100  # of an English sentence, and of one that is joined
STEPS = 4700


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs=2, type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    output = BUNDLED.with_name("judge-network.safetensors")
    parser.add_argument("-o", "--output", type=Path, default=output)
    args = parser.parse_args()
    found = [find_parallel_text(folder) for folder in args.folders]
    learned, rated = [], []
    for language in SEEN:
        text = choose(found, language, frozenset(UNSEEN), Random(language))
        count = COUNTS[LANGUAGES.index(language) >= LARGE]
        learned.append(draw(language, text, count, is_kept_back=False))
        rated.append(draw(language, text, RATED, is_kept_back=True))
    seen = sum(map(len, learned))
    for corpus, counts in UNSEEN.items():
        for language, count in counts.items():
            text = read_parallel_text(found[0][f"{language}-en"], exclude=frozenset())
            rows = [row for row, own in enumerate(text.corpus) if own == corpus]
            learned.append(draw(language, text.take(np.array(rows)), count, is_kept_back=False))
    encoder = load_encoder()
    corpora = read_corpus(learned, encoder)
    network = train_network(corpora, seen, args.steps, show)
    languages = sorted({text.name.partition("-")[0] for text in learned})
    about = {"languages": languages, "steps": args.steps, "pairs": sum(map(len, learned))}
    save_network(args.output, network, corpora, about)
    for kind, area in rate_changes(network, read_corpus(rated, encoder)).items():
        print(f"{kind}: {100 * area:.1f}")
    return 0


def draw(language: str, text: ParallelText, count: int, *, is_kept_back: bool) -> ParallelText:
    """Draw up to ``count`` pairs, longer ones with a higher probability, and join short ones."""
    random, (least, most) = Random(language), CHARACTERS
    pairs = [
        (source, target)
        for source, target in zip(text.source, text.target, strict=True)
        if least <= len(target) <= most and (crc32(target.encode()) % 4 == 0) == is_kept_back
    ]
    drawn = random.choices(pairs, [len(target) for _, target in pairs], k=4 * count)
    chosen = list(dict.fromkeys(drawn))[:count]
    short = [pair for pair in chosen if len(pair[1]) < SHORT]
    joint = "" if language in ("zh", "ja", "th") else " "
    for size, part in ((2, short[::2]), (3, short[1::2])):
        for first in range(0, len(part) - size + 1, size):
            source, target = zip(*part[first : first + size], strict=True)
            chosen.append((joint.join(source), " ".join(target)))
    random.shuffle(chosen)
    sides = [list(side) for side in zip(*chosen, strict=True)]
    return ParallelText(
        name=f"{language}-en", source=sides[0], target=sides[1], corpus=[""] * len(chosen)
    )


def show(step: int, loss: float) -> None:
    print(f"step {step}: loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
