"""Align the sentences of a document and of its translation in order."""
