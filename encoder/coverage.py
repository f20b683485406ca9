"""Which languages an encoder covers, and how well."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from encoder import MORE, folder_of
from encoder.laser.languages import INDIVIDUAL
from miner.language_codes import base_language

MAX_GOOD, MAX_FAIR = 0.05, 0.15  # search errors


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The quality of a language: the error of the search for its English translations.

    ``measured`` names the test set: ntrex (by ratio margin), or tatoeba or held-out pairs of the
    training data (by cosine).
    """

    error: float
    measured: str

    @property
    def quality(self) -> str:
        """``good``, ``fair`` or ``weak``; held-out pairs are too easy to say ``good`` by them."""
        if self.error > MAX_FAIR:
            return "weak"
        return "good" if self.error <= MAX_GOOD and self.measured != "held-out" else "fair"


def individual(language: str) -> str:
    """Return one name for a language of several codes.

    It is ISO 639-3's if that is known. Scripts and regions of a code do not count.
    """
    if known := INDIVIDUAL.get(language):
        return known
    base = base_language(language)
    return INDIVIDUAL.get({"fil": "tl"}.get(base, base), base)


def find_coverage(languages: Mapping[str, Coverage], language: str) -> Coverage | None:
    """Return the coverage of a language by any of its names; None where it is not covered."""
    names = {individual(name): coverage for name, coverage in languages.items()}
    return names.get(individual(language))


def read_coverage(spec: str) -> dict[str, Coverage]:
    """Return what an encoder's configuration, or one added to it, says of languages (ISO 639).

    Nothing is known of those whose configuration has no ``languages``, LASER's among them.
    """
    folder = folder_of(spec)
    found: dict[str, Coverage] = {}
    for path in (folder / MORE / "config.json", folder / "config.json"):
        if path.is_file():
            languages = json.loads(path.read_text(encoding="utf-8")).get("languages", {})
            for name, known in languages.items():
                error, measured = float(known["error"]), str(known["measured"])
                found[name] = Coverage(error=error, measured=measured)
    return found
