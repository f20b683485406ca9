"""Joined encoders: the vectors of several, laid side by side.

Each part's rows lose the mean of their language, become unit rows, and are weighted. A mean is
known before a run, so that no vector depends on what else is encoded: it ships with the part
(``MEANS``), or is that of ``SAMPLE``. Spelt ``A+B``, ``0.5*A+B``; or ``0.5*A``, if one is left.
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
from encoder.coverage import Coverage, find_coverage, individual, read_coverage
from encoder.rows import Matrix, normalize_rows

MEANS = "means.safetensors"  # float32 (D,) by language, and of all languages together
ALL = "all"
# Where none is given: with the judge, half of a bag's weight finds more than all of it; by margin
# alone it is the other way round (docs/results-joined.md).
WEIGHTS = {BUNDLED: 0.5}


class Weighted(NamedTuple):
    """A part of a joined encoder by name."""

    weight: float
    spec: str


def parse_joined(spec: str) -> tuple[Weighted, ...]:
    """Return the parts of a joined encoder; none if that names a single encoder.

    A ValueError names a part that is missing or there twice, or whose weight is no positive number.
    """
    if Path(spec).is_dir() or not ("+" in spec or "*" in spec):
        return ()
    parts = tuple(_parse_part(spec, part) for part in spec.split("+"))
    names = [part.spec for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"encoder {spec!r} has the part {name!r} twice; list it once")
    return parts


def _parse_part(spec: str, part: str) -> Weighted:
    given, star, name = part.rpartition("*")
    if not name:
        raise ValueError(f"encoder {spec!r} has an empty part; write A+B, such as 0.5*mini+use")
    if name == BEST:
        raise ValueError(f"encoder {spec!r}: {BEST} cannot be joined; list the parts")
    try:
        weight = float(given) if star else WEIGHTS.get(name, 1.0)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise ValueError(
            f"encoder {spec!r}: the weight {given!r} of {name} must be a positive number"
        )
    return Weighted(weight, name)


def spell_joined(parts: Iterable[Weighted]) -> str:
    """Return how parts are spelt: each with its weight."""
    return "+".join(f"{part.weight!r}*{part.spec}" for part in parts)


def drop_uncovered_parts(spec: str, languages: Sequence[str | None]) -> str:
    """Return what is left of an encoder without the parts that lack a language, if any is.

    Parts and languages of which nothing is known do not count.
    """
    kept = [part for part in parse_joined(spec) if covers(part.spec, languages)]
    return spell_joined(kept) or spec


def absolute_spec(spec: str) -> str:
    """Return the same encoder for processes with other working folders."""
    if parts := parse_joined(spec):
        return spell_joined(part._replace(spec=absolute_spec(part.spec)) for part in parts)
    is_folder = spec not in (BUNDLED, USE) and Path(spec).is_dir()
    return str(Path(spec).absolute()) if is_folder else spec


def union_spec(specs: Iterable[str]) -> str:
    """Return the parts of several encoders as one joined encoder; a single encoder as it is."""
    found = list(specs)
    parts = {part.spec: part for spec in found for part in parse_joined(spec)}
    return spell_joined(parts.values()) or found[0]


def select_parts(encoder: Encoder, spec: str) -> Encoder:
    """Return what a joined encoder is with some of its parts, and these weights."""
    if not isinstance(encoder, JoinedEncoder):
        return encoder
    known = {part.spec: part for part in encoder.parts}
    return JoinedEncoder([replace(known[name], weight=w) for w, name in parse_joined(spec)])


def dropped_part_names(spec: str, kept: str) -> str:
    """Return the names of the parts of an encoder that are not kept, as a list in words."""
    names = {part.spec for part in parse_joined(kept)}
    return ", ".join(part.spec for part in parse_joined(spec) if part.spec not in names)


def covers(spec: str, languages: Sequence[str | None]) -> bool:
    """Return whether an encoder may be taken for the languages; those not known do not count."""
    known = read_coverage(spec)
    return not known or all(
        language is None or find_coverage(known, language) for language in languages
    )


def read_joined_coverage(spec: str) -> dict[str, Coverage]:
    """Return ``read_coverage`` of all parts together: of each language, the best one's."""
    found: dict[str, Coverage] = {}
    for part in parse_joined(spec) or (Weighted(1.0, spec),):
        for language, coverage in read_coverage(part.spec).items():
            if language not in found or coverage.error < found[language].error:
                found[language] = coverage
    return found


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a joined encoder: its weight, the encoder, and the mean of its rows, (D,)."""

    weight: float
    spec: str
    whole: Encoder
    encoder: Encoder
    mean: Matrix

    def for_language(self, language: str | None) -> "Part":
        """Return the part for a language, with the mean of that."""
        encoder = self.whole.for_language(language)
        return replace(self, encoder=encoder, mean=_mean(self.spec, encoder, language))

    def rows(self, sentences: Sequence[str]) -> Matrix:
        """Encode S sentences: unit rows without the mean, times the weight, float32 (S, D)."""
        rows = self.encoder.encode(sentences)
        rows[np.any(rows, axis=1)] -= self.mean
        normalize_rows(rows)
        rows *= np.float32(self.weight)
        return rows


class JoinedEncoder(BaseEncoder):
    """Encodes with several encoders side by side; satisfies ``encoder.Encoder``.

    A sentence of which any part makes nothing has the zero vector. Rows to be ``stored`` have the
    length that their parts give them.
    """

    def __init__(self, parts: Sequence[Part], *, stored: bool = False) -> None:
        self.parts = tuple(parts)
        means = hashlib.sha256(b"".join(part.mean.tobytes() for part in parts)).hexdigest()
        names = "+".join(f"{part.weight!r}*{part.encoder.name}" for part in parts)
        self.name = f"{names}~{means[:8]}"
        self.dim = sum(part.encoder.dim for part in parts)
        self.precision: Precision = next(iter(_precisions(parts)), "float32")
        self._stored = stored

    def for_language(self, language: str | None) -> "JoinedEncoder":
        """Return the encoder for a language: each part's, with the mean of that language."""
        parts = [part.for_language(language) for part in self.parts]
        return JoinedEncoder(parts, stored=self._stored)

    def for_languages(self, languages: Sequence[str | None]) -> "JoinedEncoder":
        """Drop the parts that lack a language, like ``drop_uncovered_parts``."""
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
    """Return the encoders that a joined encoder is made of, or whatever else it is itself."""
    if isinstance(encoder, JoinedEncoder):
        return [part.encoder for part in encoder.parts]
    return [encoder]


