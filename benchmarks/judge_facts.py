"""Make miner/assets/judge-facts.safetensors, by which the judge reads facts.

    python benchmarks/judge_facts.py TRAIN TRAIN_MORE --exclude multi30k,3am,quran,ted

TRAIN and TRAIN_MORE are folders of parallel text with English, XX-en.tsv.xz. A language has up to
as many pairs as QUOTA says, equally from its corpora, and more with words that are listed in
benchmarks/contradicting-words.tsv. Takes about 15 minutes on one core, and 2 GB.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from facts_training import choose_meanings, english_words, save_facts, sides_of, train_facts
from synthetic_corpora import LISTED_GROUPS

from encoder import load_encoder
from encoder.training.reading import Files, ParallelText, find_parallel_text, read_parallel_text
from encoder.words import word_encoders
from miner.judge.facts import BUNDLED

LANGUAGES = """de fr zh ru es it pt cs nl tr ja pl uk ar fi sv hu id vi he bg ro da nb el fa sr hr
sk sl lt lv et is sq eu gl ca mk bn ur ms af be mr tl hi ko ta th sw ka kk hy te az""".split()
LARGE = 11  # of these languages are of the base encoder
QUOTA = ((24000, 8000), (9000, 5000))  # pairs per folder, of large and of other languages
VERSES = 1500  # of a Bible
WITH_WORD = (120, 60)  # pairs with a listed word, of large and of other languages
CHARACTERS = 15, 260
STEPS = 13000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs=2, type=Path)
    parser.add_argument("--exclude", default="")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("-o", "--output", type=Path, default=BUNDLED)
    args = parser.parse_args()
    exclude = frozenset(args.exclude.split(","))
    found = [find_parallel_text(folder) for folder in args.folders]
    texts = [choose(found, each, exclude, Random(each)) for each in LANGUAGES]
    names = choose_meanings([text.target for text in texts])
    encoder, sides, encoders = load_encoder(), [], set()
    for language, text in zip(LANGUAGES, texts, strict=True):
        makers = word_encoders(encoder, (language, "en"))
        encoders |= {maker.name for maker in makers}
        sides += sides_of(text, makers, names)
    learner = train_facts(sides, names, args.steps, show)
    save_facts(args.output, learner, sides, names, encoders)
    return 0


def choose(
    folders: Sequence[Mapping[str, Files]], language: str, exclude: frozenset[str], random: Random
) -> ParallelText:
    """Return some pairs of a language's corpora, and those with rare listed words."""
    kind = int(LANGUAGES.index(language) >= LARGE)
    files = [folder.get(f"{language}-en") for folder in folders]
    texts = [read_parallel_text(each, exclude=exclude) if each else None for each in files]
    listed = {word for group in LISTED_GROUPS for sense in group for word in sense}
    chosen: list[tuple[str, str]] = []
    rest: list[tuple[str, str]] = []
    for text, quota in zip(texts, QUOTA[kind], strict=True):
        if text is None:
            continue
        pairs = [*zip(text.source, text.target, text.corpus, strict=True)]
        random.shuffle(pairs)
        corpora = Counter(text.corpus)
        left, room = quota, dict.fromkeys(corpora, 0)
        for place, (corpus, size) in enumerate(sorted(corpora.items(), key=lambda item: item[1])):
            most = VERSES if corpus == "bible" else size
            room[corpus] = min(size, most, left // (len(corpora) - place))
            left -= room[corpus]
        for source, target, corpus in pairs:
            is_chosen = room[corpus] > 0 and CHARACTERS[0] <= len(target) <= CHARACTERS[1]
            room[corpus] -= is_chosen
            (chosen if is_chosen else rest).append((source, target))
    counts = Counter(word for _, target in chosen for word in listed & {*english_words(target)})
    for pair in rest:
        words = listed & {*english_words(pair[1])}
        if any(counts[word] < WITH_WORD[kind] for word in words):
            counts.update(words)
            chosen.append(pair)
    random.shuffle(chosen)
    source, target = (list(side) for side in zip(*chosen, strict=True))
    return ParallelText(name="", source=source, target=target, corpus=[""] * len(source))


def show(step: int, loss: float) -> None:
    print(f"step {step}: loss {loss:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
