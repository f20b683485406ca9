"""The languages that an encoder covers, with their quality."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from encoder import MORE, folder_of
from encoder.laser.languages import INDIVIDUAL
from miner.language_codes import base_language

MAX_GOOD, MAX_FAIR = 0.05, 0.15  # the highest error of each quality


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The quality of an encoder in a language.

    Attributes:
        error: the share, 0 to 1, of sentences whose nearest neighbour is not their translation.
        measured: the test set, ``ntrex`` by ratio margin, ``tatoeba`` or ``held-out`` by cosine.
    """

    error: float
    measured: str

    @property
    def quality(self) -> str:
        """The rating ``good``, ``fair`` or ``weak``, by error and test set.

        It is ``weak`` above the error 0.15, ``good`` up to 0.05 unless ``held-out``, else ``fair``.
        """
        if self.error > MAX_FAIR:
            return "weak"
        return "good" if self.error <= MAX_GOOD and self.measured != "held-out" else "fair"


def language_key(language: str) -> str:
    """Return one key for all codes of a language, with any script or region.

    It is the ISO 639-3 code of LASER's files (``deu``), or else the shortest ISO 639 code (``la``).
    Other text is returned in lower case, up to the first hyphen or "_", but ``x-a_b`` as ``x-a-b``.
    """
    if known := INDIVIDUAL.get(language):
        return known
    base = base_language(language)
    return INDIVIDUAL.get({"fil": "tl"}.get(base, base), base)


def find_coverage(languages: Mapping[str, Coverage], language: str) -> Coverage | None:
    """Return the coverage of a language by any of its codes, or None."""
    names = {language_key(name): coverage for name, coverage in languages.items()}
    return names.get(language_key(language))


def read_coverage(spec: str) -> dict[str, Coverage]:
    """Read the coverage of each language, by ISO 639 code, of an encoder.

    ``spec`` is a single encoder. Further languages of its subfolder ``more`` are included. Encoders
    that list no languages, such as LASER's, or that do not exist, give {}.

    Raises:
        ValueError: A configuration is damaged.
    """
    coverages: dict[str, Coverage] = {}
    for folder in (folder_of(spec) / MORE, folder_of(spec)):
        if (path := folder / "config.json").is_file():
            try:
                config = json.loads(path.read_text(encoding="utf-8"))
                for name, entry in config.get("languages", {}).items():
                    share, measured = float(entry["error"]), str(entry["measured"])
                    coverages[name] = Coverage(error=share, measured=measured)
            except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
                raise ValueError(f"encoder: {path} is damaged; copy it again") from error
    return coverages
