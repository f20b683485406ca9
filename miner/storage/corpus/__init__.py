"""Corpora in files: their formats, records, sentences, and what is rejected."""
