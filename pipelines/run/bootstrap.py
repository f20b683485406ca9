"""Mine, train on what was mined, mine again: each round's encoder finds what the next one learns.

A round is a folder, ``OUT/rounds/N``: the work folder of its run, the pairs that are kept, the
encoder that is trained on them, and last of all its figures, which seal it.
"""

import json
import logging
import math
import zlib
from collections.abc import Mapping
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
from miner.storage.atomic import atomic_file, check_folder, write_text
from miner.storage.documents.split import open_side
from pipelines.making_options import BootstrapOptions
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.progress import Monitor
from pipelines.run.mining import mine_corpus
from pipelines.stages.reading.cut import digest_of

logger = logging.getLogger(__name__)

TRAINING = ("learning_rate", "dim", "ngram_rows", "batch_size", "steps", "seed")  # of RoundOptions
HELD_OUT = 20  # of so many source sentences one judges the encoders


def bootstrap(options: BootstrapOptions, monitor: Monitor) -> list[dict[str, Any]]:
    """Write the best encoder of all rounds to ``options.output``; return the figures by round.

    Raises:
        ValueError: nothing can be mined or trained, or other rounds were begun in ``output``.
    """
    folder = options.output / "rounds"
    _begin(options, folder)
    found: list[dict[str, Any]] = []
    encoder = best = options.encoder
    before = 0
    for number in range(1, options.each.rounds + 2):  # the last one judges an encoder alone
        place = folder / str(number)
        found.append(_mine_round(options, place, encoder, monitor))
        pairs, by, mutual = (found[-1][name] for name in ("pairs", "kept by", "mutual"))
        logger.info(
            "round %d: %d pairs (%s); %d held-out sentences have a mutual nearest neighbour",
            *(number, pairs, by, mutual),
        )
        if mutual < before - math.sqrt(before):
            break
        best = encoder  # of two that chance may tell apart, the one that learnt from more pairs
        if number > 1 and mutual <= before:
            break
        before = mutual
        if number <= options.each.rounds:
            encoder = _train_round(options, place, pairs, monitor)
    if best == options.encoder:
        raise ValueError(
            f"{options.output}: not written, because the encoder of the first round is worse than "
            f"{best}; use other text, or more text"
        )
    names = (TOKENIZER, WEIGHTS, CONFIG)
    replace_files(options.output, {name: (Path(best) / name).read_bytes() for name in names})
    return found


def _begin(options: BootstrapOptions, folder: Path) -> None:
    check_folder(options.output)
    if options.known is not None:
        _check_known(options, options.known)
    folder.mkdir(parents=True, exist_ok=True)
    each = asdict(options.each)
    del each["rounds"]  # more of them may follow
    identity = {
        **each,
        "languages": list(options.languages),
        "encoder": load_encoder(options.encoder, precision="auto").name,
        "corpora": [
            digest_of(file)[:12]
            for place in (options.source, options.target)
            for file in open_side(place, options.input_format).files
        ],
        "known": None if options.known is None else digest_of(options.known)[:12],
    }
    path = folder / "options.json"
    if not path.exists():
        _write(path, identity)
    check_identity(folder, json.loads(path.read_text(encoding="utf-8")), identity, "a bootstrap")


def _check_known(options: BootstrapOptions, known: Path) -> None:
    if not known.is_file():
        raise ValueError(f"{known}: file not found")
    name = "-".join(options.languages)
    if name not in known.name.split(".") or not PAIR.fullmatch(name):
        raise ValueError(
            f"{known}: name lacks the languages {name}; rename it, such as known.{name}.tsv.xz"
        )


def _write(path: Path, values: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(values, indent=1) + "\n")


def _mine_round(
    options: BootstrapOptions, place: Path, encoder: str, monitor: Monitor
) -> dict[str, Any]:
    """Mine with an encoder, keep pairs for the next one; return the figures, which seal it."""
    figures: dict[str, Any]
    seal = place / "round.json"
    if seal.exists():
        figures = json.loads(seal.read_text(encoding="utf-8"))
        return figures
    mined, trusted, kept = (_pairs(options, place, each) for each in ("mined", "trusted", "kept"))
    mined.parent.mkdir(parents=True, exist_ok=True)
    source, target = (
        CorpusOptions(path=path, language=language, input_format=options.input_format)
        for path, language in zip((options.source, options.target), options.languages, strict=True)
    )
    mining = MiningOptions(
        source=source, target=target, output=mined, work_dir=place / "work", encoder=encoder
    )
    fdr, best = options.each.fdr, options.each.best
    mine_corpus(mining, monitor)
    try:
        mine_corpus(replace(mining, output=trusted, fdr=fdr), monitor)
        figures = _keep(trusted, kept, 1.0, f"fdr {fdr:g}")
    except ValueError as error:  # all else would have been one without --fdr
        logger.info("keeping the best %g of all pairs: %s", best, error)
        figures = _keep(mined, kept, best, f"best {best:g}")
    figures["mutual"] = _count_mutual_pairs(mined)
    _write(seal, figures)
    return figures


def _pairs(options: BootstrapOptions, place: Path, which: str) -> Path:
    return place / "pairs" / f"{which}.{'-'.join(options.languages)}.parquet"


def _train_round(options: BootstrapOptions, place: Path, pairs: int, monitor: Monitor) -> str:
    """Train an encoder on the pairs of a round, or go on; return its folder."""
    kept = _pairs(options, place, "kept")
    recipe = _recipe(options, "-".join(options.languages), kept, pairs)
    folder = place / "encoder"
    with monitor.stage("train", recipe.options.steps, "steps") as meter:
        train_encoder(recipe, folder, on_begin=meter.begin, on_step=lambda: meter.advance(1))
    return str(folder)


def _is_held_out(text: str) -> bool:
    """Return whether a source sentence judges encoders, and is never trained on."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % HELD_OUT == 0


def _count_mutual_pairs(mined: Path) -> int:
    """Count held-out sentences with a pair of mutual nearest: it rises with what encoders find."""
    table = parquet.read_table(mined, columns=["source_text", "direction"])
    pairs = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sum(direction == "both" and _is_held_out(text) for text, direction in pairs)


def _keep(mined: Path, kept: Path, share: float, by: str) -> dict[str, Any]:
    """Write the best share of mined pairs, but those held out and those of equal sentences."""
    mined_pairs = parquet.read_table(mined, columns=["source_text", "target_text"])
    best = mined_pairs.slice(0, math.ceil(share * len(mined_pairs)))
    pairs = zip(*(column.to_pylist() for column in best.columns), strict=True)
    taught = [source != target and not _is_held_out(source) for source, target in pairs]
    best = best.filter(pa.array(taught, pa.bool_()))
    if not len(best):
        raise ValueError("no pairs were mined; use other text, or another encoder")
    best = best.append_column("corpus", pa.array(["mined"] * len(best)))
    with atomic_file(kept) as temporary:
        parquet.write_table(best, temporary)
    return {"pairs": len(best), "kept by": by}


def _recipe(options: BootstrapOptions, name: str, kept: Path, pairs: int) -> Recipe:
    each = options.each
    return Recipe(
        files={name: (kept,) if options.known is None else (kept, options.known)},
        vocabulary_size=min(each.vocabulary_size, pairs),  # few sentences do not have more
        evaluate_every=max(1, each.steps // 4),
        held_out=each.held_out,
        options=training_options(**{name: getattr(each, name) for name in TRAINING}),
    )
