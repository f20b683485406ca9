"""Make miner/assets/judge.safetensors, the judge of mined pairs.

    python benchmarks/judge_mined.py train-more --pairs zh-en,it-en --among train \
        --bucc bucc-style --exclude NAMES

It learns from corpora that are made of parallel text, and from comparable corpora with gold pairs.
Takes about five minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from judge_training import ENCODERS, gather, train_judge
from synthetic_corpora import LabelledCorpora, labelled_corpora

from miner.commandline import parse_names
from miner.judge.model import BUNDLED


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_sources(parser)
    parser.add_argument("-o", "--output", type=Path, default=BUNDLED)
    args = parser.parse_args()
    examples = []
    for corpus in gather(corpora_of(args)):
        examples.append(corpus)
        count, correct = len(corpus.right), int(corpus.right.sum())
        print(f"{corpus.world}: {count:,} mined pairs, {correct:,} correct", flush=True)
    facts = {
        "encoders": ENCODERS,
        "excluded": sorted(args.exclude),
        "pairs": sum(len(corpus.right) for corpus in examples),
        "right": sum(int(corpus.right.sum()) for corpus in examples),
    }
    train_judge(examples).save(args.output, facts)
    return 0


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options of training data that ``corpora_of`` reads."""
    add = parser.add_argument
    text = "folder of parallel text, as for adit train, that no encoder was trained on"
    add("parallel", type=Path, metavar="DIR", help=text)
    text = "language pairs to make corpora of, such as de-en,fr-en; DIR and --among contain them"
    add("--pairs", type=parse_names, action="extend", required=True, metavar="XX-YY,...", help=text)
    text = (
        "further language pairs, only of DIR, to make smaller corpora of, from up to 4,000 "
        "sentence pairs each (default: none)"
    )
    add("--more", type=parse_names, action="extend", default=[], metavar="XX-YY,...", help=text)
    text = "folder of other parallel text, whose sentences are added without their translations"
    add("--among", type=Path, required=True, metavar="DIR", help=text)
    text = "folder of comparable corpora: xx-en/xx-en.SPLIT.xx, .en and .gold, as for adit evaluate"
    add("--bucc", type=Path, required=True, metavar="DIR", help=text)
    text = "corpora to skip in both folders of parallel text, as for adit train (default: none)"
    add("--exclude", type=parse_names, action="extend", default=[], metavar="NAME,...", help=text)


def corpora_of(args: argparse.Namespace) -> Iterator[LabelledCorpora]:
    """Load the corpora of ``add_sources``'s options by ``labelled_corpora``."""
    options = {"among": args.among, "bucc": args.bucc, "exclude": frozenset(args.exclude)}
    return labelled_corpora(args.parallel, args.pairs, more=args.more, **options)


if __name__ == "__main__":
    sys.exit(main())