def stored_parts(encoder: Encoder) -> Encoder:
    """Return what makes the vectors to be stored for an encoder: of a joined one, without weights.

    A part's rows have unit length each, so its numbers are the same bits beside any other parts.
    """
    if not isinstance(encoder, JoinedEncoder):
        return encoder
    return JoinedEncoder([replace(part, weight=1.0) for part in encoder.parts], stored=True)


def load_joined(parts: Sequence[Weighted], *, precision: Precision) -> JoinedEncoder:
    """Load all parts, with ``auto`` their networks in one precision; errors: ``load_encoder``."""
    loaded = [_load(part, precision) for part in parts]
    if precision == "auto" and len(_precisions(loaded)) > 1:
        loaded = [_load(part, "float32") for part in parts]
    return JoinedEncoder([part.for_language(None) for part in loaded])


def _load(part: Weighted, precision: Precision) -> Part:
    whole = load_encoder(part.spec, precision="auto" if is_bag(part.spec) else precision)
    mean = np.zeros(whole.dim, dtype=np.float32)
    return Part(weight=part.weight, spec=part.spec, whole=whole, encoder=whole, mean=mean)


def _precisions(parts: Sequence[Part]) -> set[Precision]:
    return {part.whole.precision for part in parts if not is_bag(part.spec)}


def _mean(spec: str, encoder: Encoder, language: str | None) -> Matrix:
    means = _stored_means(folder_of(spec) / MEANS)
    if means is None:
        return encoder.encode(SAMPLE).mean(axis=0)
    return means.get(individual(language or ALL), means[ALL])


@cache
def _stored_means(path: Path) -> Mapping[str, Matrix] | None:
    """Return the means that ship with a part, by language; None where there are none."""
    if not path.is_file():
        return None
    try:
        means = load(path.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"encoder: {path} is damaged; install or copy it again") from error
    return {ALL: means[ALL], **{individual(name): mean for name, mean in means.items()}}
