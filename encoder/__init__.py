"""Multilingual sentence encoders, which turn text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUNDLED, USE = "mini", "use"
BEST = "best"
JOINED = f"{BUNDLED}+{USE}"
MORE = "more"  # the subfolder of an encoder's folder with one for added languages

Precision = Literal["float32", "bfloat16", "int8", "auto"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8", "auto")

ENCODERS = (
    "best (mini+use, or mini for languages that use lacks), mini (faster), use, a folder that "
    "'adit train' wrote, laser:FILE.pt (LASER1, LASER2), laser3:FILE.pt, st:NAME for a model of "
    "sentence-transformers (pip install 'bitext-adit[st]'), or joined encoders such as mini+use"
)


class Encoder(Protocol):
    """Interface of encoders of sentences, which ``BaseEncoder`` implements.

    Attributes:
        name: identifies the weights, the preprocessing and the precision.
        dim: the number of dimensions D.
        precision: the precision of matrix products, never ``auto``.
    """

    name: str
    dim: int
    precision: Precision

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        """Encode S sentences, maybe none, as float32 (S, ``dim``).

        Vectors have unit length with ``normalize``, or else the encoder's own length. A sentence
        without words may have the zero vector. Adit's encoders also encode one string, (``dim``,).
        ValueError says that ``for_language`` must first choose the network of one language.
        """

    def for_language(self, language: str | None) -> Encoder:
        """Return the encoder of text in a language, often the encoder itself.

        ``language`` is an ISO 639 code, or None if unknown. ValueError says that the language's
        network is missing, or that its network or means are damaged. ModuleNotFoundError names a
        missing package that LASER1 needs for the language.
        """

    def for_languages(self, languages: Sequence[str | None]) -> Encoder:
        """Return the encoder without joined parts that lack one of ``languages``.

        None, an unknown language, is ignored. If every part lacks a language, all parts stay. Parts
        that list no languages also stay. Encoders without parts return themselves.
        """


def load_encoder(
    spec: str = BUNDLED,
    *,
    vocabulary: Path | None = None,
    pretokenized: bool = False,
    precision: Precision = "float32",
) -> Encoder:
    """Load an encoder by its spelling.

    Args:
        spec: ``mini``, the bundled encoder; ``use``, a pretrained network; a folder of ``adit
            train``; ``laser:FILE.pt`` (LASER1, LASER2); ``laser3:FILE.pt``; ``st:FOLDER`` or
            ``st:NAME``, a model of sentence-transformers, downloaded if missing; several of these
            joined, such as ``0.5*mini+use`` (``encoder.joined``); or ``best`` (``best_encoder``).
        vocabulary: a LASER encoder's ``.cvocab`` (LASER3), ``.spm`` (LASER2) or ``.fcodes``
            (LASER1), by default one in the checkpoint's folder.
        pretokenized: whether a LASER encoder's sentences are its subword tokens, between spaces.
        precision: of a network's products; ``auto`` is int8 or bfloat16 if the hardware has
            instructions for it and vectors stay close to float32, or else, as for ``st:``, float32.

    Raises:
        ValueError: The encoder is unknown or damaged, or cannot have an option.
        ModuleNotFoundError: A package that the encoder needs is not installed.
    """
    from encoder.joined import load_joined, parse_joined

    if spec == BEST:
        spec = best_encoder()
    kind, colon, location = spec.partition(":")
    parts = parse_joined(spec)
    if colon and kind in ("laser", "laser3") and not parts:
        import sacremoses  # noqa: F401 - first, so that a missing module names the extra laser

        from encoder.laser.loading import load_laser, load_laser3

        load = load_laser if kind == "laser" else load_laser3
        return load(Path(location), vocabulary, pretokenized, precision)
    if vocabulary is not None or pretokenized:
        option = "--pretokenized" if vocabulary is None else "--vocab"
        raise ValueError(f"{option} conflicts with encoder {spec!r}; omit it, or use LASER")
    if parts:
        return load_joined(parts, precision=precision)
    if kind == "st" and location:
        from encoder.adapters import SentenceTransformerEncoder

        return SentenceTransformerEncoder(location, precision)
    if spec == USE:
        from encoder.use.encoder import load_use

        return load_use(precision=precision)
    from encoder.loading import load_folder

    if not (folder := folder_of(spec)).is_dir():
        raise ValueError(f"encoder {spec!r} is unknown; use {ENCODERS}")
    return load_folder(folder, name=folder.resolve().name, precision=precision)


def best_encoder() -> str:
    """Return ``mini+use``, the spelling that ``best`` stands for."""
    return JOINED


def folder_of(spec: str) -> Path:
    """Return the folder of ``mini`` or ``use``, or else ``spec`` as a path."""
    return Path(__file__).parent / "assets" / spec if spec in (BUNDLED, USE) else Path(spec)


def is_bag(spec: str) -> bool:
    """Return whether ``spec`` is the folder of a ``BagEncoder``, or ``mini``.

    ValueError says that the folder's ``config.json`` is damaged, or of an unknown format.
    """
    from encoder.checkpoint import CONFIG, SCHEMES, read_config

    has_config = spec != USE and (folder_of(spec) / CONFIG).is_file()
    return has_config and read_config(folder_of(spec))["format"] in SCHEMES
