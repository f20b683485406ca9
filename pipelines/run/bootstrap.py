"""Improve an encoder in rounds of mining, and training on mined pairs.

A round is a folder, ``OUT/rounds/N``, with its run's work folder, its pairs and its encoder.
"""

import json
import logging
import math
import zlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from encoder import load_encoder
from encoder.checkpoint import CONFIG, TOKENIZER, WEIGHTS, replace_files
from encoder.training.options import Recipe, training_options
from encoder.training.reading import PAIR
from encoder.training.recipe import train_encoder
from encoder.training.state import check_identity
from miner.storage.artefacts import read_json
from miner.storage.atomic import atomic_file, check_folder, write_text
from miner.storage.documents.split import open_side
from miner.storage.streams import split_compression
from pipelines.making_options import BootstrapOptions
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.progress import Monitor
from pipelines.run.mining import mine_corpus
from pipelines.stages.reading.cut import digest_of

logger = logging.getLogger(__name__)

TRAINING = ("learning_rate", "dim", "ngram_rows", "batch_size", "steps", "seed")  # in RoundOptions
HELD_OUT_EVERY = 20  # one in 20 source sentences is held out to compare encoders


def bootstrap(options: BootstrapOptions, monitor: Monitor) -> list[dict[str, Any]]:
    """Mine and train in rounds, and write the best encoder to ``output``.

    A dictionary per mining, also the last, which only evaluates, is returned: "pairs" is the number
    of mined pairs to train on, "kept by" their rule ("fdr 0.1" or "best 0.25"), "mutual" that of
    held-out sentences with a mutual nearest neighbour. Rounds also end if it does not grow, and
    finished ones are reused.

    Raises:
        ValueError: Inputs are invalid, a mining finds no usable pair, the first encoder stays the
            best, or ``output`` has rounds of other inputs or options except ``rounds``.
        OSError: A file cannot be read or written.
        ModuleNotFoundError: Training needs torch, which is not installed.
    """
    folder = options.output / "rounds"
    _begin(options, folder)
    figures: list[dict[str, Any]] = []
    encoder = best = options.encoder
    previous = 0
    for number in range(1, options.each.rounds + 2):  # the last one only evaluates an encoder
        path = folder / str(number)
        figures.append(_mine_round(options, path, encoder, monitor))
        pairs, rule, mutual = (figures[-1][name] for name in ("pairs", "kept by", "mutual"))
        logger.info(
            "round %d: %d pairs (%s); %d held-out sentences have a mutual nearest neighbour",
            *(number, pairs, rule, mutual),
        )
        if mutual < previous - math.sqrt(previous):
            break
        best = encoder  # if chance may explain the difference, the encoder of more pairs
        if number > 1 and mutual <= previous:
            break
        previous = mutual
        if number <= options.each.rounds:
            encoder = _train_round(options, path, pairs, monitor)
    if best == options.encoder:
        raise ValueError(
            f"{options.output}: not written, because the encoder of the first round is worse than "
            f"{best}; use other text, or more text"
        )
    names = (TOKENIZER, WEIGHTS, CONFIG)
    replace_files(options.output, {name: (Path(best) / name).read_bytes() for name in names})
    return figures


def _begin(options: BootstrapOptions, folder: Path) -> None:
    check_folder(options.output)
    if options.known is not None:
        _check_known(options, options.known)
    folder.mkdir(parents=True, exist_ok=True)
    values = asdict(options.each)
    del values["rounds"]  # more rounds may follow
    identity = {
        **values,
        "languages": list(options.languages),
        "encoder": load_encoder(options.encoder, precision="auto").name,
        "corpora": [
            digest_of(file)[:12]
            for corpus in (options.source, options.target)
            for file in open_side(corpus, options.input_format).files
        ],
        "known": None if options.known is None else digest_of(options.known)[:12],
    }
    path = folder / "options.json"
    if not path.exists():
        write_text(path, json.dumps(identity, indent=1) + "\n")
    check_identity(folder, read_json(path), identity, "a bootstrap")


