"""A folder that Hugging Face's ``datasets`` loads: Parquet, and a card that says what it is."""

from collections.abc import Sequence
from typing import IO

import pyarrow as pa

from miner.commandline import product_version
from miner.storage.writers import Origin, parquet
from miner.storage.writers.batches import Tables

_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
_COLUMNS = {
    "score": "margin, or the log likelihood ratio of being right; the pairs come best first",
    "probability": "how likely the pair is right",
    "margin": "the cosine against those of the neighbours",
    "source_text": "the source sentence",
    "target_text": "the target sentence",
}


def write(files: Sequence[IO[bytes]], tables: Tables, schema: pa.Schema, origin: Origin) -> None:
    """Write the pairs to the first file, and the card to the second."""
    sizes = []

    def counted() -> Tables:
        for table in tables:
            sizes.append(len(table))
            yield table

    parquet.write(files[:1], counted(), schema, origin)
    files[1].write(_card(sum(sizes), schema.names, origin).encode())


def _card(pairs: int, columns: Sequence[str], origin: Origin) -> str:
    languages = [language for language in origin.languages if language]
    between = " and ".join(languages) if len(languages) == 2 else "two languages"
    size = _SIZES[min(max(0, len(str(pairs)) - 3), len(_SIZES) - 1)]
    described = "".join(
        f"- `{name}`: {text}\n" for name, text in _COLUMNS.items() if name in columns
    )
    return (
        "---\n"
        + (f"language: [{', '.join(map(repr, languages))}]\n" if languages else "")
        + "license: unknown\ntask_categories: [translation]\n"
        f"size_categories: ['{size}']\n"
        "configs:\n- config_name: default\n  data_files:\n  - split: train\n"
        "    path: pairs.parquet\n---\n\n"
        f"# Sentence pairs in {between}\n\n"
        f"{pairs:,} pairs mined by Adit {product_version()} with the encoder {origin.encoder}. "
        "The licence is that of the corpora that they come from: name it above.\n\n"
        f"{described}\n"
        "The other columns say where each sentence comes from (ids, documents, rows, repetitions) "
        "and how the pair was found.\n"
    )
