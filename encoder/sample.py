"""Sentences that a precision is tried on; of many languages, scripts and lengths."""

from importlib.resources import files

SAMPLE = tuple(
    files("encoder").joinpath("assets", "sample.txt").read_text(encoding="utf-8").splitlines()
)
