"""The align stage: the chosen pairs scored anew, by their words, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import SOURCE, TARGET
from pipelines.options import MiningOptions
from pipelines.stages.encode import encoder_of_process, word_encoder
from pipelines.stages.export import completed_pairs
from pipelines.stages.select import PAIRS, Choice, range_pairs

if TYPE_CHECKING:
    from encoder.words import WordEncoder
    from miner.score_ranges import Sorted


def align_pairs(options: MiningOptions, choice: Choice) -> Choice:
    """Score the chosen pairs by margin and words and sort them anew; seals ``aligned``.

    The first block of pairs, the best by margin, says what ratio of words is usual. Without
    ``options.align`` the choice stays as it is.
    """
    if not options.align:
        return choice
    from miner.storage.pair_numbers import numbers_schema

    encoder = word_encoder(options)
    folder = options.work_dir / "aligned"
    key = content_key(
        "align",
        pairs=choice.pairs.files[PAIRS],
        sentences=[found.embedded.shard.digest for found in choice.shards],
        maker=encoder_of_process(options.encoder).name,
        threshold=repr(options.threshold),
        numbers=numbers_schema(aligned=True).names,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            return _rescore(options, choice, encoder, scratch, draft)

    return replace(choice, pairs=produce(folder, key=key, write=write))


def _rescore(
    options: MiningOptions, choice: Choice, encoder: WordEncoder, scratch: Path, draft: Draft
) -> Mapping[str, Any]:
    import pyarrow.parquet as pq

    from miner.arrays import Direction
    from miner.score_ranges import merge_in_ranges, sort_pairs
    from miner.storage.pair_numbers import numbers_schema, pairs_of, table_of
    from miner.word_match import align_texts, aligned_pairs, usual_log_ratio

    files: list[Sorted] = []
    usual, kept = None, 0
    for table in completed_pairs(options, choice, PAIRS, "align"):
        texts = [table[f"{side}_text"].to_pylist() for side in (SOURCE, TARGET)]
        found, pairs = align_texts(encoder.words, *texts), pairs_of(table)
        if usual is None:
            usual = usual_log_ratio(found)
        path = scratch / f"{len(files):05d}.npy"
        aligned = aligned_pairs(pairs, found, usual=usual)
        files.append(sort_pairs(path, aligned, Direction.BOTH))
    with (
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, numbers_schema(aligned=True)) as writer,
    ):
        for part in merge_in_ranges(files, size=range_pairs(options), threshold=options.threshold):
            writer.write_table(table_of(part))
            kept += len(part)
    return {**choice.pairs.facts, "pairs": kept, "usual_log_ratio": usual or 0.0}
