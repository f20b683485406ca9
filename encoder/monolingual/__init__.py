"""Encoders from text of one language, made of word vectors."""
