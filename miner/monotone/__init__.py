"""Monotone alignment: which sentences of a document and of its translation belong together."""
