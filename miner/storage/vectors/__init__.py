"""Sentence vectors and indexes in files, local or remote."""
