"""Text to vectors: multilingual sentence encoders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BUNDLED", "ENCODERS", "MORE", "PRECISIONS", "Encoder", "Precision", "load_encoder"]

BUNDLED = "mini"
MORE = "more"  # the folder, in an encoder's, of one for other languages in the same space

Precision = Literal["float32", "bfloat16", "int8", "auto"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8", "auto")

ENCODERS = (
    "mini (bundled), a folder that train-encoder made, laser:FILE.pt (LASER1, LASER2), "
    "laser3:FILE.pt, or st:NAME, a model of sentence-transformers (pip install 'bitext-adit[st]')"
)


class Encoder(Protocol):
    """Encodes sentences of any language into one space.

    ``name`` identifies the weights and how sentences are prepared (two encoders with equal names
    give equal vectors); ``dim`` is the number of dimensions D, ``precision`` that of its products,
    never ``auto``: with it, another process loads the same.
    """

    name: str
    dim: int
    precision: Precision

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        """Encode S sentences: float32 (S, D), of unit length, or as long as the network makes them.

        A sentence of which the tokeniser leaves nothing has the zero vector. ``BaseEncoder``, of
        which all encoders here are made, takes one sentence, too, and returns float32 (D,).
        """
        ...

    def for_language(self, language: str | None) -> Encoder:
        """Return the same weights, with the preprocessing of a language (ISO 639), if any."""
        ...


def load_encoder(
    spec: str = BUNDLED,
    *,
    vocabulary: Path | None = None,
    pretokenized: bool = False,
    precision: Precision = "float32",
) -> Encoder:
    """Load an encoder.

    Args:
        spec: ``mini``, the bundled encoder; a folder written by ``train-encoder``;
            ``laser:FILE.pt`` (LASER1, LASER2); ``laser3:FILE.pt``; or ``st:NAME`` or ``st:FOLDER``,
            a model of sentence-transformers.
        vocabulary: of a LASER encoder, where it does not lie beside the checkpoint: ``.cvocab``
            (LASER3), ``.spm`` (LASER2) or ``.fcodes`` (LASER1).
        pretokenized: sentences are a LASER encoder's subword tokens between spaces.
        precision: of a network's products; with ``auto``, the fastest that is near float32.

    Raises:
        ValueError: no such encoder, its files are damaged, or it has no such option.
    """
    kind, colon, place = spec.partition(":")
    if colon and kind in ("laser", "laser3"):
        import sacremoses  # noqa: F401 - first: where it is missing, the extra needed is laser

        from encoder.laser.loading import load_laser, load_laser3

        load = load_laser if kind == "laser" else load_laser3
        return load(
            Path(place), vocabulary=vocabulary, pretokenized=pretokenized, precision=precision
        )
    if vocabulary is not None or pretokenized:
        raise ValueError(
            f"encoder {spec!r} brings its own tokeniser; a vocabulary file and tokens as input "
            "(--vocab, --pretokenized) are for laser: and laser3: encoders"
        )
    if colon and kind == "st":
        from encoder.adapters import load_sentence_transformer

        return load_sentence_transformer(place, precision=precision)
    return _load_folder(spec, precision)


def folder_of(spec: str) -> Path:
    """Return the folder of the bundled encoder, or of one that ``train-encoder`` made."""
    return Path(__file__).parent / "assets" / BUNDLED if spec == BUNDLED else Path(spec)


def _load_folder(spec: str, precision: Precision) -> Encoder:
    from encoder.checkpoint import APART_FORMAT, NETWORK_FORMAT, load_bag_encoder, read_config

    folder = folder_of(spec)
    if not folder.is_dir():
        raise ValueError(f"encoder {spec!r} is unknown; there are {ENCODERS}")
    name = folder.resolve().name
    kind = read_config(folder)["format"]
    if kind == APART_FORMAT:
        from encoder.apart import load_apart_encoder

        return load_apart_encoder(folder, name=name, precision=precision)
    if kind == NETWORK_FORMAT:
        from encoder.trained import load_network_encoder

        return load_network_encoder(folder, name=name, precision=precision)
    if precision not in ("float32", "auto"):
        raise ValueError(
            f"encoder {spec!r} has no network to run in {precision}; leave out the precision"
        )
    return load_bag_encoder(folder, name=name)
