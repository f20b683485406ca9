"""Joined encoders, which concatenate the vectors of several encoders.

Each part subtracts the mean of a language's rows, and scales rows to its weight. A mean is known
before a run, so that no vector depends on other text. It ships with the part (``MEANS``), or is
that of ``SAMPLE``. A joined encoder is spelled ``A+B`` or ``0.5*A+B``, or ``0.5*A`` if one part
remains. Callers of ``parse_joined`` and ``read_coverage`` raise their errors.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from encoder import BEST, BUNDLED, USE, Encoder, Precision, folder_of, is_bag, load_encoder
from encoder.base import SAMPLE, BaseEncoder
from encoder.coverage import Coverage, find_coverage, language_key, read_coverage
from encoder.rows import Matrix, normalize_rows

MEANS = "means.safetensors"  # float32 (D,) by language, and of all languages together
ALL = "all"
# Default weights, with which the judge finds more pairs than with 1 (docs/results-joined.md).
WEIGHTS = {BUNDLED: 0.5}


class Weighted(NamedTuple):
    """The weight and the spelling of a part of a joined encoder."""

    weight: float
    spec: str


def parse_joined(spec: str) -> tuple[Weighted, ...]:
    """Split a joined encoder's spelling (``0.5*mini+use``, ``2*use``).

    For a spelling without ``+`` and ``*``, and for an existing file or folder (``laser:FILE``), the
    result is (). The default weight is 0.5 for ``mini``, else 1.

    Raises:
        ValueError: A part is empty, repeated or ``best``, or its weight is not finite and above 0.
    """
    if not ("+" in spec or "*" in spec) or _split_kind(spec)[1].exists():
        return ()
    parts = tuple(_parse_part(spec, part) for part in spec.split("+"))
    names = [part.spec for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"encoder {spec!r} has the part {name!r} twice; list it once")
    return parts


def _parse_part(spec: str, part: str) -> Weighted:
    weight_text, star, name = part.rpartition("*")
    if not name:
        raise ValueError(
            f"encoder {spec!r} has an empty part, and is not a folder; write A+B, such as "
            "0.5*mini+use, or check the path"
        )
    if name == BEST:
        raise ValueError(f"encoder {spec!r}: {BEST} cannot be joined; write mini+use instead")
    try:
        weight = float(weight_text) if star else WEIGHTS.get(name, 1.0)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise ValueError(
            f"encoder {spec!r}: the weight {weight_text!r} of {name} must be a number above 0, "
            f"such as 0.5*{name}"
        )
    return Weighted(weight, name)


def spell_joined(parts: Iterable[Weighted]) -> str:
    """Spell parts as ``0.5*mini+1.0*use``, or "" if there are none."""
    return "+".join(f"{part.weight!r}*{part.spec}" for part in parts)


def drop_uncovered_parts(spec: str, languages: Sequence[str | None]) -> str:
    """Spell a joined encoder without the parts that lack one of ``languages``.

    The result has explicit weights. None, an unknown language, is ignored. A part that lists no
    languages stays. If no part is left, and for a single encoder, ``spec`` is returned unchanged.
    """
    kept = [part for part in parse_joined(spec) if covers(part.spec, languages)]
    return spell_joined(kept) or spec


def absolute_spec(spec: str) -> str:
    """Return ``spec`` with absolute paths of existing files and folders.

    Joined encoders also get explicit weights. Paths may follow ``laser:``, ``laser3:`` or ``st:``.
    The names ``mini``, ``use`` and ``best`` stay.
    """
    if parts := parse_joined(spec):
        return spell_joined(part._replace(spec=absolute_spec(part.spec)) for part in parts)
    kind, path = _split_kind(spec)
    is_path = spec not in (BUNDLED, USE, BEST) and path.exists()
    return f"{kind}{path.absolute()}" if is_path else spec


def _split_kind(spec: str) -> tuple[str, Path]:
    kind = next((kind for kind in ("laser:", "laser3:", "st:") if spec.startswith(kind)), "")
    return kind, Path(spec.removeprefix(kind))


def union_spec(specs: Iterable[str]) -> str:
    """Spell the encoder with the parts of all joined encoders in ``specs``.

    A part's last weight counts. Single encoders next to joined ones are ignored. If all of
    ``specs``, one or more, are single encoders, the first is returned.
    """
    all_specs = list(specs)
    parts = {part.spec: part for spec in all_specs for part in parse_joined(spec)}
    return spell_joined(parts.values()) or all_specs[0]


def select_parts(encoder: Encoder, spec: str) -> Encoder:
    """Return a joined encoder with only the parts and weights in ``spec``.

    ``spec`` is joined, and KeyError names a part in it that ``encoder`` lacks. Parts get its order,
    and rows are normalised, also of ``stored_parts``. A single ``encoder`` is returned unchanged.
    """
    if not isinstance(encoder, JoinedEncoder):
        return encoder
    known = {part.spec: part for part in encoder.parts}
    return JoinedEncoder([replace(known[name], weight=w) for w, name in parse_joined(spec)])


def dropped_part_names(spec: str, kept: str) -> str:
    """Name the parts of joined ``spec`` that joined ``kept`` lacks, as "a, b"."""
    names = {part.spec for part in parse_joined(kept)}
    return ", ".join(part.spec for part in parse_joined(spec) if part.spec not in names)


def covers(spec: str, languages: Sequence[str | None]) -> bool:
    """Return whether a single encoder lists all languages, or lists none.

    None, an unknown language, is ignored.
    """
    known = read_coverage(spec)
    return not known or all(find_coverage(known, name) for name in languages if name is not None)


def read_joined_coverage(spec: str) -> dict[str, Coverage]:
    """Return each language's coverage by the part with the lowest error.

    Keys are ISO 639 codes. ``spec`` may be a single encoder, but not ``best``.
    """
    best: dict[str, Coverage] = {}
    for part in parse_joined(spec) or (Weighted(1.0, spec),):
        for language, coverage in read_coverage(part.spec).items():
            if language not in best or coverage.error < best[language].error:
                best[language] = coverage
    return best


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a joined encoder, for text in one language.

    ``weight`` is the length of its rows, and ``spec`` its spelling without a weight. ``whole`` is
    the encoder of all languages, ``encoder`` that of the language, and ``mean``, float32 (D,), the
    mean of the unit rows of ``encoder`` in the language.
    """

    weight: float
    spec: str
    whole: Encoder
    encoder: Encoder
    mean: Matrix

    def for_language(self, language: str | None) -> "Part":
        """Return the part for a language, with the mean of its rows.

        Of ``MEANS``, None and a language without a mean have that of all languages. Errors are as
        in ``Encoder.for_language`` and ``Encoder.encode``.
        """
        encoder = self.whole.for_language(language)
        return replace(self, encoder=encoder, mean=_find_mean(self.spec, encoder, language))

    def rows(self, sentences: Sequence[str]) -> Matrix:
        """Encode S sentences as rows of length ``weight`` or 0, float32 (S, D)."""
        rows = self.encoder.encode(sentences)
        rows[np.any(rows, axis=1)] -= self.mean
        normalize_rows(rows)
        rows *= np.float32(self.weight)
        return rows


