"""What languages the corpora are in, and whether the encoder covers them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from encoder.coverage import Coverage, find_coverage, individual, read_coverage
from encoder.laser.languages import LASER2, LASER3
from miner.languages import MIN_SHARE, language_shares, main_language
from pipelines.options import MiningOptions

logger = logging.getLogger(__name__)

CONTRADICTED = 0.1  # share of a sample below which a corpus is not in the language it should be in
MIN_SAMPLE = 20  # sentences; of fewer nothing is said


def see_language(options: MiningOptions, texts: Sequence[str]) -> dict[str, float]:
    """Return the shares of languages in a sample of texts; none where nothing hangs on them."""
    if len(texts) < MIN_SAMPLE or not _languages(options):
        return {}
    return language_shares(texts)


def describe_language(
    options: MiningOptions, side: str, shares: Mapping[str, float]
) -> dict[str, Any]:
    """Return what is known of a side's language: given, seen, its share, the encoder's quality."""
    given, seen = options.side(side).language, main_language(shares)
    coverage = _coverage(options, given or seen)
    return {
        "given": given,
        "seen": seen,
        "share": shares.get(seen, 0.0) if seen else None,
        "quality": coverage.quality if coverage else None,
    }


def language_warnings(options: MiningOptions, side: str, shares: Mapping[str, float]) -> list[str]:
    """Return a line for each thing about a side's language that a user should know."""
    if not shares:
        return []
    given, seen = options.side(side).language, main_language(shares)
    lines = []
    if given and _share(shares, given) < CONTRADICTED:
        found = f"{shares[seen]:.0%} of a sample is {seen}" if seen else _mixed(shares)
        lines.append(f"{side}: {given} was given as its language, but {found}")
    language = given or seen
    if language is None:
        lines.append(
            f"{side}: its language was not recognised ({_mixed(shares)}); if {options.encoder} "
            f"does not cover it, few pairs will be right ('adit encoders' lists what it covers)"
        )
        return lines
    coverage = _coverage(options, language)
    if coverage is None:
        lines.append(
            f"{side}: {language} is not covered by {options.encoder}, so few pairs will be right"
            + _laser(language)
        )
    elif coverage.quality == "weak":
        lines.append(
            f"{side}: {options.encoder} is weak in {language}, with a search error of about "
            f"{coverage.error:.0%}" + _laser(language)
        )
    return lines


def _share(shares: Mapping[str, float], language: str) -> float:
    name = individual(language)
    return sum(share for code, share in shares.items() if individual(code) == name)


def _mixed(shares: Mapping[str, float]) -> str:
    code, share = next(iter(shares.items()))
    return f"no language has {MIN_SHARE:.0%} of a sample; {code} has most, {share:.0%}"


def _coverage(options: MiningOptions, language: str | None) -> Coverage | None:
    return find_coverage(_languages(options), language) if language else None


def _languages(options: MiningOptions) -> Mapping[str, Coverage]:
    """Return what the encoder of the run covers, as far as is known; nothing if it has none."""
    return {} if options.source.embeddings is not None else read_coverage(options.encoder)


def _laser(language: str) -> str:
    name = individual(language)
    covered = any(code.startswith(f"{name}_") for code in (*LASER2, *LASER3))
    return f"; LASER covers it: adit fetch {language} -o DIR" if covered else ""
