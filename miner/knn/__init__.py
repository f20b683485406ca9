"""Nearest neighbours by cosine, in both directions."""