class JoinedEncoder(BaseEncoder):
    """An encoder that concatenates the vectors of its parts.

    A sentence's vector is 0 if any of ``parts`` gives 0. If ``stored``, rows are not normalised.
    """

    def __init__(self, parts: Sequence[Part], *, stored: bool = False) -> None:
        self.parts = tuple(parts)
        means = hashlib.sha256(b"".join(part.mean.tobytes() for part in parts)).hexdigest()
        names = "+".join(f"{part.weight!r}*{part.encoder.name}" for part in parts)
        self.name = f"{names}~{means[:8]}"
        self.dim = sum(part.encoder.dim for part in parts)
        self.precision: Precision = next(iter(_network_precisions(parts)), "float32")
        self._stored = stored

    def for_language(self, language: str | None) -> "JoinedEncoder":
        """Return the encoder with each part's ``Part.for_language``."""
        parts = [part.for_language(language) for part in self.parts]
        return JoinedEncoder(parts, stored=self._stored)

    def for_languages(self, languages: Sequence[str | None]) -> "JoinedEncoder":
        """Return the encoder of the parts that ``Encoder.for_languages`` keeps."""
        kept = [part for part in self.parts if covers(part.spec, languages)]
        return JoinedEncoder(kept, stored=self._stored) if kept else self

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        parts = [part.rows(sentences) for part in self.parts]
        rows = np.concatenate(parts, axis=1)
        rows[~np.all([part.any(axis=1) for part in parts], axis=0)] = 0
        if normalize and not self._stored:
            normalize_rows(rows)
        return rows


def parts_of(encoder: object) -> list[object]:
    """Return the encoders of a joined encoder's parts, or ``[encoder]``."""
    if isinstance(encoder, JoinedEncoder):
        return [part.encoder for part in encoder.parts]
    return [encoder]


def stored_parts(encoder: Encoder) -> Encoder:
    """Return the encoder whose vectors a run stores.

    A joined encoder gets weights of 1, and never normalises its rows, so that other weights can be
    applied to the stored parts. Any other encoder is returned unchanged.
    """
    if not isinstance(encoder, JoinedEncoder):
        return encoder
    return JoinedEncoder([replace(part, weight=1.0) for part in encoder.parts], stored=True)


def load_joined(parts: Sequence[Weighted], *, precision: Precision) -> JoinedEncoder:
    """Load the parts of a joined encoder, with errors of ``load_encoder``.

    Bags always run in float32. With ``auto``, all networks run in one precision. ValueError also
    says that a part with a network per language has no means.
    """
    loaded = [_load(part, precision) for part in parts]
    if precision == "auto" and len(_network_precisions(loaded)) > 1:
        loaded = [_load(part, "float32") for part in parts]
    return JoinedEncoder([part.for_language(None) for part in loaded])


def _load(part: Weighted, precision: Precision) -> Part:
    whole = load_encoder(part.spec, precision="auto" if is_bag(part.spec) else precision)
    mean = np.zeros(whole.dim, dtype=np.float32)
    return Part(weight=part.weight, spec=part.spec, whole=whole, encoder=whole, mean=mean)


def _network_precisions(parts: Sequence[Part]) -> set[Precision]:
    return {part.whole.precision for part in parts if not is_bag(part.spec)}


def _find_mean(spec: str, encoder: Encoder, language: str | None) -> Matrix:
    means = _read_means(folder_of(spec) / MEANS)
    if means is None:
        return encoder.encode(SAMPLE).mean(axis=0)
    return means.get(language_key(language or ALL), means[ALL])


@cache
def _read_means(path: Path) -> Mapping[str, Matrix] | None:
    if not path.is_file():
        return None
    try:
        means = load(path.read_bytes())
        return {ALL: means[ALL], **{language_key(name): mean for name, mean in means.items()}}
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"encoder: {path} is damaged; install or copy it again") from error
