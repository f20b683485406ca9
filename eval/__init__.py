"""Measuring: scores, search, and their data sets. The package's bare name hides a builtin."""
