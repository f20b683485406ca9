"""Options of ``adit map`` and ``adit bootstrap``."""

from dataclasses import dataclass, field
from pathlib import Path

from encoder.monolingual.options import WordOptions
from encoder.training import options as training
from encoder.training.options import ValidatedOptions, inherit_option, option
from miner.storage.places import Place

STARTS = ("identical", "similarity", "adversarial", "adversarial-alone")
IDENTICAL, SIMILARITY, ADVERSARIAL, ALONE = STARTS
VEC = ".vec"


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The options that ``adit map`` and ``adit bootstrap`` share.

    ``languages`` are codes without script and region, of the corpora ``source`` and ``target``.
    ``input_format`` is theirs, as for ``--input-format``. ``output`` is a folder.
    """

    source: Place
    target: Place
    languages: tuple[str, str]
    output: Path
    input_format: str = "auto"


@dataclass(frozen=True, kw_only=True)
class MapOptions(TextOptions):
    """Options of ``adit map``, whose corpora may be word vectors (``.vec``).

    ``start`` is one of ``STARTS``, or the path of a file with a word and its translation per line.
    The map is refitted ``refinements`` times to mutual nearest neighbours. ``vec`` is a folder to
    write both languages' mapped word vectors to, as ``XX.vec``, or None.
    """

    start: str = IDENTICAL
    refinements: int = 5
    vec: Path | None = None
    words: WordOptions = field(default_factory=WordOptions)


class RoundOptions(ValidatedOptions):
    """Options of the rounds. ValueError says that one is beyond its limits."""

    rounds: int = option(3, "maximum number of rounds", low=1)
    fdr: float = option(
        0.1, "maximum estimated share of wrong pairs to train on", low=0.0001, high=0.5
    )
    best: float = option(
        0.25, "share of pairs to train on if --fdr cannot select any", low=0.0001, high=1
    )
    steps: int = option(2_000, "training steps per round", low=1)
    learning_rate: float = inherit_option(training.ArchitectureOptions, "learning_rate", 2e-3)
    dim: int = inherit_option(training.ArchitectureOptions, "dim", 384)
    vocabulary_size: int = option(
        16_000, "number of subwords; fewer if a round has fewer pairs", low=1
    )
    ngram_rows: int = inherit_option(training.ArchitectureOptions, "ngram_rows", 131_072)
    batch_size: int = option(1024, "pairs per batch, ranked against each other", low=2)
    held_out: int = option(500, "pairs per round that are only evaluated, not trained on", low=1)
    seed: int = inherit_option(training.TrainingOptions, "seed", 1)


@dataclass(frozen=True, kw_only=True)
class BootstrapOptions(TextOptions):
    """Options of ``adit bootstrap``.

    ``encoder`` encodes the first round, named as for ``--encoder``. ``known``, named like
    ``known.de-en.tsv``, is a file of gold pairs on which every round also trains, or None.
    """

    encoder: str
    known: Path | None = None
    each: RoundOptions
