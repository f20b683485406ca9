"""Corpora in files, with their formats, records, sentences and rejections."""