def _check_known(options: BootstrapOptions, known: Path) -> None:
    if not known.is_file():
        raise ValueError(f"--known {known}: file not found; check its path")
    name = "-".join(options.languages)
    if not PAIR.fullmatch(name):
        raise ValueError(
            f"--known {known}: cannot be used with the languages {name}, because one has a hyphen; "
            "pass a code without script or region, such as zh, or omit --known"
        )
    if name not in known.name.split("."):
        suffixes = "".join(split_compression(known))
        raise ValueError(
            f"--known {known}: name lacks the languages {name}; rename it to known.{name}{suffixes}"
        )


def _mine_round(
    options: BootstrapOptions, folder: Path, encoder: str, monitor: Monitor
) -> dict[str, Any]:
    seal = folder / "round.json"
    if seal.exists():
        return read_json(seal)
    mined, trusted, kept = (_pairs(options, folder, kind) for kind in ("mined", "trusted", "kept"))
    mined.parent.mkdir(parents=True, exist_ok=True)
    source, target = (
        CorpusOptions(path=path, language=language, input_format=options.input_format)
        for path, language in zip((options.source, options.target), options.languages, strict=True)
    )
    mining = MiningOptions(
        source=source, target=target, output=mined, work_dir=folder / "work", encoder=encoder
    )
    fdr, best = options.each.fdr, options.each.best
    mine_corpus(mining, monitor)
    try:
        mine_corpus(replace(mining, output=trusted, fdr=fdr), monitor)
        figures = _keep(trusted, kept, 1.0, f"fdr {fdr:g}")
    except ValueError as error:  # of --fdr or its pairs, because mining without it succeeded
        logger.info("keeping the best %g of all pairs: %s", best, error)
        figures = _keep(mined, kept, best, f"best {best:g}")
    figures["mutual"] = _count_mutual_pairs(mined)
    write_text(seal, json.dumps(figures, indent=1) + "\n")
    return figures


def _pairs(options: BootstrapOptions, path: Path, which: str) -> Path:
    return path / "pairs" / f"{which}.{'-'.join(options.languages)}.parquet"


def _train_round(options: BootstrapOptions, path: Path, pairs: int, monitor: Monitor) -> str:
    recipe = _recipe(options, _pairs(options, path, "kept"), pairs)
    folder = path / "encoder"
    with monitor.stage("train", recipe.options.steps, "steps") as meter:
        train_encoder(recipe, folder, on_begin=meter.begin, on_step=lambda: meter.advance(1))
    return str(folder)


def _is_held_out(text: str) -> bool:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % HELD_OUT_EVERY == 0


def _count_mutual_pairs(mined: Path) -> int:
    table = parquet.read_table(mined, columns=["source_text", "direction"])
    pairs = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sum(direction == "both" and _is_held_out(text) for text, direction in pairs)


def _keep(mined: Path, kept: Path, share: float, by: str) -> dict[str, Any]:
    mined_pairs = parquet.read_table(mined, columns=["source_text", "target_text"])
    best = mined_pairs.slice(0, math.ceil(share * len(mined_pairs)))
    pairs = zip(*(column.to_pylist() for column in best.columns), strict=True)
    usable = [source != target and not _is_held_out(source) for source, target in pairs]
    count, best = len(best), best.filter(pa.array(usable, pa.bool_()))
    if not len(best):
        raise ValueError(
            f"{mined}: of the best {count:,} of {len(mined_pairs):,} pairs, none usable for "
            "training (sides are equal, or held out); use other text, or another encoder"
        )
    best = best.append_column("corpus", pa.array(["mined"] * len(best)))
    with atomic_file(kept) as temporary:
        parquet.write_table(best, temporary)
    return {"pairs": len(best), "kept by": by}


def _recipe(options: BootstrapOptions, kept: Path, pairs: int) -> Recipe:
    each = options.each
    return Recipe(
        files={"-".join(options.languages): tuple(filter(None, (kept, options.known)))},
        vocabulary_size=min(each.vocabulary_size, pairs),  # few sentences have no more
        evaluate_every=max(1, each.steps // 4),
        held_out=each.held_out,
        options=training_options(**{name: getattr(each, name) for name in TRAINING}),
    )
